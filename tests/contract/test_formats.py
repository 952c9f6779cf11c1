"""Data directories written by earlier releases open with all their contents."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import xxhash

from contract.builders import (
    EVERYTHING,
    NOW,
    NS,
    axis_vector,
    build_write,
    get_item,
    scan_ids,
    words_found,
)
from contract.cases import STORES, StoreCase
from contract.conftest import Stores
from memory_service.data_model import (
    CONVERSATION_KINDS,
    ItemKind,
    Provenance,
    SearchQuery,
    TextPart,
    WritesBy,
)
from memory_service.indexes.analysis import Analyzer, pack_terms, unpack_terms
from memory_service.records.base import CannotOpen

# The tables of the first release.
_FORMAT_1 = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE namespaces (
    uid INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL,
    item_count INTEGER NOT NULL, state_count INTEGER NOT NULL, embedded_count INTEGER NOT NULL,
    dimension INTEGER NOT NULL, model TEXT NOT NULL, version_floor INTEGER NOT NULL,
    create_us INTEGER NOT NULL
);
CREATE TABLE items (
    key INTEGER PRIMARY KEY, uid INTEGER NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL,
    session_id TEXT NOT NULL, create_us INTEGER NOT NULL, update_us INTEGER NOT NULL, expire_us INTEGER,
    labels TEXT, metadata TEXT, content TEXT NOT NULL, terms BLOB NOT NULL,
    vector_revision INTEGER NOT NULL, embedding BLOB
);
CREATE UNIQUE INDEX items_by_id ON items (uid, id);
CREATE INDEX items_expiring ON items (expire_us) WHERE expire_us IS NOT NULL;
CREATE TABLE states (
    uid INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, create_us INTEGER NOT NULL,
    update_us INTEGER NOT NULL, expire_us INTEGER, description TEXT NOT NULL, revision INTEGER NOT NULL,
    value TEXT NOT NULL, PRIMARY KEY (uid, key)
) WITHOUT ROWID;
CREATE INDEX states_expiring ON states (expire_us) WHERE expire_us IS NOT NULL;
CREATE TABLE changes (key INTEGER PRIMARY KEY, type INTEGER NOT NULL, subject TEXT NOT NULL);
CREATE TABLE snapshots (uid INTEGER PRIMARY KEY, manifest TEXT NOT NULL);
CREATE TABLE requests (
    uid INTEGER NOT NULL, id TEXT NOT NULL, digest BLOB NOT NULL, receipt TEXT NOT NULL,
    time_us INTEGER NOT NULL, PRIMARY KEY (uid, id)
) WITHOUT ROWID;
CREATE INDEX requests_by_time ON requests (time_us);
"""
_FACET = '{"kind":6,"tags":{"document_id":"book"},"attributes":{}}'


@pytest.fixture(params=[pytest.param(case, id=case.name) for case in STORES if case.snapshots])
def case(request: pytest.FixtureRequest) -> StoreCase:
    """Each store that keeps its records in a database."""
    chosen: StoreCase = request.param
    return chosen


def _write(data_dir: Path, number: int) -> None:
    """Write a data directory of a format: an item with a vector, and a fragment if the format has them."""
    data_dir.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(data_dir / "records.db")) as database:
        database.executescript(_FORMAT_1)
        # In that format, "went" was a separate term beside "go".
        terms = pack_terms(Analyzer().terms("kiwi go") | {xxhash.xxh32_intdigest(b"went"): 2})
        vector = axis_vector(1).astype("<f4").tobytes()
        item = (7 << 36 | 1, 7, "a", 1, "s", NOW, NOW, None, '{"k":"v"}', None)
        rows = [(*item, '{"type":"text","text":"a kiwi"}', terms, 1, vector)]
        if number > 1:
            database.execute("ALTER TABLE items ADD COLUMN facet TEXT")
            item = (7 << 36 | 2, 7, "f", 2, "", NOW, NOW, None, None, '{"m":1}')
            rows = [(*rows[0], None), (*item, '{"type":"text","text":"kiwis"}', terms, 0, None, _FACET)]
        places = ",".join("?" * len(rows[0]))
        database.executemany(f"INSERT INTO items VALUES ({places})", rows)
        changes = [(7 << 36 | at, 1, row[2]) for at, row in enumerate(rows, 1)]
        database.executemany("INSERT INTO changes VALUES (?, ?, ?)", changes)
        database.execute(
            "INSERT INTO namespaces VALUES (7, ?, ?, ?, 0, 1, 4, 'client', 0, ?)",
            (NS, len(rows), len(rows), NOW),
        )
        database.execute(f"PRAGMA user_version = {number}")
        database.commit()


@pytest.mark.parametrize("number", [1, 2])
async def test_what_an_earlier_format_holds_is_kept_and_written_to(stores: Stores, number: int) -> None:
    _write(stores.data_dir, number)
    store = await stores.open()
    for _ in range(2):
        item = await get_item(store, "a", with_embedding=True)
        assert (item.content, item.session_id, item.labels) == (TextPart("a kiwi"), "s", {"k": "v"})
        assert item.importance is None and np.array_equal(item.embedding, axis_vector(1))
        assert await scan_ids(store, kinds=CONVERSATION_KINDS) == ["a"]
        store = await stores.reopen()
    if number > 1:
        fragment = await get_item(store, "f")
        assert (fragment.kind, fragment.metadata) == (ItemKind.FRAGMENT, {"m": 1})
        assert await scan_ids(store, tags=(("document_id", "book"),)) == ["f"]
    # The first version to be replaced is the first in the history.
    replaced = build_write("a", "kiwi", axis_vector(2), update_us=NOW + 1, provenance=Provenance("mallory"))
    await store.replace_item(NS, replaced)
    assert (await store.undo_items(NS, WritesBy(NOW, "mallory"), 0, 9, dry_run=False)).restored_count == 1
    item = await get_item(store, "a", with_embedding=True)
    assert item.content == TextPart("a kiwi") and np.array_equal(item.embedding, axis_vector(1))
    await store.add_items(NS, [build_write("new", "kiwi", importance=1.0)])
    await store.record_uses(NS, [1])
    store = await stores.reopen()
    everything = {"a", "new"} | ({"f"} if number > 1 else set())
    assert await words_found(store, "kiwi") == everything
    assert await words_found(store, "went") == await words_found(store, "goes") == everything - {"new"}
    hits = await (await store.read(NS)).search(SearchQuery(EVERYTHING, 9, axis_vector(1), described=True))
    assert (hits.importances, hits.use_counts) == ([0.5], [1])


@pytest.mark.parametrize("number", [1, 2])
async def test_stored_words_become_what_queries_ask_for(stores: Stores, number: int) -> None:
    _write(stores.data_dir, number)
    await stores.open()
    await stores.close()
    with contextlib.closing(sqlite3.connect(stores.data_dir / "records.db")) as database:
        ((packed,),) = database.execute("SELECT terms FROM items WHERE id = 'a'")
    terms, counts, _ = unpack_terms([packed])
    found = dict(zip(terms.tolist(), counts.tolist(), strict=True))
    assert found == Analyzer().terms("kiwi go went went")


async def test_a_format_of_a_newer_release_is_refused_and_left_alone(stores: Stores) -> None:
    _write(stores.data_dir, 2)
    path = stores.data_dir / "records.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 1000")
    with pytest.raises(CannotOpen, match="format 1000"):
        await stores.open()
    with contextlib.closing(sqlite3.connect(path)) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(items)")]
    assert "importance" not in columns
