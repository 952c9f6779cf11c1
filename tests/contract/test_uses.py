"""How often items were used, how important they are and when they were created, as searches report it."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from contract.builders import (
    EVERYTHING,
    NOW,
    NS,
    PLENTY,
    axis_vector,
    build_write,
    get_item,
)
from contract.conftest import Reopen, Stores
from memory_service.data_model import UNSET_IMPORTANCE, OnDuplicate, SearchQuery
from memory_service.store import Store

Told = dict[str, tuple[int, float, int]]


async def _told(store: Store, namespace: str = NS, text: str = "kiwi") -> Told:
    """Return (create_us, importance, use_count) of the items that a text finds, by id."""
    hits = await (await store.read(namespace)).search(
        SearchQuery(EVERYTHING, PLENTY, None, text, described=True)
    )
    items = await (await store.read(namespace)).load_items(hits.positions)
    columns = zip(hits.create_us or (), hits.importances or (), hits.use_counts or (), strict=True)
    return {item.id: row for item, row in zip(items, columns, strict=True) if item is not None}


async def _use_counts(store: Store, namespace: str = NS) -> dict[str, int]:
    return {item_id: row[2] for item_id, row in (await _told(store, namespace)).items()}


async def _positions(store: Store, *ids: str) -> list[int]:
    return [(await get_item(store, item_id)).position for item_id in ids]


async def test_the_columns_are_there_only_when_they_are_asked_for(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "kiwi", axis_vector(0))])
    for vector, text in ((None, "kiwi"), (axis_vector(0), None), (axis_vector(0), "kiwi")):
        plain = await (await store.read(NS)).search(SearchQuery(EVERYTHING, 5, vector, text))
        assert (plain.create_us, plain.importances, plain.use_counts) == (None, None, None)
        told = await (await store.read(NS)).search(SearchQuery(EVERYTHING, 5, vector, text, described=True))
        assert (told.create_us, told.importances, told.use_counts) == ([NOW], [UNSET_IMPORTANCE], [0])
        assert told.positions == plain.positions


async def test_each_hit_has_its_own_columns(store: Store) -> None:
    writes = [
        build_write(f"i{n}", "kiwi", axis_vector(n % 3), create_us=NOW - n, importance=n / 80)
        for n in range(80)
    ]
    await store.add_items(NS, writes)
    await store.record_uses(NS, await _positions(store, "i3", "i79"))
    queries = [
        SearchQuery(EVERYTHING, PLENTY, axis_vector(n), text, described=n != 1)
        for n in range(3)
        for text in (None, "kiwi")
    ]
    # Together, because a store may answer them together.
    reading = await store.read(NS)
    answers = await asyncio.gather(*(reading.search(query) for query in queries))
    for query, hits in zip(queries, answers, strict=True):
        assert (hits.create_us is not None) == query.described
        if not query.described:
            continue
        numbers = [NOW - create_us for create_us in hits.create_us or ()]
        items = await (await store.read(NS)).load_items(hits.positions)
        assert [item and item.id for item in items] == [f"i{n}" for n in numbers]
        assert hits.importances == [n / 80 for n in numbers]
        assert hits.use_counts == [int(n in (3, 79)) for n in numbers]


async def test_a_namespace_that_does_not_exist_has_no_columns_and_begins_with_no_use(store: Store) -> None:
    await store.record_uses(NS, [1, 2])
    assert await store.namespace(NS) is None
    assert await _told(store) == {}


async def test_uses_are_counted_each_time(store: Store) -> None:
    await store.add_items(NS, [build_write(name, "kiwi") for name in "abc"])
    a, b = await _positions(store, "a", "b")
    await store.record_uses(NS, [a, b])
    await store.record_uses(NS, [b, b])
    await store.record_uses(NS, [])
    assert await _use_counts(store) == {"a": 1, "b": 3, "c": 0}


async def test_uses_that_are_told_at_once_all_count(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "kiwi")])
    positions = await _positions(store, "a")
    await asyncio.gather(*(store.record_uses(NS, positions) for _ in range(20)))
    assert await _use_counts(store) == {"a": 20}


async def test_uses_where_there_is_no_item_are_passed_over(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "kiwi"), build_write("gone", "kiwi")])
    a, gone = await _positions(store, "a", "gone")
    await store.delete_item(NS, "gone", now_us=NOW)
    await store.record_uses(NS, [gone, a, a + 1000])
    assert await _use_counts(store) == {"a": 1}


async def test_a_use_is_no_change(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "kiwi")])
    before, changes = await store.namespace(NS), await store.read_changes(NS, 0, PLENTY)
    waiter = asyncio.create_task(store.wait_for_change(NS, before.revision if before else 0))
    await store.record_uses(NS, await _positions(store, "a"))
    assert await store.namespace(NS) == before
    assert await store.read_changes(NS, 0, PLENTY) == changes
    assert not waiter.done()
    waiter.cancel()
    assert (await get_item(store, "a")).revision == (before and before.revision)


async def test_the_count_stays_when_an_item_is_replaced(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "kiwi", importance=0.1), build_write("b", "kiwi")])
    await store.record_uses(NS, await _positions(store, "a", "b", "b"))
    await store.replace_item(NS, build_write("a", "kiwi and more", create_us=NOW - 7, importance=0.9))
    again = build_write("b", "kiwi", importance=0.0)
    await store.add_items(NS, [again], on_duplicate=OnDuplicate.REPLACE)
    assert await _told(store) == {"a": (NOW - 7, 0.9, 1), "b": (NOW, 0.0, 2)}


async def test_the_count_goes_with_its_item(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "kiwi"), build_write("b", "kiwi", expire_us=NOW + 1)])
    await store.record_uses(NS, await _positions(store, "a", "b"))
    await store.delete_item(NS, "a", now_us=NOW)
    await store.add_items(NS, [build_write("a", "kiwi")])
    later = NOW + 5
    await store.add_items(NS, [build_write("b", "kiwi", create_us=later, update_us=later)])
    assert await _use_counts(store) == {"a": 0, "b": 0}
    await store.record_uses(NS, await _positions(store, "a"))
    await store.reset(NS)
    await store.add_items(NS, [build_write("a", "kiwi")])
    assert await _use_counts(store) == {"a": 0}


async def test_counts_are_of_one_namespace(store: Store) -> None:
    for namespace in (NS, "other"):
        await store.add_items(namespace, [build_write("a", "kiwi")])
    await store.record_uses(NS, await _positions(store, "a"))
    assert (await _use_counts(store), await _use_counts(store, "other")) == ({"a": 1}, {"a": 0})
    await store.delete_namespace(NS)
    await store.add_items(NS, [build_write("a", "kiwi")])
    assert await _use_counts(store) == {"a": 0}


async def test_uses_while_a_view_is_read_are_not_lost(stores: Stores) -> None:
    store = await stores.open()
    await store.add_items(NS, [build_write(f"i{n}", "kiwi") for n in range(300)])
    if store.capabilities.durable:
        store = await stores.reopen()
    (position,) = await _positions(store, "i7")

    async def use() -> None:
        for _ in range(10):
            await store.record_uses(NS, [position])
            await store.add_items(NS, [build_write("i8", "kiwi")], on_duplicate=OnDuplicate.REPLACE)

    await asyncio.gather(_use_counts(store), use())
    counts = await _use_counts(store)
    assert (counts["i7"], sum(counts.values())) == (10, 10)


@pytest.mark.parametrize("importance", [None, 0.0, 1 / 3, 1.0])
async def test_importance_comes_back_equal_and_an_item_without_one_has_none(
    store: Store, importance: float | None
) -> None:
    await store.add_items(NS, [build_write("a", "kiwi", importance=importance)])
    kept = await get_item(store, "a")
    assert kept.importance == importance
    assert (await (await store.read(NS)).load_items([kept.position])) == [kept]
    expected = UNSET_IMPORTANCE if importance is None else importance
    assert await _told(store) == {"a": (NOW, expected, 0)}


async def test_uses_and_importance_outlive_the_process(durable_store: Store, reopen: Reopen) -> None:
    await durable_store.add_items(NS, [build_write("a", "kiwi", importance=0.25), build_write("b", "kiwi")])
    await durable_store.record_uses(NS, await _positions(durable_store, "a", "b", "b"))
    for _ in range(2):
        store = await reopen()
        assert await _told(store) == {"a": (NOW, 0.25, 1), "b": (NOW, UNSET_IMPORTANCE, 2)}


async def test_uses_are_part_of_a_backup(backup_store: Store, stores: Stores) -> None:
    await backup_store.add_items(NS, [build_write("a", "kiwi", np.ones(3), importance=0.75)])
    await backup_store.record_uses(NS, await _positions(backup_store, "a"))
    await backup_store.backup("b-1", lambda done, total: None)
    copy = await stores.open(stores.data_dir / "backups" / "b-1")
    assert await _told(copy) == {"a": (NOW, 0.75, 1)}
