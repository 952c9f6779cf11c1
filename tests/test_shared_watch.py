"""A watch at one server of writes at another: every change, in order, soon, with one query for all."""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import grpc
import pytest

import postgres_server
from contract.builders import build_write
from grpc_api import Api, decode, eventually
from memory_service.v1 import memory_pb2 as pb
from shared_servers import SharedServers, needs_postgres

pytestmark = needs_postgres

MEDIAN_S_MAX = 0.25
WRITES = 60
STATISTICS = ("-c", "shared_preload_libraries=pg_stat_statements")


def watch(api: Api, namespace: str, after_revision: int = 0) -> Iterator[pb.WatchResponse]:
    stream = api.memory.Watch(pb.WatchRequest(namespace=namespace, after_revision=after_revision))
    assert not next(stream).HasField("change")
    return stream


def told(stream: Iterator[pb.WatchResponse], count: int) -> list[tuple[int, float]]:
    """Return the revisions of the next changes, and when each arrived."""
    found = ((message.change.revision, time.monotonic()) for message in stream if message.HasField("change"))
    return list(islice(found, count))


@contextmanager
def reading_all_the_time(api: Api, namespace: str) -> Iterator[None]:
    """Read at a server without a pause, as another client."""
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            api.retrieve(namespace, query_text="heron")

    with ThreadPoolExecutor(4) as readers:
        reads = [readers.submit(read) for _ in range(4)]
        try:
            yield
        finally:
            stop.set()
        for done in reads:
            done.result()


def test_what_one_server_writes_is_soon_told_by_the_other_without_a_gap_and_in_order(tmp_path: Path) -> None:
    with SharedServers(tmp_path, "--embedder", "none") as servers, ThreadPoolExecutor(1) as pool:
        here, there = servers.start(), servers.start()
        stream = watch(there, "birds")
        coming = pool.submit(told, stream, WRITES)
        written = []
        for number in range(WRITES):
            here.add("birds", text=f"heron {number}")
            written.append(time.monotonic())
        came = coming.result(60)
        stream.cancel()
        assert [revision for revision, _ in came] == list(range(1, WRITES + 1))
        delays = [at - acknowledged for (_, at), acknowledged in zip(came, written, strict=True)]
        print(f"told {statistics.median(delays) * 1000:.0f} ms later, {max(delays) * 1000:.0f} ms at most")
        assert statistics.median(delays) < MEDIAN_S_MAX


def test_who_watches_is_told_also_where_others_read_all_the_time(tmp_path: Path) -> None:
    with SharedServers(tmp_path, "--embedder", "none") as servers, ThreadPoolExecutor(1) as pool:
        here, there = servers.start(), servers.start()
        here.add("birds", text="heron")
        stream = watch(there, "birds", 1)
        with reading_all_the_time(there, "birds"):
            for revision in range(2, 12):
                coming = pool.submit(told, stream, 1)
                here.add("birds", text="heron")
                assert coming.result(10)[0][0] == revision
        stream.cancel()


def test_writes_at_both_servers_are_told_by_both_in_one_order(tmp_path: Path) -> None:
    with SharedServers(tmp_path, "--embedder", "none") as servers, ThreadPoolExecutor(4) as pool:
        apis = [servers.start(), servers.start()]
        streams = [watch(api, "birds") for api in apis]
        coming = [pool.submit(lambda s: list(islice(map(seen, s), 2 * WRITES)), stream) for stream in streams]
        writing = [pool.submit(add_all, api) for api in apis]
        for done in writing:
            done.result(60)
        first, second = (found.result(60) for found in coming)
        for stream in streams:
            stream.cancel()
        assert first == second
        assert [revision for revision, _ in first] == list(range(1, 2 * WRITES + 1))


def seen(message: pb.WatchResponse) -> tuple[int, str]:
    return message.change.revision, message.change.item_id


def add_all(api: Api) -> None:
    for number in range(WRITES):
        api.add("birds", text=f"heron {number}")


def test_who_watches_while_the_database_is_away_misses_nothing(tmp_path: Path) -> None:
    with (
        postgres_server.OwnServer() as database,
        SharedServers(tmp_path, "--embedder", "none", dsn=database.dsn) as servers,
        ThreadPoolExecutor(1) as pool,
    ):
        here, there = servers.start(), servers.start()
        found: list[int] = []
        endings: list[grpc.StatusCode] = []

        def follow() -> None:
            """Watch like a client that resumes after the last change it received."""
            while len(found) < 6:
                try:
                    for message in watch(there, "birds", found[-1] if found else 0):
                        if message.HasField("change"):
                            found.append(message.change.revision)
                        if len(found) == 6:
                            return
                except grpc.RpcError as error:
                    endings.append(decode(error).code)

        following = pool.submit(follow)
        for _ in range(3):
            here.add("birds", text="heron")
        eventually(lambda: len(found) == 3, "what was written before")
        database.stop()
        with pytest.raises(grpc.RpcError) as refused:
            here.add("birds", text="heron")
        assert decode(refused.value).code is grpc.StatusCode.UNAVAILABLE
        database.start()
        written = 0
        while written < 3:
            with suppress(grpc.RpcError):
                here.add("birds", text="heron")
                written += 1
        following.result(60)
        assert found == list(range(1, 7))
        assert set(endings) <= {grpc.StatusCode.UNAVAILABLE}


async def test_a_thousand_who_watch_share_one_query_and_nobody_costs_none(tmp_path: Path) -> None:
    from memory_service.postgres_store import PostgresStore

    with postgres_server.OwnServer(*STATISTICS) as database, Queries(database.dsn) as queries:
        store = PostgresStore(database.dsn, cache_dir=tmp_path, schema="watched")
        await store.open()
        try:
            names = [f"birds/{number}" for number in range(1000)]
            await asyncio.gather(*(store.add_items(name, [build_write("a", "heron")]) for name in names))
            assert queries.looks() == 0
            waiting = [asyncio.create_task(store.wait_for_change(name, 1)) for name in names]
            # Each looked once when it began, like every reader of a namespace.
            before, began = queries.looks(), time.monotonic()
            await asyncio.sleep(1)
            assert queries.looks() > before
            # The interval may contain one more look at each end.
            assert queries.looks() - before <= (time.monotonic() - began) / 0.1 + 2
            await store.add_items(names[7], [build_write("b", "egret")])
            await waiting[7]
            assert not any(task.done() for task in (*waiting[:7], *waiting[8:]))
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
            # The current look ends; after that there are ten intervals without any.
            after = queries.looks()
            await asyncio.sleep(1)
            assert queries.looks() - after <= 1
        finally:
            await store.close()


class Queries:
    """The database's counts of the queries with which watches look for changes."""

    def __init__(self, dsn: str) -> None:
        import psycopg

        self._connection = psycopg.connect(dsn, autocommit=True)
        self._connection.execute("CREATE EXTENSION pg_stat_statements")

    def __enter__(self) -> Queries:
        return self

    def __exit__(self, *exc: object) -> None:
        self._connection.close()

    def looks(self) -> int:
        """Return the number of these queries."""
        (row,) = self._connection.execute(
            "SELECT coalesce(sum(calls), 0)::int FROM pg_stat_statements"
            " WHERE query LIKE '%n.name = ANY($1::text[])' AND query NOT LIKE '%n.part = ANY%'"
        )
        count: int = row[0]
        return count
