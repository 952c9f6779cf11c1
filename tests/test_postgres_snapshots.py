"""Graphs of large views over PostgreSQL: files on the server, manifests in the database."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg
import pytest

import postgres_server
from contract.alternating import make_postgres
from contract.builders import MODEL, NS, Hit, build_write, random_vectors, search_hits
from contract.cases import GRAPH
from memory_service.postgres_store import PostgresStore
from memory_service.runtime.caller import ANYBODY

pytestmark = pytest.mark.skipif(postgres_server.programs() is None, reason="there is no PostgreSQL")
VECTORS = random_vectors(100, 8)
Use = Callable[[PostgresStore], Awaitable[object]]


class Folder:
    """A store that is opened again and again."""

    def __init__(self, path: Path) -> None:
        self.files = path / "cache" / "indexes"
        self._path = path
        self._schema = postgres_server.schema_of(path)

    async def use(self, use: Use) -> None:
        store = make_postgres(self._path, GRAPH)
        await store.open()
        try:
            await use(store)
        finally:
            await store.close()

    def manifests(self) -> int:
        with psycopg.connect(postgres_server.dsn()) as connection:
            row = connection.execute(f"SELECT count(*) FROM {self._schema}.snapshots").fetchone()
        assert row is not None
        return int(row[0])

    def execute(self, statement: str) -> None:
        with psycopg.connect(postgres_server.dsn(), options=f"-c search_path={self._schema}") as connection:
            connection.execute(statement)


async def find(store: PostgresStore) -> dict[str, Hit]:
    return await search_hits(store, NS, vector=VECTORS[7])


async def from_files(store: PostgresStore) -> int:
    """Return how many vectors came from a graph in a file."""
    await find(store)
    view = store.views.cache.peek(NS)
    assert view is not None
    return view.saved_slot_count


async def fill(store: PostgresStore) -> None:
    writes = [build_write(str(n), f"text {n}", vector, model=MODEL) for n, vector in enumerate(VECTORS)]
    await store.add_items(NS, writes)
    await find(store)
    await store.flush()


@pytest.fixture
async def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    await folder.use(fill)
    return folder


async def test_a_graph_comes_back_from_its_files(folder: Folder) -> None:
    async def look(store: PostgresStore) -> None:
        assert await from_files(store) > 0
        assert "7" in await find(store)

    assert folder.manifests() == 1
    await folder.use(look)


async def test_files_may_be_lost(folder: Folder) -> None:
    async def look(store: PostgresStore) -> None:
        assert await from_files(store) == 0
        assert "7" in await find(store)

    shutil.rmtree(folder.files)
    await folder.use(look)


async def test_files_that_no_manifest_names_are_removed(folder: Folder) -> None:
    stray = folder.files / "7-1-2-ab.graph"
    stray.write_bytes(b"graph")
    folder.execute("DELETE FROM snapshots")

    async def look(_: PostgresStore) -> None:
        assert list(folder.files.iterdir()) == []

    await folder.use(look)


@pytest.mark.parametrize("which", ["reset", "delete_namespace"])
async def test_they_go_with_what_they_are_of(folder: Folder, which: str) -> None:
    async def end(store: PostgresStore) -> None:
        await from_files(store)
        await getattr(store, which)(NS, by=ANYBODY)
        assert list(folder.files.iterdir()) == []

    await folder.use(end)
    assert folder.manifests() == 0


async def test_a_view_of_a_lost_history_leaves_no_manifest(folder: Folder) -> None:
    async def look(store: PostgresStore) -> None:
        await find(store)
        uid = store._marks[NS].uid
        assert await store.keep_manifest(uid, "of this history")
        folder.execute("UPDATE namespaces SET stamp = stamp + 1; DELETE FROM journal")
        assert not await store.keep_manifest(uid, "of another one")

    await folder.use(look)
