"""The distinct values of a label, against a count of what is stored."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from contract.builders import NOW, NS, build_write
from contract.test_scan_model import change
from faults.scale import rounds
from memory_service.data_model import CONVERSATION_KINDS, Facet, Item, ItemKind
from memory_service.store import Store

ALL = 1_000_000


async def listed(
    store: Store, key: str = "k", prefix: str = "", after: str | None = None, limit: int = ALL, now: int = NOW
) -> list[tuple[str, int]]:
    """Return the values that the store lists."""
    return await (await store.read(NS)).label_values(key, prefix, after, limit, now_us=now)


@pytest.mark.parametrize("seed", range(rounds(2, 30)))
async def test_values_are_counted_as_they_are_stored_after_any_changes(store: Store, seed: int) -> None:
    choose = random.Random(seed)
    stored: dict[str, Item] = {}
    for step in range(80):
        await change(store, stored, choose, step)
        key, now = choose.choice("abt"), choose.choice([NOW, NOW + 15])
        visible = [
            item for item in stored.values() if item.kind in CONVERSATION_KINDS and not item.expired(now)
        ]
        expected = sorted(Counter(item.labels[key] for item in visible if key in item.labels).items())
        assert await listed(store, key, now=now) == expected, (step, key)


async def test_values_come_in_the_order_of_their_code_points_page_by_page(store: Store) -> None:
    values = ["", "B", "a", "ab", "abc", "b", "\u00e9", "\uffff", "\U0001f600"]
    await store.add_items(NS, [build_write(f"i{n}", labels={"k": v}) for n, v in enumerate(reversed(values))])
    await store.add_items(NS, [build_write("more", labels={"k": "ab", "l": "x"})])
    assert [value for value, _ in await listed(store)] == values
    assert await listed(store, prefix="ab") == [("ab", 2), ("abc", 1)]
    assert await listed(store, prefix="ab", after="ab") == [("abc", 1)]
    assert await listed(store, prefix="a", after="", limit=2) == [("a", 1), ("ab", 2)]
    assert await listed(store, after="", limit=1) == [("B", 1)], "the empty text is a value"
    assert await listed(store, after="b0", limit=1) == [("\u00e9", 1)], "above a value that no item has"
    assert (
        await listed(store, prefix="z") == await listed(store, "none") == await listed(store, limit=0) == []
    )
    await store.delete_item(NS, "i0", now_us=NOW)
    assert [value for value, _ in await listed(store)] == values[:-1]


async def test_values_of_hidden_items_are_left_out(store: Store) -> None:
    kinds = [ItemKind.DOCUMENT, ItemKind.FRAGMENT, ItemKind.USER_MEMORY]
    hidden = [
        build_write(f"h{n}", labels={"k": f"hidden {n:03}"}, facet=Facet(kinds[n % 3])) for n in range(300)
    ]
    tagged = build_write("tagged", facet=Facet(ItemKind.MESSAGE, {"k": "tag"}))
    soon = build_write("soon", labels={"k": "gone soon"}, expire_us=NOW + 5)
    await store.add_items(NS, [*hidden, tagged, soon, build_write("i", labels={"k": "shown"})])
    assert await listed(store, limit=2) == [("gone soon", 1), ("shown", 1)]
    assert await listed(store, now=NOW + 5) == [("shown", 1)]
    await store.remove_expired(NOW + 5, 0, ALL)
    assert await listed(store) == [("shown", 1)]


async def test_a_value_that_many_items_had_is_gone_with_the_last(store: Store) -> None:
    await store.add_items(NS, [build_write(f"i{n}", labels={"k": "v"}) for n in range(200)])
    assert await listed(store) == [("v", 200)]
    for n in range(200):
        await store.delete_item(NS, f"i{n}", now_us=NOW)
    assert await listed(store) == []
    await store.add_items(NS, [build_write("i", labels={"k": "v"})])
    assert await listed(store) == [("v", 1)]
