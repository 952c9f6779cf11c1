"""Predicates against a check of each item, after any mixture of changes."""

from __future__ import annotations

from random import Random

import pytest

from contract.builders import NOW, NS, PLENTY, search_hits, words_found
from contract.predicate_choices import IDS, TIMES, random_predicate, random_write
from contract.predicate_oracle import holds
from faults.scale import rounds
from memory_service.data_model import Item, ItemFilter, ItemKind, OnDuplicate
from memory_service.store import Store


async def _change(store: Store, stored: dict[str, Item], choose: Random) -> None:
    """Make one change, to the store and to the model of it."""
    if choose.random() < 0.15 and stored:
        gone = choose.choice(sorted(stored))
        await store.delete_item(NS, gone, now_us=NOW)
        del stored[gone]
        return
    writes = [random_write(choose, name) for name in choose.sample(IDS, choose.randrange(1, 5))]
    await store.add_items(NS, writes, on_duplicate=OnDuplicate.REPLACE)
    stored.update({write.item.id: write.item for write in writes})


def _random_filter(choose: Random) -> ItemFilter:
    kinds = choose.choice([None, None, frozenset({ItemKind.PLAIN, ItemKind.MESSAGE})])
    return ItemFilter(
        choose.choice([NOW, NOW, TIMES[1]]),
        choose.choice(["", "", "", "a"]),
        choose.choice([(), (), (("k", "a"),)]),
        start_us=choose.choice([None, None, TIMES[1]]),
        kinds=kinds,
        predicate=random_predicate(choose),
    )


def _matches(item: Item, wanted: ItemFilter) -> bool:
    return (
        not item.expired(wanted.now_us)
        and (not wanted.session_id or item.session_id == wanted.session_id)
        and all(item.labels.get(key) == value for key, value in wanted.labels)
        and (wanted.start_us is None or item.create_us >= wanted.start_us)
        and (wanted.kinds is None or item.kind in wanted.kinds)
        and holds(wanted.predicate, item)
    )


@pytest.mark.parametrize("seed", range(rounds(2, 30)))
async def test_a_predicate_finds_what_a_look_at_each_item_finds(store: Store, seed: int) -> None:
    choose = Random(seed)
    stored: dict[str, Item] = {}
    for step in range(80):
        await _change(store, stored, choose)
        for _ in range(8):
            wanted = _random_filter(choose)
            expected = sorted(item.position for item in stored.values() if _matches(item, wanted))
            limit, newest = choose.choice([-1, -1, 1, 3]), choose.random() < 0.5
            if limit >= 0:
                expected = expected[max(len(expected) - limit, 0) :] if newest else expected[:limit]
            assert await (await store.read(NS)).scan(wanted, limit, newest=newest) == expected, (step, wanted)
        wanted = _random_filter(choose)
        matching = {item.id for item in stored.values() if _matches(item, wanted)}
        fields = {name: getattr(wanted, name) for name in wanted.__struct_fields__}
        assert await words_found(store, "kiwi", **fields) == matching, (step, wanted)
        found = await search_hits(store, vector=[1.0, 0.5], candidates=PLENTY, **fields)
        assert set(found) == matching, (step, wanted)
