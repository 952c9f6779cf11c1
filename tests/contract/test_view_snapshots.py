"""The columns saved beside a graph: a view loaded from them agrees with the records after any later write."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contract.builders import (
    MODEL,
    NOW,
    NS,
    SECOND,
    build_pending,
    build_state,
    build_write,
    found_by_vector,
    random_vectors,
)
from contract.cases import GRAPH
from contract.view_contents import view_contents
from faults.scale import drawn, rounds
from memory_service.data_model import (
    CLIENT_MODEL,
    Facet,
    ItemKind,
    ItemWrite,
    OnDuplicate,
    VectorFill,
    WritesBy,
)
from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.view import NamespaceView
from memory_service.records.sqlite.connection import connect
from memory_service.records.sqlite.encryption import DataKey
from memory_service.records.sqlite.row_source import reading
from memory_service.records.sqlite.schema import FORMAT
from memory_service.stores import SqliteStore
from memory_service.views.loading import load_view
from memory_service.views.snapshots import Snapshots

DIMENSION = 16
VECTORS = random_vectors(400, DIMENSION, stream=77)
KEY = DataKey(b"k" * 32)
KINDS = [None, None, ItemKind.MESSAGE, ItemKind.USER_MEMORY, ItemKind.DOCUMENT]


class Writer:
    """Makes random changes of every kind to the items of a namespace."""

    def __init__(self, store: SqliteStore, chance: random.Random) -> None:
        self.store = store
        self.chance = chance
        self.model = CLIENT_MODEL
        self.written = 0

    def write(self, item_id: str, *, pending: bool = False) -> ItemWrite:
        chance = self.chance
        kind = chance.choice(KINDS)
        fields: dict[str, Any] = {
            "session_id": chance.choice(["", "a", "b", f"s{self.written}"]),
            "labels": {"topic": chance.choice("xyz")} if chance.random() < 0.5 else {},
            "create_us": NOW + chance.randrange(10),
            "expire_us": NOW + SECOND if chance.random() < 0.2 else None,
            "importance": chance.choice([None, 0.0, 0.7]),
            "facet": None if kind is None else Facet(kind, tags={"of": chance.choice("pq")}),
        }
        self.written += 1
        text = " ".join(chance.choices(["kiwi", "plum", "fig", f"w{self.written}"], k=chance.randrange(6)))
        if pending:
            return build_pending(item_id, text, model=self.model, dimension=DIMENSION, **fields)
        vector = None if chance.random() < 0.2 else chance.choice(VECTORS)
        return build_write(item_id, text, vector, model=self.model, **fields)

    def ids(self, count: int) -> list[str]:
        return self.chance.sample([f"i{n}" for n in range(150)], count)

    async def fill(self) -> None:
        writes = [self.write(f"i{n}") for n in range(120)]
        await self.store.add_items(NS, writes)

    async def put(self) -> None:
        removed, *written = self.ids(self.chance.randrange(2, 12))
        writes = [self.write(item_id) for item_id in written]
        await self.store.add_items(NS, writes, on_duplicate=OnDuplicate.REPLACE, removals=[removed])

    async def keep_vectors(self) -> None:
        for item_id in await self._there(3):
            write = self.write(item_id)
            write.item.embedding, write.keep_vector, write.model = None, True, ""
            await self.store.replace_item(NS, write)

    async def delete(self) -> None:
        for item_id in await self._there(4):
            await self.store.delete_item(NS, item_id, now_us=NOW)

    async def expire(self) -> None:
        await self.store.remove_expired(NOW + 2 * SECOND, 0, self.chance.choice([3, 1000]))

    async def use(self) -> None:
        items = await self.store.get_items(NS, self.ids(20))
        await self.store.record_uses(NS, [item.position for item in items.values()])

    async def wait_for_vectors(self) -> None:
        if self.model == CLIENT_MODEL:
            await self.move()
        writes = [self.write(item_id, pending=True) for item_id in self.ids(5)]
        await self.store.add_items(NS, writes, on_duplicate=OnDuplicate.REPLACE)

    async def fill_in(self) -> None:
        info = await self.store.namespace(NS)
        pending = await self.store.pending_items(NS, 0, self.chance.choice([3, 1000]))
        fills = [VectorFill(i.position, i.revision, self.chance.choice([*VECTORS, None])) for i in pending]
        if info is not None and fills:
            await self.store.fill_vectors(NS, info.uid, info.model, fills)

    async def move(self) -> None:
        self.model = f"{MODEL}-{self.written}"
        await self.store.begin_reembedding(NS, self.model, DIMENSION, replace_client_vectors=True)
        await self.fill_in()

    async def state(self) -> None:
        await self.store.save_state(NS, build_state("k", self.written))

    async def undo(self) -> None:
        await self.store.undo_items(NS, WritesBy(0, ""), 0, 5, dry_run=False)

    async def reset(self) -> None:
        await self.store.reset(NS)
        self.model = CLIENT_MODEL
        await self.fill()

    async def _there(self, count: int) -> list[str]:
        return sorted(await self.store.get_items(NS, self.ids(count)))


STEPS = ("put", "put", "keep_vectors", "delete", "expire", "use", "wait_for_vectors", "fill_in", "state")
RARE = ("move", "reset", "undo")


def load(data_dir: Path, key: DataKey | None) -> NamespaceView:
    """Return the view that a newly started process loads."""
    connection = connect(data_dir / "records.db", key=key.derive("records") if key else None)
    with closing(connection):
        with reading(connection, NS) as rows:
            assert rows is not None
            return load_view(rows, Snapshots(data_dir / "indexes", FORMAT, key), Analyzer(), GRAPH)


def compare(data_dir: Path, scratch: Path, key: DataKey | None) -> bool:
    """Compare the view of a folder, its log included, with a view of the records alone.

    Return whether columns of a snapshot were used.
    """
    shutil.copytree(data_dir, scratch)
    view = load(scratch, key)
    shutil.rmtree(scratch / "indexes")
    assert view_contents(view) == view_contents(load(scratch, key))
    shutil.rmtree(scratch)
    return view.saved_revision >= 0


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
async def test_a_view_made_of_a_snapshot_says_what_the_records_say(
    tmp_path: Path, key: DataKey | None
) -> None:
    chance = drawn(f"view snapshots {key is None}")
    data_dir = tmp_path / "data"
    used: Counter[str] = Counter()
    for _ in range(rounds(2, 12)):
        store = SqliteStore(data_dir, GRAPH, key)
        await store.open()
        writer = Writer(store, chance)
        if await store.namespace(NS) is None:
            await writer.fill()
        else:
            await store.reset(NS)
            await writer.fill()
        await store.flush()
        for _ in range(10):
            steps = [chance.choice(STEPS if chance.random() < 0.9 else RARE) for _ in range(3)]
            for step in steps:
                await getattr(writer, step)()
            print(steps)  # shown when the test fails
            used.update(steps if compare(data_dir, tmp_path / "copy", key) else ())
            # Often, because vectors that are given up take the snapshot with them.
            if chance.random() < 0.5:
                # From a view that is changed in place and contains dead entries.
                await found_by_vector(store, VECTORS[0])
                await store.flush()
        await store.close()
    assert sum(used.values()) >= 3, "hardly ever were columns of a snapshot used"


async def test_a_view_made_of_a_snapshot_follows_what_is_written_then(tmp_path: Path) -> None:
    chance = drawn("views go on")
    for _ in range(rounds(2, 20)):
        data_dir = tmp_path / "data"
        store = SqliteStore(data_dir, GRAPH)
        await store.open()
        await Writer(store, chance).fill()
        await store.close()
        await store.open()
        writer = Writer(store, chance)
        for step in chance.choices(STEPS[:6], k=12):
            # The first one finds a view that was loaded from files alone.
            await found_by_vector(store, VECTORS[0])
            await getattr(writer, step)()
        view = store.views.cache.peek(NS)
        assert view is not None and view.saved_revision >= 0
        contents = view_contents(view)
        await store.close()
        shutil.rmtree(data_dir / "indexes")
        assert contents == view_contents(load(data_dir, None))
        shutil.rmtree(data_dir)
