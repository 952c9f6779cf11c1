"""Items in the order of a field, against sorting all that is stored, after any mixture of changes."""

from __future__ import annotations

from functools import cmp_to_key
from random import Random
from typing import Any

import pytest

from contract.builders import EVERYTHING, NOW, NS, build_write
from contract.predicate_choices import IDS, random_write
from contract.test_filter_model import _matches, _random_filter
from faults.scale import rounds
from memory_service.data_model import Item, ItemFilter, OnDuplicate
from memory_service.ordering import COMPARED_CHARS_MAX, Ordering, SortKey
from memory_service.predicates import Field, FieldName
from memory_service.store import Store

METADATA = [Field(FieldName.METADATA, path) for path in (("x",), ("x", "z"), ("y.y",), ("none",))]
FIELDS = [*map(Field, (FieldName.CREATE_TIME, FieldName.UPDATE_TIME, FieldName.REVISION)), *METADATA]
_MISSING = object()


def _value(item: Item, field: Field) -> Any:
    match field.name:
        case FieldName.CREATE_TIME:
            return item.create_us
        case FieldName.UPDATE_TIME:
            return item.update_us
        case FieldName.REVISION:
            return item.revision
    value: Any = item.metadata
    for key in field.path:
        value = value.get(key, _MISSING) if isinstance(value, dict) else _MISSING
    return value


def _rank(value: Any) -> int:
    types = [type(None), bool, int | float, str, list | dict]
    return next(rank for rank, kind in enumerate(types) if isinstance(value, kind))


def _compare(one: Any, other: Any) -> int:
    if _rank(one) != _rank(other):
        return _rank(one) - _rank(other)
    if one is None or isinstance(one, list | dict):
        return 0
    return (one > other) - (one < other)


def in_order(items: list[Item], ordering: Ordering) -> list[Item]:
    """Sort items; independent of the code of the stores."""
    sign = -1 if ordering.descending else 1

    def compare(one: Item, other: Item) -> int:
        first, second = _value(one, ordering.field), _value(other, ordering.field)
        if (first is _MISSING) != (second is _MISSING):
            return 1 if first is _MISSING else -1
        by_value = 0 if first is _MISSING else _compare(first, second)
        return sign * (by_value or one.position - other.position)

    return sorted(items, key=cmp_to_key(compare))


async def _change(store: Store, stored: dict[str, Item], choose: Random) -> None:
    kind = choose.random()
    if kind < 0.2 and stored:
        gone = choose.choice(sorted(stored))
        await store.delete_item(NS, gone, now_us=NOW)
        del stored[gone]
        return
    writes = [random_write(choose, name) for name in choose.sample(IDS, choose.randrange(1, 5))]
    await store.add_items(NS, writes, on_duplicate=OnDuplicate.REPLACE)
    stored.update({write.item.id: write.item for write in writes})


async def _found(
    store: Store, wanted: ItemFilter, ordering: Ordering, limit: int, **fields: Any
) -> list[int]:
    found = await (await store.read(NS)).ordered(wanted, ordering, limit, **fields)
    return [position for position, _ in found]


@pytest.mark.parametrize("seed", range(rounds(2, 30)))
async def test_items_come_in_the_order_of_their_values_after_any_changes(store: Store, seed: int) -> None:
    choose = Random(seed)
    stored: dict[str, Item] = {}
    for step in range(60):
        await _change(store, stored, choose)
        for _ in range(4):
            wanted = choose.choice([EVERYTHING, _random_filter(choose)])
            ordering = Ordering(choose.choice(FIELDS), choose.random() < 0.5)
            matching = [item for item in stored.values() if _matches(item, wanted)]
            expected = [item.position for item in in_order(matching, ordering)]
            limit, skip = choose.choice([-1, 0, 1, 3]), choose.choice([0, 0, 1, 5, 100])
            end = None if limit < 0 else skip + limit
            assert await _found(store, wanted, ordering, limit, skip=skip) == expected[skip:end], (
                step,
                ordering,
            )


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("field", FIELDS, ids=lambda field: "/".join((field.name, *field.path)))
async def test_pages_that_begin_at_a_place_have_each_item_once(
    store: Store, field: Field, descending: bool
) -> None:
    choose = Random(7)
    await store.add_items(NS, [random_write(choose, name) for name in IDS])
    ordering, begin = Ordering(field, descending), None
    everything = ItemFilter(NOW)
    expected = await _found(store, everything, ordering, -1)
    assert len(expected) == len(IDS)
    pages: list[int] = []
    while True:
        page = await (await store.read(NS)).ordered(everything, ordering, 4, begin=begin)
        pages += [position for position, _ in page[:3]]
        if len(page) < 4:
            break
        begin = page[3][1]
    assert pages == expected


@pytest.mark.parametrize("descending", [False, True])
async def test_a_page_begins_where_it_did_when_the_item_there_is_gone(store: Store, descending: bool) -> None:
    values = [1, 1, 1, 2, None]
    writes = [
        build_write(f"i{n}", metadata={} if value is None else {"x": value}) for n, value in enumerate(values)
    ]
    receipt = await store.add_items(NS, writes)
    ordering = Ordering(Field(FieldName.METADATA, ("x",)), descending)
    everything = ItemFilter(NOW)
    expected = await (await store.read(NS)).ordered(everything, ordering, -1)
    for position, place in expected:
        gone = next(stamp.id for stamp in receipt.items if stamp.position == position)
        rest = [at for at, _ in expected][[at for at, _ in expected].index(position) + 1 :]
        await store.delete_item(NS, gone, now_us=NOW)
        assert await _found(store, everything, ordering, -1, begin=place) == rest


async def test_many_writes_between_two_reads_are_sorted_too(store: Store) -> None:
    ordering = Ordering(Field(FieldName.METADATA, ("x",)), True)
    everything = ItemFilter(NOW)
    await store.add_items(NS, [build_write("first", metadata={"x": 1e9})])
    assert len(await _found(store, everything, ordering, -1)) == 1
    for start in range(0, 1200, 400):
        writes = [build_write(f"i{start + n}", metadata={"x": (n * 7919) % 1009}) for n in range(400)]
        await store.add_items(NS, writes)
    items = [write.item for write in writes]
    found = await (await store.read(NS)).ordered(everything, ordering, -1)
    values = [place[1] for _, place in found]
    assert len(found) == 1201 and values == sorted(values, reverse=True)
    await store.add_items(
        NS, [build_write(items[0].id, metadata={"x": 2e9})], on_duplicate=OnDuplicate.REPLACE
    )
    assert (await (await store.read(NS)).ordered(everything, ordering, 1))[0][1][1] == 2e9


async def test_long_texts_are_compared_by_their_beginning(store: Store) -> None:
    long = "x" * COMPARED_CHARS_MAX
    texts = [long + "b", long + "a", "x", long[:-1] + "y"]
    writes = [build_write(f"i{n}", metadata={"x": text}) for n, text in enumerate(texts)]
    positions = [stamp.position for stamp in (await store.add_items(NS, writes)).items]
    ordering = Ordering(Field(FieldName.METADATA, ("x",)))
    expected = [positions[at] for at in (2, 0, 1, 3)]
    assert await _found(store, ItemFilter(NOW), ordering, -1) == expected
    await store.add_items(NS, [build_write("more", metadata={"x": long + "0"})])
    found: list[tuple[int, SortKey]] = await (await store.read(NS)).ordered(ItemFilter(NOW), ordering, 4)
    assert [position for position, _ in found[:3]] == expected[:3] and found[3][0] > max(positions)
