"""The Python clients across event loops and threads, and after they are closed."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from both_clients import connected
from memory_client import AsyncMemoryClient, MemoryClient, MemoryServiceError
from server_process import ServerProcess

WAIT_S = 20.0


def connections_to(server: ServerProcess) -> int:
    """Return the number of connections that this machine's clients have to a server's port."""
    gc.collect()  # A finished call of gRPC is a cycle of objects that keeps its channel alive.
    port = int(server.address.rpartition(":")[2])
    tables = [Path(f"/proc/self/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread or gRPC does in the background."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(0.01)


async def added(client: AsyncMemoryClient, text: str) -> str:
    return (await client.add(text)).text


def test_one_client_serves_one_event_loop_after_another(server: ServerProcess, namespace: str) -> None:
    client = AsyncMemoryClient(server.address, namespace=namespace)
    for text in ("first", "second", "third"):
        assert asyncio.run(added(client, text)) == text
    asyncio.run(client.close())
    with MemoryClient(server.address, namespace=namespace) as reader:
        assert [item.text for item in reader.list_items()] == ["first", "second", "third"]


def test_one_client_serves_the_event_loops_of_many_threads(server: ServerProcess, namespace: str) -> None:
    client = AsyncMemoryClient(server.address, namespace=namespace)
    together = threading.Barrier(4)
    failures: list[BaseException] = []

    async def add_many(worker: int) -> None:
        together.wait()
        for number in range(10):
            await client.namespace(namespace).add(f"{worker} {number}")

    def run(worker: int) -> None:
        try:
            asyncio.run(add_many(worker))
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=run, args=(worker,)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []

    async def count() -> int:
        return len([item async for item in client.list_items()])

    assert asyncio.run(count()) == 40


def test_an_event_loop_that_ends_leaves_no_connection(namespace: str) -> None:
    with ServerProcess(flags=["--store", "memory", "--embedder", "none"]) as server:
        client = AsyncMemoryClient(server.address, namespace=namespace)

        async def connected_in_loop() -> int:
            await client.add("x")
            return connections_to(server)

        for _ in range(3):
            assert asyncio.run(connected_in_loop()) == 1
            wait_until(lambda: connections_to(server) == 0)


def test_an_event_loop_that_is_only_closed_leaves_no_connection_after_the_next(namespace: str) -> None:
    with ServerProcess(flags=["--store", "memory", "--embedder", "none"]) as server:
        client = AsyncMemoryClient(server.address, namespace=namespace)
        for _ in range(3):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(client.add("x"))
            loop.close()
        asyncio.run(client.close())
        wait_until(lambda: connections_to(server) == 0)


def test_closing_in_one_event_loop_ends_the_calls_of_another(server: ServerProcess, namespace: str) -> None:
    client = AsyncMemoryClient(server.address, namespace=namespace)
    begun = threading.Event()
    ended: list[BaseException] = []

    async def watch() -> None:
        try:
            async for _ in client.watch(after_revision=0):
                begun.set()
        except BaseException as error:
            ended.append(error)

    asyncio.run(added(client, "x"))
    watcher = threading.Thread(target=asyncio.run, args=(watch(),))
    watcher.start()
    assert begun.wait(WAIT_S)
    asyncio.run(client.close())
    watcher.join(WAIT_S)
    assert [(type(error), str(error)) for error in ended] == [(MemoryServiceError, "the client is closed")]


async def test_a_call_that_the_caller_cancels_is_cancelled(server: ServerProcess, namespace: str) -> None:
    async with AsyncMemoryClient(server.address, namespace=namespace) as client:
        await client.add("x")
        changes = client.watch()
        waiting = asyncio.create_task(anext(changes))
        await client.add("y")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


CALLS: dict[str, Callable[[Any], Any]] = {
    "unary": lambda client: client.get("x"),
    "pages": lambda client: next(client.list_items()),
    "stream": lambda client: next(client.watch()),
    "upload": lambda client: client.import_items([]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("is_used", [True, False], ids=["used", "unused"])
def test_a_closed_client_says_so(
    server: ServerProcess, namespace: str, kind: str, call: Callable[[Any], Any], is_used: bool
) -> None:
    with contextmanager(connected)(server.address, namespace, kind) as client:
        if is_used:
            client.add("x")
        client.close()
        client.close()
        with pytest.raises(MemoryServiceError, match="the client is closed") as caught:
            call(client)
        assert caught.value.code == "CANCELLED"
