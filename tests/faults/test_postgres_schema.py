"""The tables in PostgreSQL: made whole or not at all, whoever is killed, and however many servers start."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import postgres_server
from contract.builders import NS, build_write
from faults.cutting_proxy import CuttingProxy, Direction
from faults.postgres_cluster import Node
from faults.scale import drawn, rounds
from faults.test_postgres_connections import flags
from grpc_api import eventually
from memory_service.records.base import CannotOpen
from server_process import ServerProcess

pytestmark = pytest.mark.skipif(postgres_server.programs() is None, reason="there is no PostgreSQL")

STARTS = rounds(5, 200)
CUTS = rounds(8, 300)
KILLS = rounds(1, 20)
SENT_BYTES = 9_000
"""Nearly so many are sent to make the tables."""


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    folder, programs = postgres_server.prepared_folder()
    node = Node(folder, "schemas", programs).create().start()
    yield node
    node.stop()
    shutil.rmtree(folder, ignore_errors=True)


def opened(dsn: str, schema: str, item_id: str = "") -> None:
    """Open a store, add an item if one is named, and close it."""
    from memory_service.postgres_store import PostgresStore

    async def go() -> None:
        store = PostgresStore(dsn, schema=schema, cache_dir=Path("/nonexistent"))
        await store.open()
        if item_id:
            await store.add_items(NS, [build_write(item_id, item_id)])
        await store.close()

    asyncio.run(go())


def through(proxy: CuttingProxy) -> str:
    """How to connect by way of a proxy."""
    port = proxy.address.rpartition(":")[2]
    return f"host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=disable gssencmode=disable"


def tables(node: Node, schema: str) -> set[str]:
    """The tables that a schema has; the schema itself has to be there with them, or not at all."""
    rows = node.ask(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'")
    there = node.ask(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'")
    assert bool(rows) == bool(there)
    return {name for (name,) in rows}


def test_stores_that_open_at_once_on_an_empty_database_all_do(node: Node) -> None:
    with ThreadPoolExecutor(4) as pool:
        for number in range(STARTS):
            schema = f"at_once_{number}"
            for done in [pool.submit(opened, node.dsn, schema, f"item-{each}") for each in range(4)]:
                done.result()
            assert node.ask(f'SELECT count(*) FROM "{schema}".items') == [(4,)]
            assert node.ask(f'SELECT count(*) FROM "{schema}".settings') != [(0,)]


def test_servers_that_start_at_once_on_an_empty_database_all_serve(node: Node, tmp_path: Path) -> None:
    servers = [
        ServerProcess(tmp_path / f"{n}", flags=flags(node.dsn, "serving")) for n in range(rounds(2, 8))
    ]
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(server.start) for server in servers]:
            done.result()
    for server in servers:
        assert server.terminate() == 0


def test_a_connection_that_is_cut_while_tables_are_made_leaves_all_or_none(node: Node) -> None:
    chance, failed = drawn("schema"), 0
    opened(node.dsn, "whole")
    whole = tables(node, "whole")
    with CuttingProxy(node.address) as proxy:
        for number in range(CUTS):
            # Each in its own part of what is sent, so that most of them are in the midst of it.
            share = (number + chance.random()) / CUTS
            proxy.requests = Direction(bytes_left=200 + int(share * (SENT_BYTES - 200)), cuts=True)
            schema = f"cut_{number}"
            try:
                opened(through(proxy), schema)
            except CannotOpen:
                failed += 1
                assert tables(node, schema) in (set(), whole)
            opened(node.dsn, schema, "item")
            assert tables(node, schema) == whole
    assert failed > CUTS / 2


def test_a_server_that_is_killed_while_it_makes_tables_leaves_none(node: Node, tmp_path: Path) -> None:
    chance = drawn("schema kills")
    for number in range(KILLS):
        schema = f"killed_{number}"
        with CuttingProxy(node.address) as proxy, ThreadPoolExecutor(1) as pool:
            proxy.requests = Direction(bytes_left=chance.randint(2_000, SENT_BYTES - 1_000))
            server = ServerProcess(tmp_path, flags=flags(through(proxy), schema))
            starting = pool.submit(server.start)
            eventually(lambda: bool(proxy.requests.withheld), "the server to be held up")
            server.process.kill()
            with pytest.raises(RuntimeError):
                starting.result()
        assert tables(node, schema) == set()
        with ServerProcess(tmp_path, flags=flags(node.dsn, schema)):
            assert tables(node, schema)
