"""Each service is in the API document and has an example in the client's README that runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memory_client import MemoryClient, chat_message
from memory_service.v1 import interaction_pb2, knowledge_pb2, overseer_pb2, user_memory_pb2
from server_process import ServerProcess

ROOT = Path(__file__).parents[1]
API = (ROOT / "docs" / "api.md").read_text()


def programs(text: str) -> list[str]:
    """Return the Python examples of a document."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


PROGRAMS = programs((ROOT / "clients" / "python" / "README.md").read_text())
SERVICES = {
    service.name: service
    for module in (user_memory_pb2, interaction_pb2, knowledge_pb2, overseer_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
}
PRINTED = {
    "save_memory": "superseded User lives in Paris\n",
    "store_interaction": "How does AI work? ['By algorithms and statistics.']\n",
    "handle_message": "saved I have saved that information.\n",
    "check_relevance": "['trip'] [Relevant Memory]\n",
}


def test_each_service_has_an_example_and_every_method_is_documented() -> None:
    assert len(PRINTED) == len(SERVICES)
    missing = [m.name for s in SERVICES.values() for m in s.methods if f"\n| `{m.name}` |" not in API]
    assert not missing


@pytest.mark.parametrize("call", PRINTED)
def test_an_example_of_the_readme_of_the_client_prints_what_it_says(
    server: ServerProcess, namespace: str, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = (
        program for program in PROGRAMS if f"memory.{call}(" in program and "MemoryManager" not in program
    )
    with MemoryClient(server.address, namespace=namespace) as memory:
        memory.save_memory("User lives in London", "identity", "Where the user lives")
        memory.save_state("trip", {"to": "Lisbon"}, description="plan of the trip to Lisbon")
        memory.add(chat_message("assistant", "The train leaves at noon."), session_id="trip")
        exec(program, {"memory": memory})
    assert PRINTED[call] in capsys.readouterr().out


def test_the_example_of_a_batch_runs_after_that_of_state(
    server: ServerProcess, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (state,) = (program for program in PROGRAMS if "expected_version=entry.version" in program)
    (batch,) = (program for program in PROGRAMS if "memory.batch_write(" in program)
    with MemoryClient(server.address, namespace=namespace) as memory:
        for program in (state, batch):
            exec(program, {"memory": memory})
        (item,) = memory.list_items()
    assert (item.text, item.session_id) == ("Ada likes tea", "trip")
    assert capsys.readouterr().out == f"{{'step': 2}}\n{item.id} 3 6\n0\n"
