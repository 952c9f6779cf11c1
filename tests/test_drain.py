"""Calls in progress during a stop: SIGTERM, a provider that hangs or fails, too many calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from embedding_provider import EmbeddingProvider
from grpc_api import Api, Connect, decode, eventually, outcome, refusal
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def provider() -> Iterator[EmbeddingProvider]:
    with EmbeddingProvider() as provider:
        yield provider


def add_request(text: str, request_id: str = "") -> pb.AddRequest:
    return pb.AddRequest(namespace="ns", item=pb.MemoryItem(text=text), request_id=request_id)


def texts(api: Api) -> list[str]:
    return [item.text for item in api.items("ns")]


def failure(api: Api) -> Any:
    """Return the error of a read, or None."""
    try:
        api.items("ns")
    except grpc.RpcError as error:
        return error
    return None


# SIGTERM


def test_a_write_in_flight_is_finished_before_the_server_stops(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    server = ServerProcess(tmp_path, flags=provider.flags, env=provider.env)
    with server, ThreadPoolExecutor(1) as pool:
        api = connect(server)
        health = health_pb2_grpc.HealthStub(connect(server).channel).Watch(health_pb2.HealthCheckRequest())
        assert next(health).status != NOT_SERVING
        provider.hold()
        write = api.memory.Add.future(add_request("in flight"))
        assert provider.asked.wait(30)
        stopping = pool.submit(server.terminate)
        # The server has handled the signal, and the write is still waiting.
        assert next(health).status == NOT_SERVING
        assert not write.done()
        provider.may_answer.set()
        assert write.result().item.text == "in flight"
        assert stopping.result() == 0
    with ServerProcess(tmp_path, flags=["--embedder", "none"]) as server:
        assert texts(connect(server)) == ["in flight"]


def test_connections_are_closed_to_new_calls_while_others_finish(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    server = ServerProcess(tmp_path, flags=provider.flags, env=provider.env)
    with server, ThreadPoolExecutor(1) as pool:
        api, other = connect(server), connect(server)
        assert failure(other) is None
        provider.hold()
        write = api.memory.Add.future(add_request("in flight"))
        assert provider.asked.wait(30)
        stopping = pool.submit(server.terminate)
        # A refused client retries immediately. With a limited number of attempts it would run out of them; a
        # client with a closed connection waits for the next server.
        while (error := failure(other)) is None or rpc_status.from_call(error) is not None:
            assert not stopping.done()
        # A call that arrives at that very moment is cancelled; clients retry both codes.
        assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        assert not write.done()
        provider.may_answer.set()
        assert write.result().item.text == "in flight"
        assert stopping.result() == 0


@pytest.mark.parametrize("store", ["hnsw", "memory"])
def test_an_open_watch_ends_and_does_not_hold_up_the_stop(
    tmp_path: Path, connect: Connect, store: str
) -> None:
    with ServerProcess(tmp_path, flags=["--store", store]) as server:
        streams = [connect(server).memory.Watch(pb.WatchRequest(namespace="ns")) for _ in range(3)]
        assert [next(stream).revision for stream in streams] == [0, 0, 0]
        assert server.terminate() == 0
        for stream in streams:
            with pytest.raises(grpc.RpcError) as caught:
                list(stream)
            error = decode(caught.value)
            assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")


class Writer:
    """Adds items until a call fails, and records which were acknowledged and which were not."""

    def __init__(self, api: Api, name: str, progress: threading.Semaphore) -> None:
        self._api = api
        self._name = name
        self._progress = progress
        self.acknowledged: list[str] = []

    def run(self) -> grpc.StatusCode:
        ended = grpc.StatusCode.OK
        while ended is grpc.StatusCode.OK:
            text = f"{self._name}-{len(self.acknowledged)}"
            self.in_doubt = add_request(text, request_id=text)
            ended = outcome(partial(self._api.memory.Add, self.in_doubt))
            if ended is grpc.StatusCode.OK:
                self.acknowledged.append(text)
            self._progress.release()
        return ended


def test_nothing_acknowledged_is_lost_when_the_server_stops_under_load(
    tmp_path: Path, connect: Connect
) -> None:
    progress = threading.Semaphore(0)
    with ServerProcess(tmp_path) as server, ThreadPoolExecutor(6) as pool:
        writers = [Writer(connect(server), str(i), progress) for i in range(6)]
        ends = [pool.submit(writer.run) for writer in writers]
        for _ in range(200):
            progress.acquire()
        assert server.terminate() == 0
        assert {end.result() for end in ends} == {grpc.StatusCode.UNAVAILABLE}
    acknowledged = {text for writer in writers for text in writer.acknowledged}
    with ServerProcess(tmp_path) as server:
        api = connect(server)
        assert acknowledged <= set(texts(api))
        for writer in writers:
            api.memory.Add(writer.in_doubt)
        assert sorted(texts(api)) == sorted(acknowledged | {w.in_doubt.request_id for w in writers})


# A provider that hangs or fails


def test_a_failing_provider_degrades_writes_and_searches(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with ServerProcess(tmp_path, flags=provider.flags, env=provider.env) as server:
        api = connect(server)
        api.memory.Add(add_request("a heron"))
        provider.failing = True
        written = api.memory.Add(add_request("an otter"))
        assert [d.reason for d in written.degraded] == [pb.DEGRADATION_REASON_EMBEDDING_PENDING]
        assert "boom" not in written.degraded[0].message
        response = api.retrieve("ns", query_text="heron")
        assert [result.item.text for result in response.results] == ["a heron"]
        assert [d.reason for d in response.degraded] == [pb.DEGRADATION_REASON_EMBEDDER_UNAVAILABLE]
        assert texts(api) == ["a heron", "an otter"]


def test_a_waiting_provider_does_not_hold_up_other_calls(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with ServerProcess(tmp_path, flags=provider.flags, env=provider.env) as server:
        api = connect(server)
        provider.hold()
        waiting = api.memory.Add.future(add_request("waiting"))
        assert provider.asked.wait(30)
        item = pb.MemoryItem(text="own vector", embedding=pb.Embedding(values=[1.0] * 1536))
        api.memory.Add(pb.AddRequest(namespace="ns", item=item))
        assert texts(api) == ["own vector"]
        assert not waiting.done()
        provider.may_answer.set()
        waiting.result()
        assert texts(api) == ["own vector", "waiting"]


# Too many calls


def test_streams_beyond_the_limit_are_refused_and_others_live_on(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, flags=["--embedder", "none"]) as server:
        api = connect(server)
        limit = api.limits()["concurrent_streams_max"]
        request = pb.WatchRequest(namespace="ns")
        streams = [api.memory.Watch(request) for _ in range(limit - limit // 4)]
        assert {next(stream).revision for stream in streams} == {0}
        # The last quarter is for namespaces with few streams.
        assert refusal(api.memory.Watch, request).metadata["limit"] == str(limit)
        others = [pb.WatchRequest(namespace=f"other-{number}") for number in range(limit // 4)]
        few = [api.memory.Watch(other) for other in others]
        assert {next(stream).revision for stream in few} == {0}
        error = refusal(api.memory.Watch, request)
        assert (error.code, error.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
        assert error.metadata["limit"] == str(limit)
        api.memory.Add(add_request("seen"))
        assert {next(stream).change.item.text for stream in streams} == {"seen"}
        streams[0].cancel()
        # A stream that ends frees its place.
        eventually(
            lambda: outcome(lambda: next(api.memory.Watch(others[0]))) is grpc.StatusCode.OK, "a place"
        )
