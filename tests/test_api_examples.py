"""The examples of the API document, and of the client's README, run against a server."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.message_factory import GetMessageClass

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
REQUESTS = re.findall(
    r"^\$ grpcurl -plaintext -d '([^']+)' \\\n +\S+ memory_service\.v1\.(\w+)/(\w+)$", API, re.M
)
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


def test_each_service_has_an_example_of_each_kind() -> None:
    assert len(PROGRAMS) == len(PRINTED) == len(SERVICES)
    assert {service for _, service, _ in REQUESTS} == set(SERVICES)
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


@pytest.mark.parametrize("body,service,method", REQUESTS, ids=[request[1] for request in REQUESTS])
def test_a_grpcurl_example_is_answered(
    server: ServerProcess, namespace: str, body: str, service: str, method: str
) -> None:
    described = SERVICES[service].methods_by_name[method]
    request = json_format.Parse(body, GetMessageClass(described.input_type)())
    assert request.namespace == "demo"  # type: ignore[attr-defined]
    request.namespace = namespace  # type: ignore[attr-defined]
    answer_type = GetMessageClass(described.output_type)
    with grpc.insecure_channel(server.address) as channel:
        call = channel.unary_unary(
            f"/memory_service.v1.{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer_type.FromString,
        )
        assert call(request, timeout=30).ByteSize() > 0


@pytest.mark.parametrize("call", ["memory.save_memory(", 'memory.store_interaction("ada"'])
def test_an_example_of_the_readme_of_the_client_runs(
    server: ServerProcess, namespace: str, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = (program for program in README_PROGRAMS if call in program)
    with MemoryClient(server.address, namespace=namespace) as memory:
        exec(program, {"memory": memory})
    printed = capsys.readouterr().out
    assert "User lives in Paris" in printed or "How does AI work?" in printed
