"""Adds that are made only if nothing they were decided on has changed since."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from contract.builders import (
    NOW,
    NS,
    PLENTY,
    SECOND,
    axis_vector,
    build_request,
    build_state,
    build_write,
    scan_ids,
)
from contract.conftest import Reopen
from contract.invariants import assert_consistent
from memory_service.data_model import Facet, ItemKind, ItemWrite, OnDuplicate, Receipt, Since, VectorFill
from memory_service.errors import AlreadyExists, Conflict
from memory_service.store import Store

FACTS = frozenset({ItemKind.USER_MEMORY})
LATER = NOW + 10 * SECOND
Change = Callable[[Store], Awaitable[object]]


def _fact(item_id: str, text: str = "", **fields: object) -> ItemWrite:
    return build_write(item_id, text, facet=Facet(ItemKind.USER_MEMORY), **fields)  # type: ignore[arg-type]


async def _replace(store: Store, write: ItemWrite) -> Receipt:
    return await store.add_items(NS, [write], on_duplicate=OnDuplicate.REPLACE)


# Each concerns a fact, or removes something whose kind is unknown afterwards.
COUNTING: dict[str, Change] = {
    "a fact is added": lambda store: store.add_items(NS, [_fact("new")]),
    "a fact is updated": lambda store: store.replace_item(NS, _fact("fact", "other")),
    "a fact is written over": lambda store: _replace(store, _fact("fact", "other")),
    "an item becomes a fact": lambda store: _replace(store, _fact("plain")),
    "a fact is deleted": lambda store: store.delete_item(NS, "fact", now_us=NOW),
    "a fact is removed by an add": lambda store: store.add_items(NS, [], removals=["fact"]),
    "an item is deleted": lambda store: store.delete_item(NS, "plain", now_us=NOW),
    "a fact expires": lambda store: store.remove_expired(LATER, 0, PLENTY),
    "a fact is added among much else": lambda store: store.add_items(
        NS,
        [
            *(build_write(f"p{n}") for n in range(100)),
            _fact("new"),
            *(build_write(f"q{n}") for n in range(9)),
        ],
    ),
    "the namespace is reset": lambda store: store.reset(NS),
    "the namespace is deleted": lambda store: store.delete_namespace(NS),
}
# Other changes do not matter to a caller that decided on facts.
OTHER: dict[str, Change] = {
    "nothing": lambda store: store.namespace(NS),
    "an item of another kind is added": lambda store: store.add_items(NS, [build_write("new")]),
    "many items of another kind are added": lambda store: store.add_items(
        NS, [build_write(f"p{n}") for n in range(100)]
    ),
    "an item of another kind is updated": lambda store: store.replace_item(NS, build_write("plain", "other")),
    "a state is saved": lambda store: store.save_state(NS, build_state("k", 2)),
    "states are cleared": lambda store: store.clear_states(NS),
    "a state has the id of a fact": lambda store: store.save_state(NS, build_state("fact")),
    "items are used": lambda store: store.record_uses(NS, [1, 2]),
    "another namespace changes": lambda store: store.add_items("other", [_fact("new")]),
}


async def _prepare(store: Store) -> int:
    """Write a plain item, two facts of which one expires, and a state; return the revision."""
    await store.add_items(NS, [build_write("plain"), _fact("fact"), _fact("brief", expire_us=NOW + SECOND)])
    return (await store.save_state(NS, build_state("k", 1))).revision


@pytest.mark.parametrize("change", COUNTING)
async def test_an_add_fails_where_something_of_its_kinds_has_changed(store: Store, change: str) -> None:
    since = Since(await _prepare(store), FACTS)
    await COUNTING[change](store)
    before = await store.namespace(NS), await store.read_changes(NS, 0, PLENTY)
    with pytest.raises(Conflict) as raised:
        await store.add_items(
            NS, [_fact("late")], states=[build_state("late")], removals=["plain"], unchanged=since
        )
    assert raised.value.reason == "REVISION_MISMATCH"
    assert (await store.namespace(NS), await store.read_changes(NS, 0, PLENTY)) == before
    assert "late" not in await scan_ids(store)
    await assert_consistent(store)


@pytest.mark.parametrize("change", OTHER)
async def test_an_add_succeeds_where_something_else_has_changed(store: Store, change: str) -> None:
    since = Since(await _prepare(store), FACTS)
    await OTHER[change](store)
    await store.add_items(NS, [_fact("late")], unchanged=since)
    assert "late" in await scan_ids(store)


async def test_what_a_write_changes_itself_does_not_stop_it(store: Store) -> None:
    since = Since(await _prepare(store), FACTS)
    await store.add_items(NS, [_fact("late"), _fact("later")], removals=["fact"], unchanged=since)
    assert await scan_ids(store) == ["plain", "brief", "late", "later"]


async def test_a_condition_on_ids_is_about_these_alone(store: Store) -> None:
    since = Since(await _prepare(store), ids=frozenset({"fact", "none"}))
    await store.add_items(NS, [_fact("new")])
    await store.delete_item(NS, "plain", now_us=NOW)
    await store.add_items(NS, [], removals=["new"], unchanged=since)
    await store.replace_item(NS, _fact("fact", "other"))
    with pytest.raises(Conflict):
        await store.add_items(NS, [build_write("late")], unchanged=since)
    with pytest.raises(Conflict):
        await store.add_items(NS, [], removals=["fact"], unchanged=since)
    since = Since(since.revision + 4, ids=frozenset({"fact", "none"}))
    await store.add_items(NS, [build_write("none")])
    with pytest.raises(Conflict):
        await store.add_items(NS, [build_write("late")], unchanged=since)


async def test_removals_count_or_do_not_as_the_condition_says(store: Store) -> None:
    since = Since(await _prepare(store), FACTS, frozenset({"brief"}), removals=False)
    await store.delete_item(NS, "plain", now_us=NOW)
    await store.add_items(NS, [], removals=["fact"])
    await store.add_items(NS, [build_write("new")], unchanged=since)
    await store.remove_expired(LATER, 0, PLENTY)
    with pytest.raises(Conflict):
        await store.add_items(NS, [build_write("late")], unchanged=since)
    since = Since(since.revision + 4, FACTS, removals=False)
    await store.add_items(NS, [build_write("late")], unchanged=since)
    await store.add_items(NS, [_fact("fact")])
    with pytest.raises(Conflict):
        await store.add_items(NS, [build_write("later")], unchanged=since)
    await store.reset(NS)
    with pytest.raises(Conflict):
        await store.add_items(NS, [build_write("later")], unchanged=Since(since.revision + 2, removals=False))


async def test_a_condition_of_nothing_stops_at_a_reset_alone(store: Store) -> None:
    since = Since(await _prepare(store))
    await store.delete_item(NS, "fact", now_us=NOW)
    await store.add_items(NS, [_fact("new")], unchanged=since)
    await store.reset(NS)
    with pytest.raises(Conflict):
        await store.add_items(NS, [_fact("late")], unchanged=since)


async def test_of_an_empty_namespace_nothing_may_have_come(store: Store) -> None:
    empty = Since(0, FACTS)
    await store.add_items(NS, [_fact("first")], unchanged=empty)
    with pytest.raises(Conflict):
        await store.add_items(NS, [_fact("second")], unchanged=empty)
    await store.add_items("other", [build_write("plain")])
    await store.add_items("other", [_fact("first")], unchanged=empty)
    with pytest.raises(Conflict):
        await store.add_items("none", [_fact("first")], unchanged=Since(1, FACTS))
    assert await store.namespace("none") is None


async def test_a_repeated_request_is_answered_whatever_has_changed(store: Store) -> None:
    since = Since(await _prepare(store), FACTS)
    first = await store.add_items(NS, [_fact("late")], request=build_request(), unchanged=since)
    again = await store.add_items(NS, [_fact("late")], request=build_request(), unchanged=since)
    assert again.replayed
    assert (again.items, again.revision) == (first.items, first.revision)


async def test_a_request_that_met_a_change_is_not_remembered(store: Store) -> None:
    since = Since(await _prepare(store), FACTS)
    await store.add_items(NS, [_fact("new")])
    with pytest.raises(Conflict):
        await store.add_items(NS, [_fact("late")], request=build_request(), unchanged=since)
    assert await store.find_receipt(NS, build_request()) is None


async def test_a_change_comes_before_a_taken_id(store: Store) -> None:
    since = Since(await _prepare(store), FACTS)
    with pytest.raises(AlreadyExists):
        await store.add_items(NS, [_fact("fact")], unchanged=since)
    await store.add_items(NS, [_fact("new")])
    with pytest.raises(Conflict):
        await store.add_items(NS, [_fact("new")], unchanged=since)


async def test_a_filled_vector_is_no_change(store: Store) -> None:
    write = _fact("waits")
    write.model, write.dimension = "local:a", 4
    await store.add_items(NS, [write])
    info = await store.namespace(NS)
    assert info is not None and info.pending_count == 1
    fill = VectorFill(write.item.position, write.item.revision, axis_vector(0))
    assert await store.fill_vectors(NS, info.uid, "local:a", [fill]) == 1
    await store.add_items(NS, [_fact("late")], unchanged=Since(info.revision, FACTS))


async def test_of_many_writers_that_looked_at_the_same_one_writes(store: Store) -> None:
    since = Since(await _prepare(store), FACTS)
    adds = [store.add_items(NS, [_fact(f"late-{n}")], unchanged=since) for n in range(20)]
    done = await asyncio.gather(*adds, return_exceptions=True)
    assert sum(isinstance(result, Conflict) for result in done) == 19
    assert len(await scan_ids(store)) == 4


async def test_a_condition_holds_over_a_restart(store: Store, reopen: Reopen) -> None:
    revision = await _prepare(store)
    await store.add_items(NS, [build_write("new")])
    again = await reopen()
    await again.add_items(NS, [_fact("late")], unchanged=Since(revision, FACTS))
    with pytest.raises(Conflict):
        await again.add_items(NS, [_fact("later")], unchanged=Since(revision, FACTS))
