"""Clients that vanish in the middle of a call: no resources stay in use, and nothing is partially written."""

from __future__ import annotations

import contextlib
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from faults.altered_server import command
from faults.cutting_proxy import CuttingProxy
from faults.load import facts
from faults.observed import tasks
from faults.scale import SOAK, drawn, rounds
from grpc_api import SMALL_GRAPHS, Api, eventually, outcome
from memory_service.v1 import admin_pb2, user_memory_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

NAMESPACE = "vanished"
BATCH = 150
STORED = 400
# The outcomes of a call whose client has left, or has not waited.
LEFT = {
    grpc.StatusCode.OK,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
}
# Pools grow on demand and keep their threads: asyncio's, and those for reads, indexes and searches.
POOLED_THREADS = min(32, (os.cpu_count() or 1) + 4) + 4


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def watched(data_dir: Path) -> Iterator[ServerProcess]:
    """A server that reports its number of tasks, with something to read."""
    with ServerProcess(data_dir, command=command("observed"), env=SMALL_GRAPHS) as process:
        api = Api.connect(process.address)
        for number in range(4):
            texts = [f"{number} {at} " + "much to read " * 400 for at in range(STORED // 4)]
            api.add_texts(NAMESPACE, *texts)
        api.retrieve(NAMESPACE, query_text="read")
        api.admin.Flush(admin_pb2.FlushRequest())
        api.channel.close()
        yield process


def files(server: ServerProcess) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def sockets(server: ServerProcess) -> int:
    """Count sockets: they depend only on connections, whereas a pool of database readers may grow."""
    found = []
    for file in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(file))
    return sum(each.startswith("socket:") for each in found)


def threads(server: ServerProcess) -> int:
    """Count Python's threads. gRPC's have other names; it ends the idle ones one by one."""
    names = []
    for thread in Path(f"/proc/{server.process.pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            names.append((thread / "comm").read_text())
    return names.count(Path(f"/proc/{server.process.pid}/comm").read_text())


@contextlib.contextmanager
def nothing_left(server: ServerProcess, data_dir: Path) -> Iterator[Api]:
    """Check that tasks, files and threads are as few as before at the end, with no transaction or lock."""
    before = tasks(server), files(server), threads(server)
    api = Api.connect(server.address)
    yield api
    assert_serves(api, data_dir)
    api.channel.close()
    eventually(lambda: tasks(server) <= before[0], f"{tasks(server)} tasks to be {before[0]} again")
    eventually(lambda: files(server) <= before[1], f"{files(server)} files to be {before[1]} again")
    eventually(lambda: threads(server) <= before[2] + POOLED_THREADS, f"threads to be {before[2]} again")


def assert_serves(api: Api, data_dir: Path) -> None:
    """Check that calls that need every lock are answered, and no reader holds the database's log."""
    for namespace in ("vanished/facts", "vanished/others"):
        save = user_memory_pb2.SaveMemoryRequest(
            namespace=namespace,
            content="User likes tea",
            category=user_memory_pb2.MEMORY_CATEGORY_PREFERENCE,
            reasoning="A lasting preference",
        )
        facts(api).SaveMemory(save)
    eventually(lambda: flushed(api, data_dir), "the log to be empty")


def flushed(api: Api, data_dir: Path) -> bool:
    api.admin.Flush(admin_pb2.FlushRequest())
    return (data_dir / "records.db-wal").stat().st_size == 0


# The calls: each returns an object that ends the call when it is iterated or asked for its result.


def batch(api: Api, name: str, timeout: float | None) -> Any:
    items = [pb.MemoryItem(text=f"{name} {at}", labels={"batch": name}) for at in range(BATCH)]
    request = pb.BatchAddRequest(namespace="vanished/batches", items=items)
    return api.memory.BatchAdd.future(request, timeout=timeout)


def upload(api: Api, name: str, timeout: float | None) -> Any:
    items = [pb.MemoryItem(text=f"{name} {at}", labels={"batch": name}) for at in range(BATCH)]
    requests = [pb.ImportRequest(namespace="vanished/batches", items=items)]
    return api.memory.Import.future(iter(requests), timeout=timeout)


def fact(api: Api, name: str, timeout: float | None) -> Any:
    request = user_memory_pb2.SaveMemoryRequest(
        namespace="vanished/facts",
        content=f"User owns {name} boats",
        category=user_memory_pb2.MEMORY_CATEGORY_PREFERENCE,
        reasoning="A lasting preference",
    )
    return facts(api).SaveMemory.future(request, timeout=timeout)


def search(api: Api, name: str, timeout: float | None) -> Any:
    options = pb.RetrieveOptions(query_text=f"read {name}", limit=100)
    return api.memory.Retrieve.future(
        pb.RetrieveRequest(namespace=NAMESPACE, options=options), timeout=timeout
    )


def export(api: Api, name: str, timeout: float | None) -> Any:
    return api.memory.Export(pb.ExportRequest(namespace=NAMESPACE), timeout=timeout)


def watch(api: Api, name: str, timeout: float | None) -> Any:
    return api.memory.Watch(pb.WatchRequest(namespace=NAMESPACE, after_revision=0), timeout=timeout)


def back_up(api: Api, name: str, timeout: float | None) -> Any:
    return api.admin.Backup.future(admin_pb2.BackupRequest(name=name), timeout=timeout)


CALLS = (batch, upload, fact, search, export, watch, back_up)
STREAMS = (export, watch)


def ended(kind: Any, call: Any) -> grpc.StatusCode:
    """End a call, and return how it ended."""
    if kind in STREAMS:
        return outcome(lambda: list(call))
    try:
        return outcome(call.result)
    except grpc.FutureCancelledError:
        return grpc.StatusCode.CANCELLED


def look(api: Api, kind: Any, call: Any, chance: random.Random) -> None:
    """Take a part of a response, or let some time pass: as long as others' calls take."""
    for _ in range(chance.choice([0, 0, 1, 3])):
        if kind not in STREAMS:
            api.stats(NAMESPACE)
        elif outcome(lambda: next(call)) is not grpc.StatusCode.OK:
            return


@pytest.mark.timeout(400)
@pytest.mark.parametrize("way", ["reset", "cancel", "deadline"])
def test_clients_that_vanish_leave_nothing_behind(
    watched: ServerProcess, data_dir: Path, way: str, namespace: str
) -> None:
    chance = drawn(f"vanish by {way}")
    with nothing_left(watched, data_dir) as api, CuttingProxy(watched.address) as proxy:
        for number in range(rounds(14, 200)):
            lossy = Api.connect(proxy.address)
            kind = CALLS[number % len(CALLS)]
            timeout = chance.uniform(0.001, 0.05) if way == "deadline" else 30
            proxy.pass_all()
            grpc.channel_ready_future(lossy.channel).result(30)
            whole = way != "reset" or chance.random() < 0.5
            if not whole:
                proxy.requests.bytes_left = chance.randint(0, 20_000)
            call = kind(lossy, f"{way}-{number}-{namespace[-6:]}", timeout)
            if whole:
                look(api, kind, call, chance)
            if way == "reset":
                proxy.cut()
            elif way == "cancel":
                call.cancel()
            assert ended(kind, call) in LEFT
            lossy.channel.close()
        found = Counter(item.labels["batch"] for item in api.items("vanished/batches"))
        assert set(found.values()) <= {BATCH}  # entirely or not at all


def test_half_open_connections_hold_nobody_up(watched: ServerProcess, data_dir: Path) -> None:
    with nothing_left(watched, data_dir) as api, CuttingProxy(watched.address) as proxy:
        assert_serves(api, data_dir)  # and is connected
        few = sockets(watched)
        silent = [Api.connect(proxy.address) for _ in range(10)]
        streams = [watch(each, "", None) for each in silent] + [export(each, "", None) for each in silent]
        for stream in streams:
            next(stream)
        assert sockets(watched) == few + 10
        proxy.hold_all()
        assert_serves(api, data_dir)
        item = api.add(NAMESPACE, text="meanwhile")
        assert api.get(NAMESPACE, item.id).text == "meanwhile"
        if not SOAK:
            proxy.cut()
        for stream in streams:
            stream.cancel()
        if SOAK:
            # The server itself notices that the clients are gone: none of them closes its connection.
            assert sockets(watched) == few + 10
            deadline = iter(range(10))
            while sockets(watched) > few and next(deadline, None) is not None:
                with contextlib.suppress(AssertionError):
                    eventually(lambda: sockets(watched) <= few, "the connections to be given up")
            assert sockets(watched) <= few
        for each in silent:
            each.channel.close()


def test_slow_readers_hold_nobody_up_and_miss_nothing(watched: ServerProcess, data_dir: Path) -> None:
    with nothing_left(watched, data_dir) as api:
        slow = [Api.connect(watched.address) for _ in range(3)]
        exports = [export(each, "", None) for each in slow]
        watches = [watch(each, "", None) for each in slow]
        at_first = [next(stream) for stream in exports]
        assert len({record.item.id for record in at_first}) == 1
        for number in range(rounds(300, 3000)):
            api.add(NAMESPACE, id=f"new-{number}", text=f"{number} written while others read slowly")
        assert flushed(api, data_dir)  # a reader that kept a transaction open would keep the log
        revision = api.stats(NAMESPACE).revision
        stored = [item.id for item in api.items(NAMESPACE)]
        for stream in exports:
            ids = [at_first[0].item.id, *(record.item.id for record in stream if record.HasField("item"))]
            # At least the items that existed when it began are sent, each once.
            assert len(set(ids)) == len(ids)
            assert set(stored) >= set(ids) >= {each for each in stored if not each.startswith("new-")}
        for stream in watches:
            told = []
            for event in stream:
                told.append(event.revision)
                if event.revision >= revision:
                    break
            assert told == sorted(told)
            assert set(range(1, revision + 1)) <= set(told)
            stream.cancel()
        for each in slow:
            each.channel.close()
