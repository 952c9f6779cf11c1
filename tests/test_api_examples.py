"""Each service is in the API document, and each example in the README of the Python client runs by itself."""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from pathlib import Path

import pytest

import certificates
from memory_client import MemoryClient, chat_message
from memory_service.v1 import interaction_pb2, knowledge_pb2, overseer_pb2, user_memory_pb2
from server_process import ServerProcess
from toolchain import ROOT, run

API = (ROOT / "docs" / "api.md").read_text()
ADDRESS = "127.0.0.1:50051"


def programs(text: str) -> list[str]:
    """The Python examples of a document."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


README = (ROOT / "clients" / "python" / "README.md").read_text()
# The example of the OpenAI Agents SDK needs a model: tests/test_openai_agents.py runs it.
PROGRAMS = [program for program in programs(README) if "MemorySession" not in program]
SERVICES = {
    service.name: service
    for module in (user_memory_pb2, interaction_pb2, knowledge_pb2, overseer_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
}
# For a call in an example, a part of what the example prints.
PRINTED = {
    "save_memory": "superseded User lives in Paris\n",
    "store_interaction": "How does AI work? ['By algorithms and statistics.']\n",
    "handle_message": "saved I have saved that information.\n",
    "check_relevance": "['trip'] [Relevant Memory]\n",
    "extract_memories": "User prefers window seats\n[]\n",
    "edit_file": "# Trip\n- two tickets\n\nsummer 1\n",
    "update": " Ada likes green tea\n",
    "load_state": "{'step': 2}\n",
    "batch_write": " 1 4\n1\n",
}


def test_each_service_has_an_example_and_every_method_is_documented() -> None:
    missing = [m.name for s in SERVICES.values() for m in s.methods if f"\n| `{m.name}` |" not in API]
    assert not missing
    names = {
        re.sub(r"(?<!^)([A-Z])", r"_\1", m.name).lower(): s.name for s in SERVICES.values() for m in s.methods
    }
    shown = {names[call] for call in PRINTED if call in names}
    assert shown == set(SERVICES)
    for call in PRINTED:
        assert len([program for program in PROGRAMS if f"memory.{call}(" in program]) == 1, call


def title(program: str) -> str:
    """The first call in an example."""
    found = re.search(r"(\w+\.\w+|[A-Z]\w+Client)\((?!\))", program.partition("\n\n")[2] or program)
    return found[1] if found else program[:20]


@pytest.mark.parametrize("program", PROGRAMS, ids=title)
def test_an_example_of_the_readme_runs_by_itself(
    server: ServerProcess, namespace: str, tmp_path: Path, program: str
) -> None:
    with MemoryClient(server.address, namespace=namespace) as memory:
        if "memory.save_memory(" in program:
            memory.save_memory("User lives in London", "identity", "Where the user lives")
    (tmp_path / "ca.pem").write_bytes(certificates.Authority("a").certificate)
    if "memory.watch(" in program:
        # It follows the namespace until it is stopped.
        program += "    break\n"
        with MemoryClient(server.address, namespace=namespace) as memory:
            memory.add("Ada likes tea")
    program = program.replace(ADDRESS, server.address).replace('"ada"', repr(namespace))
    env = {"MEMORY_SERVICE_API_KEY": "mem_key"}
    printed = run([sys.executable, "-c", program], tmp_path, timeout_s=60, env=env)
    for call, part in PRINTED.items():
        assert part in printed or f"memory.{call}(" not in program


@pytest.mark.parametrize("program", programs((ROOT / "docs" / "write-policy.md").read_text())[:2])
def test_an_example_of_provenance_prints_what_the_page_says(
    server: ServerProcess, namespace: str, tmp_path: Path, program: str
) -> None:
    program = program.replace(ADDRESS, server.address).replace('"ada"', repr(namespace))
    printed = run([sys.executable, "-c", program], tmp_path, timeout_s=60)
    assert printed.strip() == program.strip().rpartition("# ")[2]


def test_each_python_block_of_the_docs_is_run_by_a_test() -> None:
    run_by = {
        "filters.md": ["test_filters"],
        "integrations.md": ["conformance/test_examples"] * 7,
        "operations.md": ["test_api_examples"],
        "tutorial.md": ["test_tutorial"],
        "write-policy.md": ["test_api_examples", "test_api_examples", "test_write_policies"],
    }
    blocks = {page.name: programs(page.read_text()) for page in sorted((ROOT / "docs").glob("*.md"))}
    assert {name: len(found) for name, found in blocks.items() if found} == {
        name: len(tests) for name, tests in run_by.items()
    }
    for name, found in blocks.items():
        assert all("import " in program for program in found), name


def test_a_message_is_forgotten_as_the_page_on_operations_says(server: ServerProcess, namespace: str) -> None:
    (program,) = programs((ROOT / "docs" / "operations.md").read_text())
    with MemoryClient(server.address, namespace=namespace) as memory:
        memory.add(chat_message("user", "I prefer dark mode"), session_id="s")
        other = memory.add(chat_message("user", "I live in Porto"), session_id="s")
        memory.extract_memories(session_id="s")
        home, first = sorted(memory.list_memories(), key=lambda fact: fact.content)
        # The second is saved while the first is in the history, so that both can be merged.
        memory.update_memory(first.id, valid_until_time=first.valid_from_time + timedelta(microseconds=1))
        second = memory.save_memory(
            "User prefers dark mode.", "preference", "How the screen looks", keep_wording=True
        )
        memory.update_memory(first.id, valid_until_time=None)
        assert second.memory
        (group,) = memory.consolidate_memories().consolidations
        assert group.memory and set(group.memory.source.memory_ids) == {first.id, second.memory.id}
        program = program.replace(ADDRESS, server.address).replace('"ada"', repr(namespace))
        exec(program, {})
        exec(program, {})  # The message is gone: nothing else is deleted in its place.
        left = [fact.id for fact in memory.list_memories(include_history=True)]
        assert [item.id for item in memory.list_items()] == [other.id]
    # The merged fact was also made from the second, which names no message.
    assert sorted(left) == sorted([home.id, second.memory.id, group.memory.id])
