"""Sessions: which there are, their counts and times, and their order."""

from __future__ import annotations

import random
from typing import Any

import pytest

from contract.builders import NOW, NS, PLENTY, SECOND, build_write, get_item
from memory_service.data_model import (
    CONVERSATION_KINDS,
    Facet,
    Item,
    ItemKind,
    ItemWrite,
    SessionCounts,
    SessionQuery,
)
from memory_service.operations import AddItems, Operation, RemoveItem, ReplaceItem
from memory_service.store import Store


def said(item_id: str, session: str, at: int = 0, **fields: Any) -> ItemWrite:
    """Return a write of an item of a session, created some seconds after the start."""
    return build_write(item_id, item_id, session_id=session, create_us=NOW + at * SECOND, **fields)


def kept(item_id: str, session: str, at: int = 0, **fields: Any) -> ItemWrite:
    """Return a write of the item that describes a session."""
    return said(item_id, session, at, facet=Facet(ItemKind.SESSION), **fields)


async def list_sessions(store: Store, now_us: int = NOW, **query: Any) -> list[SessionCounts]:
    """Return the sessions that match."""
    query = {"limit": PLENTY, **query}
    return await (await store.read(NS)).sessions(SessionQuery(now_us, **query))


async def names(store: Store, now_us: int = NOW, **query: Any) -> str:
    """Return the ids of the sessions that match, joined."""
    return " ".join(found.session_id for found in await list_sessions(store, now_us, **query))


async def test_the_session_with_the_latest_item_is_first(store: Store) -> None:
    assert await names(store) == ""
    await store.add_items(NS, [said("1", "a", 10), said("2", "b", 30), said("3", "c", 20), said("4", "", 40)])
    assert await names(store) == "b c a"
    assert await names(store, limit=2) == "b c"
    await store.add_items(NS, [said("5", "a", 30)])
    assert await names(store) == "a b c", "of equal times the later write is first"
    found = (await list_sessions(store))[0]
    position = (await get_item(store, "5")).position
    assert found == SessionCounts("a", 2, NOW + 10 * SECOND, NOW + 30 * SECOND, position)
    assert await names(store, before=found.place) == "b c"
    assert await names(store, before=found.place, limit=1) == "b"


async def test_changes_and_removals_move_sessions(store: Store) -> None:
    await store.add_items(NS, [said(c, c, at) for at, c in enumerate("abc")])
    assert await names(store) == "c b a"
    await store.replace_item(NS, said("a", "a", 9))
    assert await names(store) == "a c b"
    await store.replace_item(NS, said("a", "d", 1))
    assert await names(store) == "c b d" or await names(store) == "c d b"
    await store.delete_item(NS, "c", now_us=NOW)
    assert "c" not in await names(store)
    await store.reset(NS)
    assert await names(store) == ""


async def test_expired_items_do_not_count(store: Store) -> None:
    await store.add_items(
        NS, [said("1", "a", 1), said("2", "a", 5, expire_us=NOW + SECOND), said("3", "b", 3)]
    )
    await store.add_items(NS, [said("4", "c", 2, expire_us=NOW + 2 * SECOND)])
    assert await names(store) == "a b c"
    assert await names(store, NOW + SECOND) == "b c a"
    assert [each.item_count for each in await list_sessions(store, NOW + SECOND)] == [1, 1, 1]
    await store.add_items(NS, [said("5", "a", 6, expire_us=NOW + 3 * SECOND)])
    assert await names(store, NOW + 2 * SECOND) == "a b"
    assert await names(store, NOW + 3 * SECOND) == "b a"


@pytest.mark.parametrize("kind", list(ItemKind))
async def test_only_conversations_count(store: Store, kind: ItemKind) -> None:
    await store.add_items(NS, [said("1", "a", 1), said("2", "a", 2, facet=Facet(kind) if kind else None)])
    (found,) = await list_sessions(store)
    counted = kind in CONVERSATION_KINDS
    assert (found.item_count, found.last_us) == (1 + counted, NOW + (1 + counted) * SECOND)


async def test_a_session_exists_with_its_own_item_alone(store: Store) -> None:
    await store.add_items(NS, [kept("k", "a", 5), said("1", "b", 3)])
    assert [(each.session_id, each.item_count) for each in await list_sessions(store)] == [("a", 0), ("b", 1)]
    await store.add_items(NS, [said("2", "a", 1)])
    assert await names(store) == "b a", "its items have a say as soon as there are some"
    await store.delete_item(NS, "2", now_us=NOW)
    assert await names(store) == "a b"
    await store.delete_item(NS, "k", now_us=NOW)
    assert await names(store) == "b"


async def test_by_prefix_label_and_id(store: Store) -> None:
    await store.add_items(
        NS, [said(f"{at}", name, at) for at, name in enumerate(("x/1", "y/2", "x/3", "x", "é"))]
    )
    await store.add_items(
        NS, [kept("k", "x/1", labels={"l": "v"}), kept("m", "y/2", labels={"l": "v", "n": "v"})]
    )
    assert await names(store, prefix="x/") == "x/3 x/1"
    assert await names(store, prefix="é") == "é"
    assert await names(store, prefix="z") == ""
    assert await names(store, labels=(("l", "v"),)) == "y/2 x/1"
    assert await names(store, labels=(("l", "v"), ("n", "v"))) == "y/2"
    assert await names(store, labels=(("l", "v"),), prefix="x") == "x/1"
    assert await names(store, labels=(("l", "other"),)) == ""
    assert await names(store, session_id="x") == "x"
    assert await names(store, session_id="nothing") == ""
    (latest, *_) = await list_sessions(store, prefix="x/")
    assert await names(store, prefix="x/", before=latest.place) == "x/1"
    await store.add_items(NS, [said("new", "x/0", -5)])
    assert await names(store, prefix="x/") == "x/3 x/1 x/0"


def expected(items: list[Item], now_us: int) -> list[SessionCounts]:
    """Return all sessions, by the definition."""
    found = []
    alive = [item for item in items if not item.expired(now_us) and item.session_id]
    for session in {
        item.session_id for item in alive if item.kind in (*CONVERSATION_KINDS, ItemKind.SESSION)
    }:
        of_it = [item for item in alive if item.session_id == session]
        turns = [item for item in of_it if item.kind in CONVERSATION_KINDS]
        dated = turns or [item for item in of_it if item.kind is ItemKind.SESSION]
        last = max(dated, key=lambda item: (item.create_us, item.position))
        first_us = min(item.create_us for item in dated)
        found.append(SessionCounts(session, len(turns), first_us, last.create_us, last.position))
    return sorted(found, key=lambda each: each.place, reverse=True)


def any_operation(choose: random.Random, ids: list[str], at: int) -> Operation:
    """Return a change of an item, or a new one."""

    def drawn(item_id: str) -> ItemWrite:
        kind = choose.choice([None, None, None, ItemKind.SESSION, ItemKind.FRAGMENT, ItemKind.MESSAGE])
        expire_us = NOW + choose.randrange(1, 200) * SECOND if choose.random() < 0.3 else None
        facet = Facet(kind) if kind else None
        session = choose.choice(["", *"abcdefgh"])
        return said(item_id, session, choose.randrange(6), expire_us=expire_us, facet=facet)

    if ids and choose.random() < 0.3:
        return RemoveItem(ids.pop(choose.randrange(len(ids))), 0)
    if ids and choose.random() < 0.4:
        return ReplaceItem(drawn(choose.choice(ids)))
    ids.append(f"i{at}")
    return AddItems([drawn(ids[-1])])


@pytest.mark.parametrize("seed", range(3))
async def test_any_changes_leave_what_the_items_say(store: Store, seed: int) -> None:
    choose, ids, now_us = random.Random(seed), list[str](), NOW
    for at in range(80):
        operation = any_operation(choose, ids, at)
        if isinstance(operation, ReplaceItem):
            operation.write.item.update_us = 0
        await store.write(NS, [operation])
        if choose.random() < 0.5:
            now_us += choose.randrange(3) * SECOND
            items = list((await store.get_items(NS, ids)).values())
            assert await list_sessions(store, now_us) == expected(items, now_us)
