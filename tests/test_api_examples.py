"""The examples of the API document, and of the client's README, run against a server."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory_client import MemoryClient, chat_message
from memory_service.v1 import interaction_pb2, knowledge_pb2, overseer_pb2, user_memory_pb2
from server_process import ServerProcess

ROOT = Path(__file__).parents[1]
API = (ROOT / "docs" / "api.md").read_text()


def programs(text: str) -> list[str]:
    """The Python examples of a document."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


PROGRAMS = programs(API)
README_PROGRAMS = programs((ROOT / "clients" / "python" / "README.md").read_text())
SERVICES = {
    service.name: service
    for module in (user_memory_pb2, interaction_pb2, knowledge_pb2, overseer_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
}
PRINTED = {
    "save_memory": "superseded User lives in Paris\nUser lives in London\n",
    "store_interaction": "How does AI work? ['By algorithms and statistics.']\n",
    "handle_message": "saved I have saved that information.",
    "check_relevance": "['kudos_givers'] [Relevant Memory]\n",
}


def test_each_service_has_an_example_and_every_method() -> None:
    assert len(PROGRAMS) == len(PRINTED) == len(SERVICES)
    missing = [m.name for s in SERVICES.values() for m in s.methods if f"\n| `{m.name}` |" not in API]
    assert not missing


@pytest.mark.parametrize("call", PRINTED)
def test_a_python_example_prints_what_it_says(
    server: ServerProcess, namespace: str, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = (program for program in PROGRAMS if f"memory.{call}(" in program)
    moved = datetime(2026, 1, 31, tzinfo=UTC)
    with MemoryClient(server.address, namespace=namespace) as memory:
        earlier = moved - timedelta(days=9)
        memory.save_memory(
            "User lives in London", "identity", "Where the user lives", valid_from_time=earlier
        )
        names = {"memory": memory, "moved": moved, "timedelta": timedelta, "chat_message": chat_message}
        exec(program, names)
    assert capsys.readouterr().out.startswith(PRINTED[call])


@pytest.mark.parametrize("call", ["memory.save_memory(", 'memory.store_interaction("ada"'])
def test_an_example_of_the_readme_of_the_client_runs(
    server: ServerProcess, namespace: str, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = (program for program in README_PROGRAMS if call in program)
    with MemoryClient(server.address, namespace=namespace) as memory:
        exec(program, {"memory": memory})
    printed = capsys.readouterr().out
    assert "User lives in Paris" in printed or "How does AI work?" in printed
