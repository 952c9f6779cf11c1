"""Removing items removes what was made only from them, in the same write."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from contract.builders import NOW, NS, SECOND, build_request, build_write, scan_ids, words_found
from contract.conftest import Stores
from contract.invariants import assert_consistent
from memory_service.data_model import (
    ANSWERED_TAG,
    ChangeType,
    Facet,
    ItemKind,
    ItemWrite,
    OnDuplicate,
    Provenance,
    Receipt,
    WritesBy,
)
from memory_service.operations import AddItems, Operation, RemoveAt, RemoveItem, RemoveItems, ReplaceItem
from memory_service.records.base import FactsDerived, ParentsMissing, TooManyDerived
from memory_service.runtime.caller import Caller
from memory_service.runtime.clock import now_us
from memory_service.store import Store

FACT = Facet(ItemKind.USER_MEMORY)


def made_of(item_id: str, *parents: str, **fields: Any) -> ItemWrite:
    """Return a write of an item that was made from others."""
    return build_write(item_id, "derived", provenance=Provenance("ada", parent_ids=parents), **fields)


def of_existing(item_id: str, *parents: str, **fields: Any) -> ItemWrite:
    """Likewise, if these exist."""
    return dataclasses.replace(made_of(item_id, *parents, **fields), parents_exist=True)


def answer_to(item_id: str, message_id: str) -> ItemWrite:
    """Return a write of a response."""
    return build_write(item_id, facet=Facet(ItemKind.RESPONSE, {ANSWERED_TAG: message_id}))


def removal(item_id: str) -> RemoveItem:
    """Return the removal of an item with what was derived from it."""
    return RemoveItem(item_id, NOW, derived=True)


async def remove(store: Store, *operations: Operation, facts: tuple[str, ...] = ()) -> Receipt:
    """Apply removals."""
    return await store.write(NS, operations, facts=facts)


async def test_what_was_made_only_from_a_removed_item_goes_with_it(store: Store) -> None:
    await store.add_items(NS, [build_write("root"), build_write("other", "stays")])
    await store.add_items(
        NS, [made_of("child", "root"), made_of("both", "root", "other"), made_of("grandchild", "child")]
    )
    receipt = await remove(store, removal("root"))
    assert (receipt.removed_count, receipt.counts, receipt.derived_counts) == (1, [1], [2])
    assert await scan_ids(store) == ["other", "both"]
    changes = [(change.type, change.subject) for change in await store.read_changes(NS, 5, 9)]
    assert changes == [(ChangeType.ITEM_DELETED, name) for name in ("root", "child", "grandchild")]
    assert receipt.revision == 8
    await assert_consistent(store)
    receipt = await remove(store, removal("other"))
    assert receipt.derived_counts == [1] and await scan_ids(store) == []


async def test_an_item_goes_with_the_last_of_its_parents(store: Store) -> None:
    """Whether they are removed one after another, or by one write."""
    await store.add_items(NS, [build_write(name) for name in "abcd"])
    await store.add_items(NS, [made_of("ab", "a", "b"), made_of("cd", "c", "d"), made_of("abcd", "ab", "cd")])
    assert (await remove(store, removal("a"))).derived_counts == []
    receipt = await remove(store, RemoveItem("b", NOW))
    assert receipt.derived_counts == [] and "ab" in await scan_ids(store), "its parents are gone, it is kept"
    receipt = await remove(store, removal("c"), removal("d"))
    assert receipt.derived_counts == [0, 1], "the child of two stays as long as one of them does"
    assert await scan_ids(store) == ["ab", "abcd"]
    assert (await remove(store, removal("ab"))).derived_counts == [1]


async def test_positions_are_removed_with_what_was_derived(store: Store) -> None:
    await store.add_items(NS, [build_write("a"), build_write("b"), build_write("stays")])
    await store.add_items(NS, [made_of("ab", "a", "b"), made_of("child", "ab"), made_of("s", "stays")])
    receipt = await remove(store, RemoveAt([1, 2, 4], 6, derived=True))
    assert (receipt.removed_count, receipt.derived_counts) == (3, [1])
    assert await scan_ids(store) == ["stays", "s"]
    assert (await remove(store, RemoveAt([3], 99))).derived_counts == []
    assert await scan_ids(store) == ["s"]
    await assert_consistent(store)


async def test_a_response_goes_with_the_message_that_it_answers(store: Store) -> None:
    await store.add_items(NS, [build_write("message"), build_write("stays")])
    await store.add_items(NS, [answer_to("answer", "message"), answer_to("lost", "never was")])
    assert (await remove(store, removal("message"))).derived_counts == [1]
    assert await scan_ids(store) == ["stays", "lost"]


async def test_items_that_the_write_names_are_not_removed_as_derived(store: Store) -> None:
    await store.add_items(NS, [build_write("root")])
    await store.add_items(NS, [made_of(name, "root") for name in ("replaced", "removed", "over", "at", "x")])
    operations: list[Operation] = [
        removal("root"),
        ReplaceItem(build_write("replaced", "after", update_us=NOW + 1)),
        RemoveItem("removed", NOW),
        AddItems([build_write("over", update_us=NOW + 1)], OnDuplicate.REPLACE),
        RemoveAt([5], 6),
        AddItems([made_of("new", "root")]),
    ]
    receipt = await remove(store, *operations)
    assert receipt.counts == [1, 1, 1, 1, 1, 1]
    assert receipt.derived_counts == [1, 0, 0, 0, 0, 0]
    assert await scan_ids(store) == ["replaced", "over", "new"]
    await assert_consistent(store)


async def test_the_parents_of_the_present_version_count(store: Store) -> None:
    await store.add_items(NS, [build_write("old"), build_write("new")])
    await store.add_items(NS, [made_of("freed", "old"), made_of("moved", "old"), build_write("bound")])
    await store.replace_item(NS, build_write("freed", update_us=NOW + 1))
    await store.add_items(
        NS,
        [made_of("moved", "new", update_us=NOW + 1), made_of("bound", "old", update_us=NOW + 1)],
        on_duplicate=OnDuplicate.REPLACE,
    )
    assert (await remove(store, removal("old"))).derived_counts == [1]
    assert await scan_ids(store) == ["new", "freed", "moved"]
    assert (await remove(store, removal("new"))).derived_counts == [1]
    assert await scan_ids(store) == ["freed"]


async def test_an_undo_restores_the_parents_of_a_version(store: Store) -> None:
    await store.add_items(NS, [build_write("root")])
    await store.add_items(NS, [made_of("child", "root")])
    mallory = build_write("child", update_us=now_us(), provenance=Provenance("mallory"))
    await store.replace_item(NS, mallory)
    await store.undo_items(NS, WritesBy(NOW + 1, "mallory"), 0, 9, dry_run=False)
    assert (await remove(store, removal("root"))).derived_counts == [1]


async def test_an_expired_parent_keeps_nothing(store: Store) -> None:
    """Whether the sweep has removed it or not."""
    for swept in (False, True):
        await store.add_items(NS, [build_write("ends", expire_us=NOW + SECOND), build_write("deleted")])
        await store.add_items(NS, [made_of("child", "ends", "deleted"), made_of("only", "ends")])
        if swept:
            assert await store.remove_expired(NOW + SECOND, 0, 9) == 1
            assert await scan_ids(store) == ["deleted", "child", "only"], "expiry removes nothing derived"
        assert (await remove(store, removal("deleted"))).derived_counts == [1]
        await store.remove_expired(NOW + SECOND, 0, 9)
        assert await scan_ids(store) == ["only"]
        await store.delete_item(NS, "only", now_us=NOW)


async def test_an_undo_removes_nothing_derived(store: Store) -> None:
    await store.add_items(NS, [build_write("root", provenance=Provenance("mallory"))])
    await store.add_items(NS, [made_of("child", "root")])
    step = await store.undo_items(NS, WritesBy(0, "mallory"), 0, 9, dry_run=False)
    assert step.removed_count == 1 and await scan_ids(store) == ["child"]


async def test_what_goes_as_derived_is_deleted_by_the_caller(store: Store) -> None:
    await store.add_items(NS, [build_write("root")])
    await store.add_items(NS, [made_of("child", "root")])
    await store.write(NS, [removal("root")], by=Caller("bob", "", (), frozenset()))
    assert await store.count_removals(NS, WritesBy(0, "bob")) == 2


async def test_facts_that_go_must_be_known_to_the_caller(store: Store) -> None:
    await store.add_items(NS, [build_write("root")])
    await store.add_items(NS, [made_of("fact", "root", facet=FACT), made_of("note", "root")])
    for facts in ((), ("fact", "more"), ("note",)):
        with pytest.raises(FactsDerived) as refusal:
            await remove(store, removal("root"), facts=facts)
        assert refusal.value.ids == {"fact"}
    assert len(await scan_ids(store)) == 3
    assert (await remove(store, removal("root"), facts=("fact",))).derived_counts == [2]


async def test_items_that_descend_from_each_other_go_together(store: Store) -> None:
    await store.add_items(NS, [build_write("root")])
    await store.add_items(NS, [made_of("a", "root")])
    await store.add_items(NS, [made_of("b", "a")])
    circle = made_of("a", "root", "a", "b", update_us=NOW + 1)
    await store.add_items(NS, [circle], on_duplicate=OnDuplicate.REPLACE)
    assert (await remove(store, removal("root"))).derived_counts == [2]


async def test_what_was_made_only_from_several_removed_items_goes_with_them(store: Store) -> None:
    await store.add_items(NS, [build_write(name) for name in ("one", "two", "other")])
    of_all = made_of("of all", "one", "two", "other")
    await store.add_items(NS, [made_of("of two", "one", "two"), of_all, made_of("x", "of two")])
    receipt = await remove(store, RemoveItems(["one", "two", "unknown"], derived=True))
    assert (receipt.removed_count, receipt.counts, receipt.derived_counts) == (2, [2], [2])
    assert await scan_ids(store) == ["other", "of all"]


async def test_ids_that_are_used_again_name_another_item(store: Store) -> None:
    await store.add_items(NS, [build_write("root")])
    await store.add_items(NS, [made_of("child", "root")])
    await store.write(NS, [RemoveItems(["root"])])
    await store.add_items(NS, [build_write("root", "another")])
    assert (await remove(store, removal("root"))).derived_counts == []
    assert await scan_ids(store) == ["child"]


async def test_a_repeated_removal_has_its_first_counts(store: Store) -> None:
    await store.add_items(NS, [build_write("root")])
    await store.add_items(NS, [made_of("child", "root")])
    first = await store.write(NS, [removal("root")], request=build_request())
    again = await store.write(NS, [removal("root")], request=build_request())
    assert again.replayed and again.derived_counts == first.derived_counts == [1]


async def test_many_descendants_go_at_once(store: Store) -> None:
    """More than a store removes on its event loop."""
    await store.add_items(NS, [build_write("root"), build_write("stays")])
    await store.add_items(NS, [made_of(f"c{at}", "root", "stays") for at in range(200)])
    await store.add_items(NS, [made_of(f"d{at}", "root") for at in range(200)])
    await words_found(store, "derived")
    receipt = await remove(store, removal("root"))
    assert receipt.derived_counts == [200]
    assert await words_found(store, "derived") == {f"c{at}" for at in range(200)}
    await assert_consistent(store)


async def test_an_empty_namespace_forgets_which_items_were_made_from_which(stores: Stores) -> None:
    store = await stores.open()
    for empty in (store.reset, store.delete_namespace):
        await store.add_items(NS, [build_write("root")])
        await store.add_items(NS, [made_of("child", "root")])
        await empty(NS)
        await store.add_items(NS, [build_write("root"), build_write("child")])
        assert (await remove(store, removal("root"))).derived_counts == []
        await remove(store, removal("child"))


async def test_a_restart_remembers_which_items_were_made_from_which(stores: Stores) -> None:
    store = await stores.open()
    if not store.capabilities.durable:
        pytest.skip("this store does not outlive its process")
    await store.add_items(NS, [build_write("root")])
    await store.add_items(NS, [made_of("child", "root")])
    store = await stores.reopen()
    assert (await remove(store, removal("root"))).derived_counts == [1]
    assert (await store.namespace(NS)).item_count == 0  # type: ignore[union-attr]
    assert "child" not in await store.get_items(NS, ["child"])


async def test_an_item_whose_parents_must_exist_is_not_written_without_one(store: Store) -> None:
    ended = build_write("ended", expire_us=NOW + SECOND)
    await store.add_items(NS, [build_write("root"), build_write("other"), ended])
    await store.delete_item(NS, "other", now_us=NOW)
    revision = (await store.namespace(NS)).revision  # type: ignore[union-attr]
    for parents, missing, at_us in (
        (["root", "other"], {"other"}, NOW),
        (["root", "never"], {"never"}, NOW),
        (["root", "ended", "other"], {"ended", "other"}, NOW + SECOND),
        (["child"], {"child"}, NOW),
    ):
        child = of_existing("child", *parents, update_us=at_us)
        for operation in (AddItems([build_write("beside"), child]), AddItems([child], OnDuplicate.SKIP)):
            with pytest.raises(ParentsMissing) as raised:
                await store.write(NS, [operation], request=build_request())
            assert raised.value.ids == missing
    assert (await store.namespace(NS)).revision == revision  # type: ignore[union-attr]
    assert await store.find_receipt(NS, build_request()) is None
    with pytest.raises(ParentsMissing):
        await store.add_items("new", [of_existing("child", "root")])
    assert await store.namespace("new") is None


async def test_parents_that_must_exist_are_stored_or_written_before(store: Store) -> None:
    await store.add_items(NS, [build_write("root"), build_write("ended", expire_us=NOW + SECOND)])
    await store.add_items(
        NS, [build_write("new"), of_existing("child", "root", "ended"), of_existing("leaf", "child", "new")]
    )
    with pytest.raises(ParentsMissing):
        await store.add_items(NS, [of_existing("early", "late"), build_write("late")])
    again = of_existing("root", "root", update_us=NOW + 1)
    await store.add_items(NS, [again], on_duplicate=OnDuplicate.REPLACE)
    first = await store.add_items(NS, [of_existing("once", "root")], request=build_request())
    assert (await remove(store, removal("root"), removal("ended"))).derived_counts == [2, 0]
    replayed = await store.add_items(NS, [of_existing("once", "root")], request=build_request())
    assert (replayed.replayed, replayed.revision) == (True, first.revision)
    assert await scan_ids(store) == ["new", "leaf"]


async def test_no_item_outlives_parents_that_are_removed_at_the_same_time(store: Store) -> None:
    for at in range(10):
        await store.add_items(NS, [build_write(f"root{at}")])
        children = [of_existing(f"child{at}.{number}", f"root{at}") for number in range(6)]
        writes = [store.add_items(NS, [child]) for child in children]
        writes.insert(3, store.write(NS, [removal(f"root{at}")]))
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        unforeseen = [each for each in outcomes if not isinstance(each, Receipt | ParentsMissing)]
        assert unforeseen == []
    assert await scan_ids(store) == []


async def test_items_are_linked_to_parents_that_came_later(store: Store, stores: Stores) -> None:
    await store.add_items(NS, [made_of("child", "root", "never"), answer_to("answer", "root")])
    await store.add_items(NS, [made_of("leaf", "child"), made_of("other", "root"), made_of("over", "root")])
    read = await store.get_items(NS, ["child", "answer", "over"])
    await store.add_items(NS, [build_write("root")])
    await store.replace_item(NS, build_write("over", update_us=NOW + 1))
    revision = (await store.namespace(NS)).revision  # type: ignore[union-attr]
    await store.link_parents(NS, list(read.values()))
    await store.link_parents("missing", list(read.values()))
    await store.link_parents(NS, [])
    assert (await store.namespace(NS)).revision == revision  # type: ignore[union-attr]
    assert await store.namespace("missing") is None
    if store.capabilities.durable:
        store = await stores.reopen()
    assert (await remove(store, removal("root"))).derived_counts == [3]
    assert await scan_ids(store) == ["other", "over"]
    await assert_consistent(store)
    gone = list(read.values())
    await store.link_parents(NS, gone)


async def test_a_removal_that_follows_a_link_at_once_sees_it(store: Store) -> None:
    """Also in the same transaction."""
    await store.add_items(NS, [made_of("child", "root"), made_of("leaf", "child"), made_of("root", "top")])
    await store.add_items(NS, [build_write("top")])
    read = await store.get_items(NS, ["root"])
    await store.link_parents(NS, list((await store.get_items(NS, ["child"])).values()))
    await asyncio.gather(store.link_parents(NS, list(read.values())), store.write(NS, [removal("top")]))
    order = [change.subject for change in await store.read_changes(NS, 4, 99)]
    left = await scan_ids(store)
    # The removal may come first.
    assert (order, left) in (
        (["top", "child", "leaf", "root"], []), (["top"], ["child", "leaf", "root"])
    )  # fmt: skip


async def test_concurrent_writes_see_what_others_derived(store: Store) -> None:
    """A child written just before, perhaps in the same transaction, goes too."""
    await store.add_items(NS, [build_write("root"), build_write("chain")])
    await asyncio.gather(
        store.add_items(NS, [made_of("child", "root")]),
        store.add_items(NS, [made_of("chain", "child", update_us=NOW + 1)], on_duplicate=OnDuplicate.REPLACE),
        store.add_items(NS, [made_of("leaf", "chain")]),
        store.write(NS, [removal("root")]),
    )
    # The writes may be applied in any order.
    at = [change.subject for change in await store.read_changes(NS, 2, 99)].index
    goes = {"child"} if at("child") < at("root") else set()
    if at("child") < at("chain") < at("root"):
        goes |= {"chain", "leaf"} if at("leaf") < at("root") else {"chain"}
    assert set(await scan_ids(store)) == {"child", "chain", "leaf"} - goes


REMOVALS: dict[str, Callable[[Store], Awaitable[object]]] = {
    "one": lambda store: store.delete_item(NS, "root", now_us=NOW),
    "one that was derived": lambda store: store.delete_item(NS, "child", now_us=NOW),
    "some": lambda store: store.write(NS, [RemoveItems(["root", "child"])]),
    "derived": lambda store: store.write(NS, [removal("root")]),
    "expired": lambda store: store.remove_expired(NOW + SECOND, 0, 9),
    "undone": lambda store: store.undo_items(NS, WritesBy(0, "mallory"), 0, 9, dry_run=False),
    "reset": lambda store: store.reset(NS),
    "namespace": lambda store: store.delete_namespace(NS),
}


@pytest.mark.parametrize("how", REMOVALS)
async def test_nothing_is_kept_of_which_item_was_made_from_a_removed_one(
    file_store: Store, stores: Stores, how: str
) -> None:
    root = build_write("root", provenance=Provenance("mallory"), expire_us=NOW + SECOND)
    await file_store.add_items(NS, [root])
    await file_store.add_items(NS, [made_of("child", "root")])
    await REMOVALS[how](file_store)
    await stores.close()
    with contextlib.closing(sqlite3.connect(stores.data_dir / "records.db")) as database:
        assert database.execute("SELECT count(*) FROM parents").fetchone() == (0,)


async def test_a_write_removes_as_many_as_its_caller_allows(store: Store) -> None:
    await store.add_items(NS, [build_write("one"), build_write("two")])
    await store.add_items(NS, [made_of("a", "one"), made_of("b", "a"), made_of("c", "two")])
    both = [removal("one"), RemoveAt([2], 5, derived=True)]
    with pytest.raises(TooManyDerived) as caught:
        await store.write(NS, both, derived_max=2)
    assert caught.value.operation == 1
    assert {"limit": "2", "actual": "3"}.items() <= {
        k: str(v) for k, v in caught.value.metadata.items()
    }.items()
    assert await scan_ids(store) == ["one", "two", "a", "b", "c"]
    receipt = await store.write(NS, both, derived_max=3)
    assert receipt.derived_counts == [2, 1]
