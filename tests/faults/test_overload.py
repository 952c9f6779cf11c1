"""More calls than a server can handle: which are admitted, queued or rejected, and at what cost.

An embedding provider that does not answer keeps every slot taken for as long as a test wants, so the tests
count outcomes and read no clock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from embedding_provider import EmbeddingProvider
from grpc_api import Api, Connect, decode, eventually, outcome
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

REFUSED = (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
VECTOR = [1.0] * 8
# Fewer than a single connection may have at a time.
CALLS_PER_CONNECTION = 300


@pytest.fixture
def provider() -> Iterator[EmbeddingProvider]:
    with EmbeddingProvider() as provider:
        yield provider


class Crowd:
    """Adds to one namespace that all wait for the provider, over as many connections as needed."""

    def __init__(self, connect: Connect, server: ServerProcess, namespace: str, count: int) -> None:
        self.namespace = namespace
        self.answered = threading.Semaphore(0)
        self.calls = []
        for start in range(0, count, CALLS_PER_CONNECTION):
            api = connect(server)
            for number in range(start, min(start + CALLS_PER_CONNECTION, count)):
                self.calls.append(api.memory.Add.future(add(namespace, str(number))))
                self.calls[-1].add_done_callback(lambda _: self.answered.release())

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self.answered.acquire(timeout=60)

    def go_away(self) -> None:
        """Hang up: hundreds of responses are not worth the time."""
        for call in self.calls:
            call.cancel()

    @property
    def done(self) -> list[Any]:
        return [call for call in self.calls if call.done()]


def add(namespace: str, text: str) -> pb.AddRequest:
    return pb.AddRequest(namespace=namespace, item=pb.MemoryItem(text=text))


def patient_server(provider: EmbeddingProvider, folder: Path) -> ServerProcess:
    return ServerProcess(
        folder,
        flags=[*provider.flags, "--embedder-timeout", "100", "--embedding-dimension", "8"],
        env=provider.env,
    )


def room(api: Api) -> int:
    """Return how many calls run or wait. Those of one namespace may wait although there are free slots."""
    limits = api.limits()
    return (
        limits["concurrent_calls_max"] * 3 // 4
        + limits["waiting_calls_max"]
        + limits["concurrent_calls_max"] // 4
    )


def test_calls_for_which_there_is_no_room_are_refused_and_told_when_to_come_back(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with patient_server(provider, tmp_path) as server:
        api = connect(server)
        provider.hold()
        crowd = Crowd(connect, server, "ns", room(api) + 8)
        crowd.wait_for(8)
        assert len(crowd.done) == 8
        for call in crowd.done:
            error = decode(call.exception())
            assert (error.code, error.reason) == REFUSED
            assert error.metadata["limit_name"] == "waiting_calls_max"
            assert error.metadata["limit"] == str(api.limits()["waiting_calls_max"])
            pushback = dict(call.trailing_metadata())["grpc-retry-pushback-ms"]
            assert error.retry_after_s == int(pushback) / 1000 > 0
        crowd.go_away()


def test_who_asks_for_much_waits_for_itself(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    """Next to a namespace that has filled its slots and the queue, another one is served normally."""
    with patient_server(provider, tmp_path) as server:
        api = connect(server)
        provider.hold()
        crowd = Crowd(connect, server, "greedy", room(api) + 8)
        crowd.wait_for(8)
        for number in range(20):
            api.add("modest", id=str(number), text=str(number), embedding=pb.Embedding(values=VECTOR))
            assert api.get("modest", str(number)).text == str(number)
        found = api.retrieve("modest", query_embedding=pb.Embedding(values=VECTOR), limit=30)
        assert len(found.results) == len(api.items("modest")) == 20
        # The greedy ones still wait, except for those that had to make room.
        assert 8 <= len(crowd.done) < 8 + 50
        crowd.go_away()


def test_a_newcomer_takes_the_place_of_who_waits_with_many(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with patient_server(provider, tmp_path) as server:
        api = connect(server)
        provider.hold()
        crowd = Crowd(connect, server, "greedy", room(api))
        eventually(lambda: len(provider.requests) > 0, "the first call is under way")
        # As many as the slots reserved for others, and ten more, which have to wait.
        reserve = api.limits()["concurrent_calls_max"] // 4
        modest = Crowd(connect, server, "modest", reserve + 10)
        crowd.wait_for(10)
        assert modest.done == []
        assert {(decode(c.exception()).code, decode(c.exception()).reason) for c in crowd.done} == {REFUSED}
        crowd.go_away()
        provider.may_answer.set()
        assert [call.result().item.text for call in modest.calls] == [str(n) for n in range(reserve + 10)]


def test_what_nobody_waits_for_any_more_is_not_done(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with patient_server(provider, tmp_path) as server:
        api = connect(server)
        provider.hold()
        crowd = Crowd(connect, server, "ns", room(api) + 1)
        crowd.wait_for(1)
        crowd.go_away()
        # Cancelled calls leave their places in the queue to new ones.
        late = Crowd(connect, server, "late", 50)
        provider.may_answer.set()
        assert {call.result().item.text for call in late.calls} == {str(n) for n in range(50)}
        started = api.limits()["concurrent_calls_max"] * 3 // 4
        assert len(api.items("ns")) <= started


def test_health_is_answered_while_every_place_is_taken(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with patient_server(provider, tmp_path) as server:
        api = connect(server)
        health = health_pb2_grpc.HealthStub(connect(server).channel)
        provider.hold()
        crowd = Crowd(connect, server, "a", room(api) + 8)
        crowd.wait_for(8)
        for _ in range(20):
            answer = health.Check(health_pb2.HealthCheckRequest())
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        assert len(crowd.done) == 8
        crowd.go_away()


def test_large_requests_are_refused_before_they_fill_the_memory(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with patient_server(provider, tmp_path) as server:
        api = connect(server)
        items = [pb.MemoryItem(text="x" * 60_000)] * 64
        request = pb.BatchAddRequest(namespace="ns", items=items)
        # Each counts four times its size, and one caller gets half of the bytes.
        fit = api.limits()["held_bytes_max"] // 2 // (4 * request.ByteSize())
        provider.hold()
        answered = threading.Semaphore(0)
        calls = [api.memory.BatchAdd.future(request) for _ in range(fit + 4)]
        for call in calls:
            call.add_done_callback(lambda _: answered.release())
        for _ in range(4):
            assert answered.acquire(timeout=60)
        refused = [call for call in calls if call.done()]
        assert {decode(c.exception()).metadata["limit_name"] for c in refused} == {"held_bytes_max"}
        # A small one of another caller goes through.
        connect(server).add("ns", text="small", embedding=pb.Embedding(values=VECTOR))
        provider.may_answer.set()
        for call in calls:
            if call not in refused:
                call.result()
        assert len(api.items("ns")) == 1 + fit * 64
        assert outcome(lambda: api.memory.BatchAdd(request)) is grpc.StatusCode.OK
