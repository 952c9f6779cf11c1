"""Batches of several operations: checked as one, applied in order, all or none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from contract.builders import NOW, NS, SECOND, build_request, build_state, build_write, get_item, scan_ids
from contract.invariants import assert_consistent
from memory_service.data_model import ChangeType, OnDuplicate
from memory_service.errors import AlreadyExists, Conflict, MemoryServiceError, NotFound
from memory_service.operations import (
    AddItems,
    Operation,
    RemoveAt,
    RemoveItem,
    RemoveItems,
    RemoveState,
    ReplaceItem,
    SaveStates,
)
from memory_service.store import Store

MIXED: list[Operation] = [
    SaveStates([build_state("plan", "new")]),
    RemoveItem("gone", NOW),
    AddItems([build_write("first"), build_write("second")]),
    ReplaceItem(build_write("kept", "after"), expected_revision=1),
    RemoveState("old", NOW),
    RemoveAt([3, 999], 3),
]
"""Applied to the items that `_fill` wrote."""


def _mixed() -> list[Operation]:
    """Return the same with new items: a store takes ownership of them."""
    fresh = list(MIXED)
    fresh[2] = AddItems([build_write("first"), build_write("second")])
    fresh[3] = ReplaceItem(build_write("kept", "after"), expected_revision=1)
    return fresh


async def _fill(store: Store) -> None:
    await store.add_items(NS, [build_write("kept", "before"), build_write("gone"), build_write("at three")])
    await store.save_state(NS, build_state("old", "value"))


async def _contents(store: Store) -> tuple[object, ...]:
    info = await store.namespace(NS)
    states = await store.scan_states(NS, "", 10, now_us=NOW)
    changes = await store.read_changes(NS, 0, 100)
    return info, await scan_ids(store), [entry.key for entry in states], changes


async def test_operations_are_applied_in_their_order(store: Store) -> None:
    await _fill(store)
    receipt = await store.write(NS, _mixed())
    changes = await store.read_changes(NS, 4, 100)
    assert [(change.revision, change.type, change.subject) for change in changes] == [
        (5, ChangeType.STATE_SAVED, "plan"),
        (6, ChangeType.ITEM_DELETED, "gone"),
        (7, ChangeType.ITEM_ADDED, "first"),
        (8, ChangeType.ITEM_ADDED, "second"),
        (9, ChangeType.ITEM_UPDATED, "kept"),
        (10, ChangeType.STATE_DELETED, "old"),
        (11, ChangeType.ITEM_DELETED, "at three"),
    ]
    assert receipt.revision == 11
    assert receipt.counts == [1, 1, 2, 1, 1, 1]
    assert [(stamp.id, stamp.revision) for stamp in receipt.items] == [
        ("first", 7), ("second", 8), ("kept", 9),
    ]  # fmt: skip
    assert [(stamp.version, stamp.revision) for stamp in receipt.states] == [(1, 5)]
    assert (receipt.removed_count, receipt.removed_state_count) == (2, 1)
    assert await scan_ids(store) == ["kept", "first", "second"]
    assert list(await store.load_states(NS, ["plan", "old"])) == ["plan"]
    await assert_consistent(store, NS)


FAILING: dict[str, tuple[Operation, type[MemoryServiceError]]] = {
    "an id is taken": (AddItems([build_write("kept")]), AlreadyExists),
    "an item to replace is missing": (ReplaceItem(build_write("none")), NotFound),
    "an item to replace is newer": (ReplaceItem(build_write("kept"), expected_revision=7), Conflict),
    "an item to remove is missing": (RemoveItem("none", NOW), NotFound),
    "an item to remove is newer": (RemoveItem("kept", NOW, expected_revision=7), Conflict),
    "an item is expected that is missing": (
        RemoveItem("none", NOW, expected_revision=7, allow_missing=True),
        Conflict,
    ),
    "an item at a position is newer": (RemoveAt([1], 0), Conflict),
    "a state is taken": (SaveStates([build_state("old")], OnDuplicate.FAIL), Conflict),
    "a state is at another version": (SaveStates([build_state("old", expected_version=2)]), Conflict),
    "a state to remove is missing": (RemoveState("none", NOW), NotFound),
    "a state to remove is newer": (RemoveState("old", NOW, expected_version=2), Conflict),
}


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
async def test_one_operation_that_fails_leaves_nothing_of_the_others(
    store: Store, name: str, last: bool
) -> None:
    await _fill(store)
    before = await _contents(store)
    operation, error = FAILING[name]
    others: list[Operation] = [
        AddItems([build_write("first")]),
        SaveStates([build_state("plan")]),
        RemoveItems(["gone"]),
        RemoveAt([3], 3),
    ]
    operations = [*others, operation] if last else [operation, *others]
    with pytest.raises(error):
        await store.write(NS, operations, request=build_request())
    assert await _contents(store) == before
    assert await store.find_receipt(NS, build_request()) is None
    await assert_consistent(store, NS)


async def test_what_may_be_missing_is_counted_as_none(store: Store) -> None:
    await _fill(store)
    await store.add_items(NS, [build_write("expired", expire_us=NOW + SECOND)])
    operations = [
        RemoveItem("none", NOW, allow_missing=True),
        RemoveItem("expired", NOW + SECOND, allow_missing=True),
        RemoveState("none", NOW, allow_missing=True),
        RemoveItem("gone", NOW, allow_missing=True),
    ]
    receipt = await store.write(NS, operations)
    assert receipt.counts == [0, 0, 0, 1]
    assert await scan_ids(store) == ["kept", "at three", "expired"]


async def test_a_repeated_write_has_its_first_receipt(store: Store) -> None:
    await _fill(store)
    first = await store.write(NS, _mixed(), request=build_request())
    after = await _contents(store)
    again = await store.write(NS, _mixed(), request=build_request())
    assert again.replayed
    assert (again.revision, again.counts) == (first.revision, first.counts)
    assert (again.items, again.states) == (first.items, first.states)
    assert await _contents(store) == after


@pytest.mark.parametrize("policy", OnDuplicate)
async def test_each_operation_has_its_own_rule_for_duplicates(store: Store, policy: OnDuplicate) -> None:
    await _fill(store)
    operations: Sequence[Operation] = [
        AddItems([build_write("kept", "after")], policy),
        AddItems([build_write("new")], OnDuplicate.FAIL),
    ]
    if policy is OnDuplicate.FAIL:
        with pytest.raises(AlreadyExists):
            await store.write(NS, operations)
        return
    receipt = await store.write(NS, operations)
    replaced = policy is OnDuplicate.REPLACE
    assert receipt.counts == [int(replaced), 1]
    assert receipt.skipped_count == int(not replaced)
    item = await get_item(store, "kept")
    assert item.position == 1
    assert (item.revision > 1) is replaced


async def test_removing_by_position_takes_what_was_found(store: Store) -> None:
    await store.add_items(NS, [build_write(f"i{at}") for at in range(5)])
    await store.write(NS, [ReplaceItem(build_write("i1", "again"))])
    with pytest.raises(Conflict):
        await store.write(NS, [RemoveAt([1, 2, 3], 5)])
    receipt = await store.write(NS, [RemoveAt([3, 1, 2, 2], 6)])
    assert receipt.removed_count == 3
    assert await scan_ids(store) == ["i3", "i4"]
    changes = await store.read_changes(NS, 6, 10)
    assert [change.subject for change in changes] == ["i0", "i1", "i2"]
    await assert_consistent(store, NS)
