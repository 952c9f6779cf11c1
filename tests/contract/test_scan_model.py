"""Scan against a plain filter over all that is stored, after any mixture of changes."""

from __future__ import annotations

import random

import pytest

from contract.builders import NOW, NS, build_write
from faults.scale import rounds
from memory_service.data_model import Facet, Item, ItemFilter, ItemKind, ItemWrite, OnDuplicate
from memory_service.store import Store

KINDS = (ItemKind.PLAIN, ItemKind.MESSAGE, ItemKind.RESPONSE, ItemKind.DOCUMENT)


def random_write(choose: random.Random, item_id: str) -> ItemWrite:
    """A write of an item with some of a few labels and tags."""
    labels = {key: str(choose.randrange(3)) for key in ("a", "b") if choose.random() < 0.6}
    tags = {key: str(choose.randrange(3)) for key in ("a", "t") if choose.random() < 0.6}
    return build_write(
        item_id,
        labels=labels,
        facet=Facet(choose.choice(KINDS), tags),
        session_id=choose.choice(["", "s", "u"]),
        create_us=NOW + choose.randrange(40),
        expire_us=choose.choice([None, None, None, NOW + 10, NOW + 20]),
    )


async def change(store: Store, stored: dict[str, Item], choose: random.Random, step: int) -> None:
    """Make one change, to the store and to what is known of it."""
    some = choose.choice(sorted(stored)) if stored else ""
    kind = choose.random()
    if kind < 0.6 or not stored:
        writes = [random_write(choose, f"i{step}.{n}") for n in range(choose.randrange(1, 4))]
        await store.add_items(NS, writes)
    elif kind < 0.75:
        writes = [random_write(choose, some)]
        await store.replace_item(NS, writes[0])
    elif kind < 0.85:
        # The way of an import, which may change the kind.
        writes = [random_write(choose, some)]
        await store.add_items(NS, writes, on_duplicate=OnDuplicate.REPLACE)
    else:
        writes = []
        await store.delete_item(NS, some, now_us=NOW)
        del stored[some]
    stored.update({write.item.id: write.item for write in writes})


def random_filter(choose: random.Random, revision: int) -> ItemFilter:
    """A filter by some of all there is to filter by."""

    def pairs(*keys: str) -> tuple[tuple[str, str], ...]:
        return tuple((key, str(choose.randrange(4))) for key in keys if choose.random() < 0.3)

    kinds = choose.choice([None, {ItemKind.MESSAGE}, {ItemKind.MESSAGE, ItemKind.PLAIN}, {ItemKind.FRAGMENT}])
    return ItemFilter(
        NOW + 15,
        choose.choice(["", "", "s", "none"]),
        pairs("a", "b"),
        choose.choice([None, None, NOW + 10]),
        choose.choice([None, None, NOW + 30]),
        choose.choice([0, 0, revision // 3]),
        choose.choice([None, None, 2 * revision // 3]),
        None if kinds is None else frozenset(kinds),
        pairs("a", "t"),
        any_tag=tuple(("t", str(value)) for value in choose.sample(range(4), choose.choice([0, 0, 1, 2]))),
    )


def matches(item: Item, wanted: ItemFilter) -> bool:
    """Whether a filter lets an item through."""
    tags = item.facet.tags if item.facet else {}
    return (
        not item.expired(wanted.now_us)
        and (not wanted.session_id or item.session_id == wanted.session_id)
        and all(item.labels.get(key) == value for key, value in wanted.labels)
        and all(tags.get(key) == value for key, value in wanted.tags)
        and (not wanted.any_tag or any(tags.get(key) == value for key, value in wanted.any_tag))
        and (wanted.start_us is None or item.create_us >= wanted.start_us)
        and (wanted.end_us is None or item.create_us < wanted.end_us)
        and item.position >= wanted.min_position
        and (wanted.max_position is None or item.position <= wanted.max_position)
        and (wanted.kinds is None or item.kind in wanted.kinds)
    )


@pytest.mark.parametrize("seed", range(rounds(2, 40)))
async def test_a_scan_finds_what_matches_after_any_changes(store: Store, seed: int) -> None:
    choose = random.Random(seed)
    stored: dict[str, Item] = {}
    for step in range(120):
        await change(store, stored, choose, step)
        info = await store.namespace(NS)
        assert info is not None
        wanted = random_filter(choose, info.revision)
        expected = sorted(item.position for item in stored.values() if matches(item, wanted))
        limit, newest = choose.choice([-1, 0, 1, 3, 500]), choose.random() < 0.5
        if limit >= 0:
            expected = expected[max(len(expected) - limit, 0) :] if newest else expected[:limit]
        assert await (await store.read(NS)).scan(wanted, limit, newest=newest) == expected, (step, wanted)


async def test_labels_that_many_items_had_find_those_that_have_them(store: Store) -> None:
    await store.add_items(NS, [build_write(f"i{n}", labels={"k": "v"}) for n in range(300)])
    for n in range(0, 300, 3):
        await store.delete_item(NS, f"i{n}", now_us=NOW)
        await store.replace_item(NS, build_write(f"i{n + 1}", labels={"k": "w"}))
    for value, rest in (("v", 2), ("w", 1)):
        found = await (await store.read(NS)).scan(ItemFilter(NOW, labels=(("k", value),)), -1, newest=False)
        items = await (await store.read(NS)).load_items(found)
        assert [item and item.id for item in items] == [f"i{n}" for n in range(rest, 300, 3)]
    # Back again: each is listed once.
    await store.replace_item(NS, build_write("i1", labels={"k": "v"}))
    found = await (await store.read(NS)).scan(ItemFilter(NOW, labels=(("k", "v"),)), 2, newest=False)
    assert [item and item.id for item in await (await store.read(NS)).load_items(found)] == ["i1", "i2"]
