"""Neighbours: the items around an item in its session."""

from __future__ import annotations

import random

import pytest

from contract.builders import EVERYTHING, NOW, NS, SECOND, build_write
from memory_service.data_model import CONVERSATION_KINDS, Facet, ItemKind, ItemWrite, OnDuplicate
from memory_service.store import Store


def said(item_id: str, session: str = "s", **fields: object) -> ItemWrite:
    return build_write(item_id, item_id, session_id=session, **fields)  # type: ignore[arg-type]


async def around(store: Store, item_id: str, count: int = 20, now_us: int = NOW) -> tuple[str, str]:
    """Return the ids before and after an item, joined."""
    item = (await store.get_items(NS, [item_id]))[item_id]
    found = (await (await store.read(NS)).neighbours([item.position], count, now_us=now_us))[0]
    sides = [await (await store.read(NS)).load_items(side) for side in (found.before, found.after)]
    before, after = ["".join(item.id for item in side if item is not None) for side in sides]
    return before, after


async def test_the_nearest_come_in_the_order_of_the_namespace(store: Store) -> None:
    await store.add_items(NS, [said(c) for c in "abcdefg"])
    assert await around(store, "d", 1) == ("c", "e")
    assert await around(store, "d", 2) == ("bc", "ef")
    assert await around(store, "d") == ("abc", "efg")
    assert await around(store, "a", 2) == ("", "bc")
    assert await around(store, "g", 2) == ("ef", "")
    assert await around(store, "d", 0) == ("", "")


async def test_several_are_asked_at_once(store: Store) -> None:
    await store.add_items(NS, [said(c, "one" if c in "ace" else "two") for c in "abcdef"])
    positions = await (await store.read(NS)).scan(EVERYTHING, -1, newest=False)
    found = await (await store.read(NS)).neighbours([*positions[::-1], positions[0]], 1, now_us=NOW)
    a, b, c, d, e, f = positions
    assert [(each.before, each.after) for each in found] == [
        ([d], []), ([c], []), ([b], [f]), ([a], [e]), ([], [d]), ([], [c]), ([], [c]),
    ]  # fmt: skip


async def test_only_the_same_session_counts(store: Store) -> None:
    await store.add_items(NS, [said("a", "one"), said("b", "two"), said("c", ""), said("d", "one")])
    await store.add_items("another", [said("e", "one")])
    assert await around(store, "a") == ("", "d")
    assert await around(store, "d") == ("a", "")
    assert await around(store, "b") == ("", "")


async def test_what_has_no_session_has_none(store: Store) -> None:
    await store.add_items(NS, [said(c, "") for c in "abc"])
    assert await around(store, "b") == ("", "")


@pytest.mark.parametrize("kind", list(ItemKind))
async def test_only_what_is_said_in_a_conversation_counts(store: Store, kind: ItemKind) -> None:
    await store.add_items(NS, [said("a"), said("b", facet=Facet(kind)), said("c")])
    counts = kind in CONVERSATION_KINDS
    assert await around(store, "a") == ("", "bc" if counts else "c")
    assert await around(store, "b") == (("a", "c") if counts else ("", ""))
    assert await around(store, "c") == ("ab" if counts else "a", "")


async def test_what_is_deleted_is_passed_over(store: Store) -> None:
    await store.add_items(NS, [said(c) for c in "abcde"])
    gone = (await store.get_items(NS, ["c"]))["c"].position
    await store.delete_item(NS, "c", now_us=NOW)
    assert await around(store, "b", 1) == ("a", "d")
    assert await around(store, "d", 2) == ("ab", "e")
    found = await (await store.read(NS)).neighbours([gone, gone + 1000], 3, now_us=NOW)
    assert [(each.before, each.after) for each in found] == [([], []), ([], [])]


async def test_what_is_expired_is_passed_over(store: Store) -> None:
    expiring = {"b": NOW + SECOND, "c": NOW + SECOND, "e": NOW + 2 * SECOND}
    await store.add_items(NS, [said(c, expire_us=expiring.get(c)) for c in "abcdef"])
    assert await around(store, "d", 1) == ("c", "e")
    assert await around(store, "d", 1, NOW + SECOND) == ("a", "e")
    assert await around(store, "d", 2, NOW + 2 * SECOND) == ("a", "f")
    await store.remove_expired(NOW + 2 * SECOND, 0, 100)
    assert await around(store, "d", 2) == ("a", "f")


async def test_an_update_that_changes_the_session_changes_the_neighbours(store: Store) -> None:
    await store.add_items(NS, [said("a", "one"), said("b", "two"), said("c", "one"), said("d", "two")])
    await store.replace_item(NS, said("b", "one"))
    assert await around(store, "b") == ("a", "c")
    assert await around(store, "d") == ("", "")
    await store.add_items(NS, [said("b", "")], on_duplicate=OnDuplicate.REPLACE)
    assert await around(store, "b") == ("", "")
    assert await around(store, "a") == ("", "c")


async def test_an_update_of_the_text_changes_no_neighbours(store: Store) -> None:
    await store.add_items(NS, [said(c) for c in "abc"])
    await store.replace_item(NS, build_write("b", "another text", session_id="s"))
    assert await around(store, "b") == ("a", "c")
    assert await around(store, "c", 1) == ("b", "")


async def test_after_a_reset_there_are_none_of_before(store: Store) -> None:
    await store.add_items(NS, [said("a"), said("b")])
    await store.reset(NS)
    await store.add_items(NS, [said("c")])
    assert await around(store, "c") == ("", "")
    assert (await (await store.read("never written to")).neighbours([1, 2], 1, now_us=NOW))[1].before == []


async def test_random_changes_leave_what_a_list_says(store: Store) -> None:
    rng = random.Random(11)
    sessions: dict[str, str] = {}
    for n in range(120):
        if sessions and rng.random() < 0.3:
            chosen = rng.choice(list(sessions))
            if rng.random() < 0.5:
                del sessions[chosen]
                await store.delete_item(NS, chosen, now_us=NOW)
            else:
                sessions[chosen] = rng.choice(["", "x", "y"])
                await store.replace_item(NS, said(chosen, sessions[chosen]))
        else:
            sessions[f"<{n}>"] = rng.choice(["", "x", "y"])
            await store.add_items(NS, [said(f"<{n}>", sessions[f"<{n}>"])])
    for chosen, session in sessions.items():
        turns = [each for each, its in sessions.items() if its == session] if session else [chosen]
        at = turns.index(chosen)
        expected = "".join(turns[max(at - 3, 0) : at]), "".join(turns[at + 1 : at + 4])
        assert await around(store, chosen, 3) == expected
