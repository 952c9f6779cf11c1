"""The number of round trips to PostgreSQL: one to read what has not changed, two for a write."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import postgres_server
from contract.builders import NS, build_write, random_vectors, search_hits
from faults.postgres_cluster import Node
from faults.postgres_proxy import PostgresProxy
from memory_service.indexes.settings import IndexSettings
from memory_service.postgres_store import PostgresStore

pytestmark = pytest.mark.skipif(postgres_server.programs() is None, reason="there is no PostgreSQL")
VECTORS = random_vectors(20, 8)


class Listening(PostgresProxy):
    """A proxy that records statements."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.statements: list[str] = []
        self.round_trips = 0

    def _meets(self, connection: object, message: bytes, statement: bytes) -> bool:
        kind = message[:1]
        if kind in (b"B", b"Q") and statement:
            self.statements.append(statement.decode())
        self.round_trips += kind in (b"S", b"Q")
        return False

    def forget(self) -> None:
        self.statements, self.round_trips = [], 0


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """A database that is reached over TCP."""
    folder, programs = postgres_server.prepared_folder()
    node = Node(folder, "alone", programs).create().start()
    yield node
    node.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def listening(node: Node, tmp_path: Path) -> AsyncIterator[tuple[Listening, PostgresStore]]:
    with Listening(node.address) as proxy:
        store = PostgresStore(
            proxy.dsn, IndexSettings(), cache_dir=tmp_path, schema=postgres_server.schema_of(tmp_path)
        )
        await store.open()
        await store.add_items(NS, [build_write(str(n), f"text {n}", v) for n, v in enumerate(VECTORS)])
        await find(store)
        proxy.forget()
        yield proxy, store
        await store.close()


async def find(store: PostgresStore) -> set[str]:
    reading = await store.read(NS)
    found = await search_hits(store, NS, vector=VECTORS[3], candidates=len(VECTORS))
    await reading.load_items([hit.position for hit in found.values()])
    return set(found)


async def test_a_reading_of_what_has_not_changed_is_one_look(
    listening: tuple[Listening, PostgresStore],
) -> None:
    proxy, store = listening
    reading = await store.read(NS)
    assert await reading.load_items([1, 2, 3])
    assert len(proxy.statements) == 1
    assert proxy.statements[0].startswith("SELECT n.seq")


async def test_an_item_that_was_just_written_is_not_read_again(
    listening: tuple[Listening, PostgresStore],
) -> None:
    proxy, store = listening
    receipt = await store.add_items(NS, [build_write("new", "text", VECTORS[0])])
    proxy.forget()
    reading = await store.read(NS)
    (item,) = await reading.load_items([receipt.revision])
    assert item is not None and item.id == "new"
    assert len(proxy.statements) == 1


async def test_a_write_takes_two_round_trips_and_a_statement_for_each_table(
    listening: tuple[Listening, PostgresStore],
) -> None:
    proxy, store = listening
    write = build_write("new", "text", VECTORS[0])
    write.new_id = True
    await store.add_items(NS, [write])
    begin, lock, *written, commit = proxy.statements
    assert (begin, commit) == ("BEGIN ISOLATION LEVEL READ COMMITTED", "COMMIT")
    assert "FOR UPDATE" in lock
    assert [each.split()[0] for each in written] == ["UPDATE", "INSERT", "INSERT", "INSERT"]
    assert proxy.round_trips == 2
