"""SIGTERM while calls of all kinds are under way: none that had begun fails, and nothing is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from embedding_provider import EmbeddingProvider
from faults.scale import rounds
from grpc_api import Api, Connect, decode
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import state_pb2, user_memory_pb2, user_memory_pb2_grpc
from server_process import ServerProcess

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


class Caller:
    """Makes calls until one fails; `acknowledged` counts the successful ones."""

    def __init__(self, call: Callable[[int], object], progress: threading.Semaphore) -> None:
        self._call = call
        self._progress = progress
        self.acknowledged = 0

    def run(self) -> grpc.RpcError:
        while True:
            try:
                self._call(self.acknowledged)
            except grpc.RpcError as error:
                return error
            self.acknowledged += 1
            self._progress.release()


def save_memory(api: Api, n: int) -> object:
    request = user_memory_pb2.SaveMemoryRequest(
        namespace="facts", content=f"User owns {n} herons", category=2, reasoning="Counted by the user"
    )
    return user_memory_pb2_grpc.UserMemoryServiceStub(api.channel).SaveMemory(request)


def imported(api: Api, n: int) -> object:
    """Import several messages, entirely or without an acknowledgement."""

    def messages() -> Iterator[pb.ImportRequest]:
        for part in range(3):
            items = [pb.MemoryItem(id=f"{n}-{part}-{i}", text="x") for i in range(5)]
            yield pb.ImportRequest(namespace="imported", items=items)

    return api.memory.Import(messages())


def kinds(connect: Connect, server: ServerProcess) -> dict[str, Callable[[int], object]]:
    """Return a call of each kind, each over its own connection."""
    apis = {
        name: connect(server) for name in ("add", "batch", "save", "fact", "import", "retrieve", "export")
    }
    return {
        "add": lambda n: apis["add"].add("added", id=str(n), text=f"heron {n}"),
        "batch": lambda n: apis["batch"].add_texts("batched", *(f"{n} {i}" for i in range(20))),
        "save": lambda n: apis["save"].save("saved", str(n), n),
        "fact": partial(save_memory, apis["fact"]),
        "import": partial(imported, apis["import"]),
        "retrieve": lambda n: apis["retrieve"].retrieve("added", query_text=f"heron {n}"),
        "export": lambda n: list(apis["export"].memory.Export(pb.ExportRequest(namespace="batched"))),
    }


def stop_under_load(folder: Path, connect: Connect) -> dict[str, Caller]:
    """Stop a server while it is busy, and return its callers."""
    progress = threading.Semaphore(0)
    with ServerProcess(folder) as server, ThreadPoolExecutor(8) as pool:
        connect(server).add_texts("batched", "first")
        callers = {name: Caller(call, progress) for name, call in kinds(connect, server).items()}
        watch = connect(server).memory.Watch(pb.WatchRequest(namespace="added"))
        ends = {name: pool.submit(caller.run) for name, caller in callers.items()}
        for _ in range(100):
            assert progress.acquire(timeout=60)
        assert server.terminate() == 0
        for name, end in ends.items():
            assert code_of(end.result()) is UNAVAILABLE, name
        with pytest.raises(grpc.RpcError) as caught:
            for _ in watch:
                pass
        assert (decode(caught.value).code, decode(caught.value).reason) == (UNAVAILABLE, "SHUTTING_DOWN")
    return callers


def code_of(error: Any) -> grpc.StatusCode:
    code: grpc.StatusCode = error.code()
    return code


def test_calls_that_were_begun_are_answered_and_nothing_is_lost(tmp_path: Path, connect: Connect) -> None:
    for attempt in range(rounds(2, 30)):
        folder = tmp_path / str(attempt)
        callers = stop_under_load(folder, connect)
        with ServerProcess(folder, flags=["--embedder", "none"]) as server:
            api = connect(server)
            # Exactly: rejected calls had not begun, and all that had begun were answered.
            assert len(api.items("added")) == callers["add"].acknowledged
            assert len(api.items("batched")) == 1 + 20 * callers["batch"].acknowledged
            keys = state_pb2.ListStateKeysRequest(namespace="saved", page_size=1000)
            assert len(api.state.ListStateKeys(keys).entries) == callers["save"].acknowledged
            # An Import commits message by message, so an interrupted one may have written some.
            imported_items = len(api.items("imported"))
            begun = callers["import"].acknowledged
            assert 15 * begun <= imported_items <= 15 * begun + 15
            assert imported_items % 5 == 0


def test_a_second_signal_ends_at_once_and_loses_nothing(tmp_path: Path, connect: Connect) -> None:
    with EmbeddingProvider() as provider:
        flags = [*provider.flags, "--embedder-timeout", "100", "--drain", "100", "--embedding-dimension", "8"]
        with ServerProcess(tmp_path, flags=flags, env=provider.env) as server:
            api = connect(server)
            for n in range(50):
                api.add("ns", id=str(n), text=str(n))
                api.save("ns", str(n), n)
            health = health_pb2_grpc.HealthStub(api.channel).Watch(health_pb2.HealthCheckRequest())
            assert next(health).status == health_pb2.HealthCheckResponse.SERVING
            provider.hold()
            stuck = api.memory.Add.future(pb.AddRequest(namespace="ns", item=pb.MemoryItem(text="stuck")))
            assert provider.asked.wait(60)
            server.process.send_signal(signal.SIGTERM)
            # The server acts on the first signal, and waits for the call under way.
            assert next(health).status == health_pb2.HealthCheckResponse.NOT_SERVING
            assert not stuck.done()
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(60) == 130
        with ServerProcess(tmp_path, flags=["--embedder", "none"]) as server:
            assert sorted(int(item.id) for item in connect(server).items("ns")) == list(range(50))
