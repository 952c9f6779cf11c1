"""How views read records, for every store that offers it: complete rows of one moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest

from contract.builders import (
    CONTENTS,
    MODEL,
    NOW,
    NS,
    axis_vector,
    build_item,
    build_pending,
    build_state,
    build_write,
    get_item,
    random_vectors,
)
from contract.cases import STORES, StoreCase
from memory_service.data_model import (
    UNSET_IMPORTANCE,
    ChangeType,
    Facet,
    Item,
    ItemKind,
    ItemWrite,
    NamespaceInfo,
    OnDuplicate,
    Provenance,
    SourceKind,
    VectorFill,
)
from memory_service.errors import NotFound
from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.value_columns import reader
from memory_service.indexes.view import NEVER_US
from memory_service.predicates import Field, FieldName
from memory_service.records.effects import Effect
from memory_service.records.row_source import FollowedSource, Follower, RowBatch, Rows
from memory_service.store import Store

T = TypeVar("T")


@pytest.fixture(params=[pytest.param(case, id=case.name) for case in STORES if case.row_source])
def case(request: pytest.FixtureRequest) -> StoreCase:
    """Each store that offers rows."""
    chosen: StoreCase = request.param
    return chosen


@pytest.fixture
def source(case: StoreCase, store: Store) -> FollowedSource:
    """The store's row source."""
    assert case.row_source is not None
    return case.row_source(store)


async def read(source: FollowedSource, work: Callable[[Rows], T]) -> T:
    """Read a namespace, which must exist."""
    found = await source.read_rows(NS, lambda rows: (work(rows),))
    assert found is not None
    return found[0]


async def info_of(store: Store, namespace: str = NS) -> NamespaceInfo:
    """Return the counts of a namespace, which must exist."""
    info = await store.namespace(namespace)
    assert info is not None
    return info


def described(batches: list[RowBatch]) -> dict[int, tuple[Any, ...]]:
    """Return the contents of batches by position, except for the keys of vectors."""
    return {
        position: row
        for batch in batches
        for position, *row in zip(
            batch.positions.tolist(), batch.sessions, batch.create_us.tolist(), batch.expire_us.tolist(),
            (batch.labels.get(at, {}) for at in range(len(batch.positions))),
            batch.kinds.tolist(), batch.terms, batch.importances.tolist(),
            batch.use_counts.tolist(), strict=True,
        )
    }  # fmt: skip


def keys(batches: list[RowBatch]) -> dict[int, int]:
    """Return the key of the vector of each position."""
    return {p: k for b in batches for p, k in zip(b.positions.tolist(), b.vector_keys.tolist(), strict=True)}


def everything(rows: Rows) -> tuple[Any, ...]:
    """Return everything that rows hold."""
    batches = list(rows.above(0))
    positions = sorted(described(batches))
    used, counts = rows.uses()
    with_vector = [position for position, key in sorted(keys(batches).items()) if key]
    return (
        rows.info,
        described(batches),
        keys(batches),
        described(list(rows.of_ids(["a", "b", "c", "d"], rows.info.revision))),
        rows.changes(0),
        sorted(rows.positions().tolist()),
        sorted(zip(used.tolist(), counts.tolist(), strict=True)),
        rows.vector_keys(positions).tolist(),
        [vector for vectors in rows.vectors(with_vector) for vector in vectors.tolist()],
        [
            (p.tolist(), values)
            for p, values in rows.values([Field(FieldName.ID), Field(FieldName.IMPORTANCE)])
        ],
        rows.manifest(),
    )


async def test_of_no_namespace_nothing_is_read(store: Store, source: FollowedSource) -> None:
    await store.add_items("people/bob", [build_write("a")])
    assert await source.read_rows(NS, lambda rows: pytest.fail("there are no rows")) is None
    await store.delete_namespace("people/bob")
    assert await source.read_rows("people/bob", lambda rows: pytest.fail("there are no rows")) is None


async def test_work_is_done_in_another_thread_and_what_it_raises_is_raised(
    store: Store, source: FollowedSource
) -> None:
    def fail(rows: Rows) -> None:
        next(rows.above(0))
        raise NotFound.namespace("x")

    await store.add_items(NS, [build_write(name) for name in "abc"])
    assert await read(source, lambda _: threading.get_ident()) != threading.get_ident()
    for _ in range(8):
        with pytest.raises(NotFound):
            await read(source, fail)
    assert await read(source, lambda rows: rows.info.item_count) == 3


async def test_rows_are_those_of_one_moment(store: Store, source: FollowedSource) -> None:
    writes = [build_write(name, name, vector) for name, vector in zip("abc", random_vectors(3), strict=True)]
    await store.add_items(NS, writes)
    await store.record_uses(NS, [1])
    info = await store.namespace(NS)
    assert info is not None
    await source.keep_manifest(info.uid, "the first")
    begun, go_on = threading.Event(), threading.Event()

    def slowly(rows: Rows) -> tuple[Any, ...]:
        begun.set()
        assert go_on.wait(30)
        return everything(rows)

    before = await read(source, everything)
    assert before[0] == info
    reading = asyncio.create_task(read(source, slowly))
    assert await asyncio.to_thread(begun.wait, 30)
    changed = [build_write("a", "other", axis_vector(0, 16)), build_write("d", "new", axis_vector(1, 16))]
    await store.add_items(NS, changed, on_duplicate=OnDuplicate.REPLACE, removals=["b"])
    await store.record_uses(NS, [1, 3])
    await source.keep_manifest(info.uid, "the second")
    go_on.set()
    assert await reading == before
    after = await read(source, everything)
    assert [now == then for now, then in zip(after, before, strict=True)] == [False] * len(after)


async def test_what_was_read_is_published_and_what_was_acknowledged_is_read(
    store: Store, source: FollowedSource
) -> None:
    async def write() -> None:
        for n in range(60):
            receipt = await store.add_items(NS, [build_write(f"i{n}")])
            assert await read(source, lambda rows: rows.info.revision) >= receipt.revision

    async def look() -> None:
        while not writing.done():
            revision = await read(source, lambda rows: rows.info.revision)
            info = await store.namespace(NS)
            assert info is not None and info.revision >= revision

    await store.add_items(NS, [build_write("a")])
    writing = asyncio.create_task(write())
    await asyncio.gather(look(), look())
    await writing


async def test_a_row_has_what_was_written(store: Store, source: FollowedSource) -> None:
    await store.add_items("people/bob", [build_write("b", "another's")])
    plain = build_write("plain", "kiwi")
    full = build_write(
        "full", "a plum", session_id="s", create_us=NOW - 7, expire_us=NOW + 9, importance=0.25,
        labels={"topic": "x"}, facet=Facet(ItemKind.MESSAGE, tags={"of": "y"}),
    )  # fmt: skip
    tagged = build_write("tagged", facet=Facet(ItemKind.USER_MEMORY, tags={"of": "z"}))
    await store.add_items(NS, [plain, full, tagged])
    await store.record_uses(NS, [2, 3])
    await store.record_uses(NS, [2])
    terms = [Analyzer().item_terms(write) for write in (plain, full, tagged)]
    expected = {
        1: ["", NOW, NEVER_US, {}, ItemKind.PLAIN, terms[0], UNSET_IMPORTANCE, 0],
        2: ["s", NOW - 7, NOW + 9, {"topic": "x", ("of",): "y"}, ItemKind.MESSAGE, terms[1], 0.25, 2],
        3: ["", NOW, NEVER_US, {("of",): "z"}, ItemKind.USER_MEMORY, terms[2], UNSET_IMPORTANCE, 1],
    }
    batches = await read(source, lambda rows: list(rows.above(0)))
    assert described(batches) == expected
    for batch in batches:
        for column, kind in (
            (batch.positions, np.int64), (batch.create_us, np.int64), (batch.expire_us, np.int64),
            (batch.kinds, np.int8), (batch.vector_keys, np.int64), (batch.importances, np.float64),
            (batch.use_counts, np.int32),
        ):  # fmt: skip
            assert column.dtype == kind
    replaced = build_write("full", "bare")
    await store.replace_item(NS, replaced)
    expected[2] = [
        "",
        NOW,
        NEVER_US,
        {},
        ItemKind.PLAIN,
        Analyzer().item_terms(replaced),
        UNSET_IMPORTANCE,
        2,
    ]
    assert described(await read(source, lambda rows: list(rows.above(0)))) == expected


async def test_many_rows_come_in_batches_in_the_order_of_positions(
    store: Store, source: FollowedSource
) -> None:
    count, vectors = 9000, random_vectors(9000, 4)
    writes = [build_write(f"i{n}", "", vectors[n]) for n in range(count)]
    await store.add_items(NS, writes)

    def look(rows: Rows) -> None:
        for after in (0, 4000, count - 1, count, count + 5):
            batches = list(rows.above(after))
            positions = [position for batch in batches for position in batch.positions.tolist()]
            assert positions == list(range(after + 1, count + 1))
            assert all(0 < len(batch.positions) <= 10_000 for batch in batches)
        ids = [f"i{n}" for n in range(count)]
        assert sorted(described(list(rows.of_ids(ids, count)))) == list(range(1, count + 1))
        read_values = list(rows.values([Field(FieldName.ID)]))
        assert [p for some, _ in read_values for p in some.tolist()] == list(range(1, count + 1))
        assert [item_id for _, (column,) in read_values for item_id in column] == ids
        for wanted in (range(1, count + 1), range(2, count, 2), range(2, count, 7), [5], []):
            read = np.concatenate([np.empty((0, 4)), *rows.vectors(list(wanted))])
            assert np.array_equal(read, vectors[[position - 1 for position in wanted]])

    await read(source, look)


async def test_rows_of_ids_are_those_that_there_are_up_to_a_position(
    store: Store, source: FollowedSource
) -> None:
    await store.add_items(NS, [build_write(name, f"text {name}") for name in "abcd"])
    await store.delete_item(NS, "b", now_us=NOW)
    await store.replace_item(NS, build_write("a", "other"))
    await store.add_items(NS, [build_write("b")])
    ids = ["a", "b", "c", "x", ""]

    def look(rows: Rows) -> None:
        all_rows = described(list(rows.above(0)))
        assert sorted(described(list(rows.of_ids(ids, 4)))) == [1, 3]
        assert sorted(described(list(rows.of_ids(ids, 2)))) == [1]
        found = described(list(rows.of_ids(ids, rows.info.revision)))
        assert found == {position: all_rows[position] for position in (1, 3, 7)}
        assert list(rows.of_ids([], 4)) == []

    await read(source, look)


async def test_changes_are_those_above_a_revision(store: Store, source: FollowedSource) -> None:
    await store.add_items(NS, [build_write("a"), build_write("b", expire_us=NOW)])
    await store.replace_item(NS, build_write("a"))
    await store.save_state(NS, build_state("k"))
    await store.delete_item(NS, "a", now_us=NOW)
    await store.remove_expired(NOW + 1, 0, 10)
    expected = [
        (ChangeType.ITEM_ADDED, "a"), (ChangeType.ITEM_ADDED, "b"), (ChangeType.ITEM_UPDATED, "a"),
        (ChangeType.STATE_SAVED, "k"), (ChangeType.ITEM_DELETED, "a"), (ChangeType.ITEM_EXPIRED, "b"),
    ]  # fmt: skip
    for since in range(7):
        assert sorted(await read(source, lambda rows, since=since: rows.changes(since))) == sorted(
            expected[since:]
        )
    await store.reset(NS)
    # Changes before the reset are not kept, so there are fewer changes than revisions.
    assert await read(source, lambda rows: (rows.info.revision, rows.changes(0))) == (
        7,
        [(ChangeType.RESET, "")],
    )


async def test_positions_and_uses_are_those_of_the_items_that_there_are(
    store: Store, source: FollowedSource
) -> None:
    def look(rows: Rows) -> tuple[list[int], list[tuple[int, int]]]:
        used, counts = rows.uses()
        return sorted(rows.positions().tolist()), sorted(zip(used.tolist(), counts.tolist(), strict=True))

    await store.add_items(NS, [build_write(name) for name in "abcd"])
    await store.add_items("people/bob", [build_write("a")])
    await store.record_uses("people/bob", [1])
    assert await read(source, look) == ([1, 2, 3, 4], [])
    for _ in range(3):
        await store.record_uses(NS, [2, 4])
    await store.delete_item(NS, "b", now_us=NOW)
    assert await read(source, look) == ([1, 3, 4], [(4, 3)])
    await store.reset(NS)
    assert await read(source, look) == ([], [])


async def test_the_key_of_a_vector_is_never_that_of_another(store: Store, source: FollowedSource) -> None:
    seen: set[int] = set()

    async def look() -> dict[int, int]:
        def both(rows: Rows) -> tuple[dict[int, int], list[int]]:
            held = keys(list(rows.above(0)))
            assert rows.vector_keys([]).tolist() == []
            assert rows.vector_keys([rows.info.revision + 7]).tolist() == [0]
            return held, rows.vector_keys(sorted(held)).tolist()

        held, asked = await read(source, both)
        assert asked == [held[position] for position in sorted(held)]
        return held

    def note(held: dict[int, int], *positions: int) -> None:
        fresh = {held[position] for position in positions}
        assert len(fresh) == len(positions) and min(fresh) > 0 and not fresh & seen
        seen.update(fresh)

    first = [
        build_write("a", "a", axis_vector(0), model=MODEL),
        build_write("b", "b", axis_vector(0), model=MODEL),
    ]
    await store.add_items(NS, [*first, build_write("none"), build_pending("waits", "w")])
    held = await look()
    note(held, 1, 2)
    assert (held[3], held[4]) == (0, 0)
    await store.replace_item(NS, build_write("a", "a", axis_vector(1), model=MODEL))
    keeping = ItemWrite(build_item("b", "b", labels={"k": "v"}), "b", keep_vector=True)
    await store.replace_item(NS, keeping)
    held_b, held = held[2], await look()
    note(held, 1)
    assert held[2] == held_b
    info = await store.namespace(NS)
    assert info is not None
    waiting = await get_item(store, "waits")
    await store.fill_vectors(NS, info.uid, MODEL, [VectorFill(4, waiting.revision, axis_vector(2))])
    note(await look(), 4)
    await store.begin_reembedding(NS, "local:b", 4, replace_client_vectors=False)
    assert set((await look()).values()) == {0}
    items = await store.pending_items(NS, 0, 10)
    fills = [VectorFill(item.position, item.revision, axis_vector(3)) for item in items]
    await store.fill_vectors(NS, info.uid, "local:b", fills)
    note(await look(), *(fill.position for fill in fills))


def various_items() -> list[Item]:
    """Return items that differ in everything a predicate can test."""
    contents = [build_item(name, content=content) for name, content in CONTENTS.items()]
    return [
        *contents,
        build_item("weighed", importance=0.5, update_us=NOW + 3),
        build_item("labelled", labels={"k": "v", "": "empty"}),
        build_item("described", metadata={"k": {"deep": [1, "x"]}, "n": None}),
        build_item("empty metadata", metadata={}),
        build_item("written", provenance=Provenance("ada", "key-1", trust=0.25)),
        build_item("said", provenance=Provenance("", source=SourceKind.WEB)),
        build_item("fragment", facet=Facet(ItemKind.FRAGMENT)),
    ]


async def test_values_of_fields_are_those_of_the_items(store: Store, source: FollowedSource) -> None:
    paths = {
        FieldName.LABELS: [("k",), ("",), ("x",)],
        FieldName.METADATA: [("k",), ("k", "deep"), ("n",), ("n", "k")],
    }
    fields = [
        Field(name, path)
        for name in FieldName
        if name not in (FieldName.SESSION, FieldName.KIND, FieldName.CREATE_TIME, FieldName.EXPIRE_TIME)
        for path in paths.get(name, [()])
    ]
    items = various_items()
    await store.add_items(NS, [ItemWrite(item, "") for item in items])
    kept = [await get_item(store, item.id) for item in items]
    expected = [[reader(wanted)(item) for item in kept] for wanted in fields]

    def look(rows: Rows, wanted: list[Field]) -> list[list[Any]]:
        batches = list(rows.values(wanted))
        assert [p for some, _ in batches for p in some.tolist()] == [item.position for item in kept]
        return [[value for _, columns in batches for value in columns[n]] for n in range(len(wanted))]

    assert await read(source, lambda rows: look(rows, fields)) == expected
    for field, column in zip(fields, expected, strict=True):
        assert await read(source, lambda rows, field=field: look(rows, [field])) == [column]


async def test_a_manifest_is_kept_as_long_as_it_is_true(store: Store, source: FollowedSource) -> None:
    async def add(namespace: str) -> int:
        await store.add_items(namespace, [build_write("a", "a", axis_vector(0), model=MODEL)])
        info = await store.namespace(namespace)
        assert info is not None
        return info.uid

    uid, other = await add(NS), await add("people/bob")
    assert await read(source, lambda rows: rows.manifest()) is None
    assert await source.keep_manifest(other, "of another")
    assert await read(source, lambda rows: rows.manifest()) is None
    for name in ("the first", "the second"):
        assert await source.keep_manifest(uid, name)
        assert await read(source, lambda rows: rows.manifest()) == name
    await store.begin_reembedding(NS, "local:b", 4, replace_client_vectors=False)
    assert await read(source, lambda rows: rows.manifest()) is None
    assert await source.keep_manifest(uid, "the third")
    await store.reset(NS)
    assert await read(source, lambda rows: rows.manifest()) is None
    await store.delete_namespace(NS)
    assert not await source.keep_manifest(uid, "the fourth")
    assert await add(NS) != uid
    assert not await source.keep_manifest(uid, "the fourth")
    assert await read(source, lambda rows: rows.manifest()) is None
    assert await source.read_rows("people/bob", lambda rows: rows.manifest()) == "of another"


async def test_the_format_of_the_rows_is_told(source: FollowedSource) -> None:
    assert source.records_format > 0


async def test_manifests_are_those_of_all_namespaces(store: Store, source: FollowedSource) -> None:
    for namespace in ("people/ann", "people/bob"):
        await store.add_items(namespace, [build_write("a")])
    uids = [(await info_of(store, namespace)).uid for namespace in ("people/ann", "people/bob")]
    assert await source.manifests() == []
    for uid in uids:
        await source.keep_manifest(uid, f"of {uid}")
    assert sorted(await source.manifests()) == sorted(f"of {uid}" for uid in uids)
    await store.delete_namespace("people/ann")
    assert await source.manifests() == [f"of {uids[1]}"]


class Noted(Follower):
    """Records its calls."""

    def __init__(self) -> None:
        self.notes: list[object] = []

    def begin(self, info: NamespaceInfo, *, emptied: bool) -> None:
        self.notes.append(("begin", info.name, emptied))

    def end(self, namespace: str, uid: int) -> None:
        self.notes.append(("end", namespace))

    def publish(self, namespace: str, effect: Effect) -> None:
        added, removed = [entry.position for entry in effect.added], list(effect.removed)
        if added or removed or effect.use_counts:
            self.notes.append((namespace, added, removed, dict(effect.use_counts)))


async def test_a_follower_learns_of_each_commit_in_order_before_the_write_returns(
    store: Store, source: FollowedSource
) -> None:
    follower = Noted()
    source.follow(follower)
    await asyncio.gather(*(store.add_items(NS, [build_write(f"i{n}")]) for n in range(20)))
    assert follower.notes == [("begin", NS, False), *((NS, [n], [], {}) for n in range(1, 21))]
    follower.notes.clear()
    await store.record_uses(NS, [3, 3])
    assert follower.notes == [(NS, [], [], {3: 2})]
    await store.delete_item(NS, "i2", now_us=NOW)
    await store.reset(NS)
    await store.delete_namespace(NS)
    assert follower.notes[1:] == [(NS, [], [3], {}), ("begin", NS, True), ("end", NS)]


async def test_items_of_a_namespace_that_is_gone_are_not_loaded(store: Store, source: FollowedSource) -> None:
    await store.add_items(NS, [build_write("a", "kiwi", axis_vector(0))])
    info = await info_of(store)
    (item, missing) = await source.load_items(info, [1, 2], with_embedding=True)
    assert missing is None and item is not None and item.embedding is not None
    await store.delete_namespace(NS)
    await store.add_items(NS, [build_write("b")])
    assert await source.load_items(info, [1], with_embedding=False) == [None]
