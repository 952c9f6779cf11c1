"""A real grpcurl against a real server: first steps in the shell."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from server_process import ServerProcess
from toolchain import tool

Grpcurl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def grpcurl(server: ServerProcess) -> Grpcurl:
    """Run grpcurl with arguments before and after the address."""
    binary = tool("grpcurl")

    def run(*arguments: str, data: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        flags = [] if data is None else ["-d", json.dumps(data)]
        command = [binary, "-plaintext", *flags, server.address, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    return run


def answer(ended: subprocess.CompletedProcess[str]) -> Any:
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_it_lists_the_services(grpcurl: Grpcurl) -> None:
    listed = grpcurl("list").stdout.split()
    assert {
        "memory_service.v1.MemoryService",
        "memory_service.v1.StateService",
        "memory_service.v1.AdminService",
        "grpc.health.v1.Health",
    } <= set(listed)
    assert (
        "memory_service.v1.MemoryService.Retrieve"
        in grpcurl("list", "memory_service.v1.MemoryService").stdout
    )


def test_it_describes_services_and_messages_with_their_comments(grpcurl: Grpcurl) -> None:
    service = grpcurl("describe", "memory_service.v1.MemoryService").stdout
    assert "// MemoryService stores messages, notes and tool results" in service
    assert "// Add writes one item." in service
    message = grpcurl("describe", "memory_service.v1.RetrieveOptions").stdout
    assert "// The maximum number of items over all pages. Unset: 10." in message


def test_an_item_is_added_and_retrieved(grpcurl: Grpcurl, namespace: str) -> None:
    item = {"text": "Ada likes tea", "labels": {"topic": "drinks"}, "metadata": {"sure": True}}
    added = answer(
        grpcurl("memory_service.v1.MemoryService/Add", data={"namespace": namespace, "item": item})
    )
    assert added["item"]["text"] == "Ada likes tea"
    assert added["revision"] == "1"
    query = {"namespace": namespace, "options": {"query_text": "what does Ada drink?"}}
    found = answer(grpcurl("memory_service.v1.MemoryService/Retrieve", data=query))
    assert found["results"][0]["item"]["id"] == added["item"]["id"]
    assert found["results"][0]["item"]["metadata"] == {"sure": True}


def test_a_state_is_saved_and_loaded(grpcurl: Grpcurl, namespace: str) -> None:
    value = {"step": 1, "done": [None, "a"]}
    save = {"namespace": namespace, "key": "plan", "value": value, "ttl": "3600s"}
    saved = answer(grpcurl("memory_service.v1.StateService/SaveState", data=save))
    assert saved["entry"]["version"] == "1"
    load = {"namespace": namespace, "key": "plan"}
    loaded = answer(grpcurl("memory_service.v1.StateService/LoadState", data=load))
    assert loaded["entry"]["value"] == value


def test_empty_requests_are_enough_to_look_round(grpcurl: Grpcurl) -> None:
    assert answer(grpcurl("memory_service.v1.AdminService/GetInfo"))["store"] == "hnsw"
    assert answer(grpcurl("grpc.health.v1.Health/Check"))["status"] == "SERVING"


def test_an_error_is_printed_with_its_details_decoded(grpcurl: Grpcurl) -> None:
    request = {"namespace": "../../etc", "item": {"text": "x"}}
    ended = grpcurl("memory_service.v1.MemoryService/Add", data=request)
    assert ended.returncode != 0
    for expected in ("InvalidArgument", "ERROR_REASON_INVALID_FIELD", "fieldViolations", '"namespace"'):
        assert expected in ended.stderr
    # grpcurl prints this for a detail that it cannot decode.
    assert "@value" not in ended.stderr
