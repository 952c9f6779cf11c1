"""Bounds on what one client, or many, may use: connections, metadata, streams, items of a namespace."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from grpc_api import Api, Connect, eventually, json_value, outcome, refusal
from memory_service.server.listening import METADATA_BYTES_MAX
from memory_service.server.reflection import STREAMS_MAX
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import memory_pb2_grpc
from memory_service.v1 import state_pb2 as state_pb
from server_process import ServerProcess

CONNECTIONS_MAX = 12
ITEMS_MAX = 5
BYTES_MAX = 100_000
FLAGS = ["--store", "memory", "--embedder", "none"]
BOUNDS = ["--connections-max", str(CONNECTIONS_MAX), "--namespace-items-max", str(ITEMS_MAX)]
ROOM = ["--embedder", "none", "--namespace-bytes-max", str(BYTES_MAX)]


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(flags=[*FLAGS, *BOUNDS]) as server:
        yield server


def greeted(address: str) -> socket.socket | None:
    """Return a connection that the server has greeted, or None if it closed it."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")  # with empty SETTINGS
    with contextlib.suppress(ConnectionError):
        if connection.recv(1):
            return connection
    connection.close()
    return None


def test_there_are_no_more_connections_than_allowed_and_a_closed_one_makes_room(
    bounded: ServerProcess,
) -> None:
    open_ones: list[socket.socket] = []
    refused = 0
    for _ in range(3 * CONNECTIONS_MAX):
        connection = greeted(bounded.address)
        if connection is None:
            refused += 1
        else:
            open_ones.append(connection)
    assert len(open_ones) <= CONNECTIONS_MAX
    assert refused >= 2 * CONNECTIONS_MAX
    for connection in open_ones:
        connection.close()
    api = Api.connect(bounded.address)
    eventually(lambda: outcome(api.limits) is grpc.StatusCode.OK, "room for a connection")
    api.channel.close()


def wait_until_closed(connection: socket.socket) -> None:
    """Return when the server has closed a connection; raise TimeoutError if it does not."""
    with connection, contextlib.suppress(ConnectionError):
        while connection.recv(4096):
            pass


def silent(address: str) -> socket.socket:
    """Return a connection without requests."""
    connection = greeted(address)
    assert connection is not None
    return connection


def test_an_idle_connection_is_closed_and_one_with_a_call_is_not(connect: Connect, namespace: str) -> None:
    with ServerProcess(flags=[*FLAGS, "--connection-idle-s-max", "1"]) as server:
        api = connect(server)
        watching = connect(server).memory.Watch(pb.WatchRequest(namespace=namespace))
        assert not next(watching).HasField("change")
        for _ in range(2):
            wait_until_closed(silent(server.address))
        # The connection of this call was also idle for longer than allowed.
        added = api.add(namespace, text="x")
        assert next(message.change.item_id for message in watching if message.HasField("change")) == added.id


def test_without_the_option_an_idle_connection_stays(bounded: ServerProcess) -> None:
    quiet = silent(bounded.address)
    with ServerProcess(flags=[*FLAGS, "--connection-idle-s-max", "1"]) as other:
        wait_until_closed(silent(other.address))
    quiet.settimeout(0.1)
    with pytest.raises(TimeoutError):
        wait_until_closed(quiet)


def test_a_connection_has_so_many_calls_under_way_watches_included(connect: Connect, namespace: str) -> None:
    with ServerProcess(flags=[*FLAGS, "--connection-calls-max", "2"]) as server:
        api, other = connect(server), connect(server)
        watching = [api.memory.Watch(pb.WatchRequest(namespace=namespace)) for _ in range(2)]
        assert all(not next(watch).HasField("change") for watch in watching)
        request = pb.ListRequest(namespace=namespace)
        # The client itself holds the call back, so it gets no response, not even a refusal.
        assert outcome(lambda: api.memory.List(request, timeout=0.5)) is grpc.StatusCode.DEADLINE_EXCEEDED
        assert other.memory.List(request, timeout=30)
        watching[0].cancel()
        assert api.memory.List(request, timeout=30)


@pytest.mark.parametrize(("share", "fits"), [(0.8, True), (1.1, False), (8, False)])
def test_metadata_above_the_limit_is_refused(
    bounded: ServerProcess, connect: Connect, share: float, fits: bool
) -> None:
    api = connect(bounded)
    metadata = (("x", "y" * int(share * METADATA_BYTES_MAX)),)
    code = outcome(lambda: api.memory.List(pb.ListRequest(namespace="n"), metadata=metadata))
    assert code is (grpc.StatusCode.OK if fits else grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert api.limits()


def test_streams_of_reflection_are_bounded_and_ended_ones_make_room(
    bounded: ServerProcess, connect: Connect
) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(connect(bounded).channel)
    ask = reflection_pb2.ServerReflectionRequest(list_services="")
    refused = threading.Semaphore(0)

    def open_stream() -> Any:
        requests: queue.SimpleQueue[object] = queue.SimpleQueue()
        requests.put(ask)
        stream = stub.ServerReflectionInfo(iter(requests.get, None))
        stream.add_done_callback(lambda _: refused.release())
        return stream

    streams = [open_stream() for _ in range(STREAMS_MAX + 1)]
    first = [outcome(partial(next, stream)) for stream in streams]
    assert set(first) <= {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
    # The last one immediately, and others once they have been silent for a moment: each may send 16 MiB.
    for _ in range(STREAMS_MAX // 2):
        assert refused.acquire(timeout=30)
    ended = [stream for stream in streams if stream.done()]
    assert {stream.code() for stream in ended} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    for stream in streams:
        stream.cancel()
    eventually(lambda: outcome(lambda: next(open_stream())) is grpc.StatusCode.OK, "room for a stream")


def test_a_compressed_message_is_refused_and_not_written(bounded: ServerProcess, namespace: str) -> None:
    """gRPC would decompress it before the server knows anything about the call."""
    with grpc.insecure_channel(bounded.address, compression=grpc.Compression.Gzip) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        request = pb.AddRequest(namespace=namespace, item=pb.MemoryItem(text="x" * 10_000))
        error = refusal(stub.Add, request)
    assert (error.code, error.reason) == (grpc.StatusCode.UNIMPLEMENTED, "UNSUPPORTED")
    with contextlib.closing(Api.connect(bounded.address).channel) as plain:
        listed = memory_pb2_grpc.MemoryServiceStub(plain).List(pb.ListRequest(namespace=namespace))
    assert list(listed.items) == []


def test_a_namespace_holds_no_more_items_than_allowed(
    bounded: ServerProcess, connect: Connect, namespace: str
) -> None:
    api = connect(bounded)
    assert api.limits()["namespace_items_max"] == ITEMS_MAX
    last = pb.AddRequest(namespace=namespace, item=pb.MemoryItem(text="x"), request_id="again")
    api.add_texts(namespace, *"abcd")
    answer = api.memory.Add(last)
    for call, request in (
        (api.memory.Add, pb.AddRequest(namespace=namespace, item=pb.MemoryItem(text="x"))),
        (api.memory.BatchAdd, pb.BatchAddRequest(namespace=namespace, items=[pb.MemoryItem(text="x")] * 2)),
    ):
        error = refusal(call, request)
        assert (error.reason, error.metadata["limit_name"]) == ("LIMIT_EXCEEDED", "namespace_items_max")
    add = pb.WriteOperation(add=pb.AddOperation(item=pb.MemoryItem(text="x")))
    missing = pb.WriteOperation(delete=pb.DeleteOperation(id="missing", allow_missing=True))
    batch = pb.BatchWriteRequest(namespace=namespace, operations=[add, missing])
    assert refusal(api.memory.BatchWrite, batch).metadata["limit_name"] == "namespace_items_max"
    there = pb.WriteOperation(delete=pb.DeleteOperation(id=api.items(namespace)[0].id))
    api.memory.BatchWrite(pb.BatchWriteRequest(namespace=namespace, operations=[add, there]))
    assert len(api.items(namespace)) == ITEMS_MAX
    assert api.memory.Add(last) == answer  # a repeated request gets its first response
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id=answer.item.id))
    api.add(namespace, text="there is room again")
    assert refusal(api.memory.Add, pb.AddRequest(namespace=namespace, item=pb.MemoryItem(text="x")))
    api.add(namespace + "/other", text="x")


@pytest.fixture(scope="module", params=["memory", "hnsw"])
def roomy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("roomy")
    with ServerProcess(folder, flags=[*ROOM, "--store", request.param]) as server:
        api = Api.connect(server.address)
        yield api
        api.channel.close()


def test_a_namespace_holds_no_more_bytes_than_allowed(roomy: Api, namespace: str) -> None:
    api, big = roomy, "x" * 60_000
    assert api.limits()["namespace_bytes_max"] == BYTES_MAX
    first = api.add(namespace, text=big)
    again = pb.AddRequest(namespace=namespace, item=pb.MemoryItem(text=big), request_id="again")
    # The last write that begins below the limit may exceed it.
    answer = api.memory.Add(again)
    small = pb.MemoryItem(text="x")
    for call, request in (
        (api.memory.Add, pb.AddRequest(namespace=namespace, item=small)),
        (api.memory.BatchAdd, pb.BatchAddRequest(namespace=namespace, items=[small])),
        (api.memory.Import, iter([pb.ImportRequest(namespace=namespace, items=[small])])),
        (
            api.memory.Update,
            pb.UpdateRequest(namespace=namespace, item=pb.MemoryItem(id=first.id, text="y")),
        ),
        (api.state.SaveState, state_pb.SaveStateRequest(namespace=namespace, key="k", value=json_value(1))),
    ):
        error = refusal(call, request)
        assert (error.code, error.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED")
        assert (error.metadata["limit_name"], error.metadata["limit"]) == ("namespace_bytes_max", "100000")
        assert int(error.metadata["actual"]) > 2 * len(big)
    assert len(api.items(namespace)) == 2
    assert api.memory.Add(again) == answer  # a repeated request gets its first response
    api.add(namespace + "/other", text="x")
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id=first.id))
    api.add(namespace, text="there is room again")
    api.save(namespace, "k", 1)


def test_without_the_options_a_namespace_has_no_limit(memory_server: ServerProcess, connect: Connect) -> None:
    limits = connect(memory_server).limits()
    assert (limits["namespace_items_max"], limits["namespace_bytes_max"]) == (0, 0)


@pytest.mark.parametrize("seconds", [-1, 1_000_001])
def test_an_idle_time_that_cannot_be_ends_the_start(seconds: int) -> None:
    with pytest.raises(RuntimeError, match="connection_idle_s_max must be 0 to"):
        ServerProcess(flags=[*FLAGS, "--connection-idle-s-max", str(seconds)]).start()


@pytest.mark.parametrize("calls", [0, 1_000_001])
def test_no_calls_of_a_connection_end_the_start(calls: int) -> None:
    with pytest.raises(RuntimeError, match="connection_calls_max must be 1 to"):
        ServerProcess(flags=[*FLAGS, "--connection-calls-max", str(calls)]).start()


@pytest.mark.parametrize("option", ["--namespace-items-max", "--namespace-bytes-max"])
def test_a_limit_below_nothing_ends_the_start(option: str) -> None:
    with pytest.raises(RuntimeError, match="must not be negative"):
        ServerProcess(flags=[*FLAGS, option, "-1"]).start()
