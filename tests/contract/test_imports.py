"""States imported with items: one batch, one order, all or nothing."""

from __future__ import annotations

import msgspec
import pytest

from contract.builders import (
    NOW,
    NS,
    PLENTY,
    build_request,
    build_state,
    build_write,
    get_item,
    scan_ids,
    words_found,
)
from contract.invariants import assert_consistent
from memory_service.data_model import ItemWrite, OnDuplicate, Receipt, StateEntry, StateWrite, TextPart
from memory_service.errors import AlreadyExists, Conflict, FailedPrecondition, InvalidArgument
from memory_service.store import Store


async def _import(
    store: Store, states: list[StateWrite], on_duplicate: OnDuplicate = OnDuplicate.FAIL
) -> Receipt:
    return await store.add_items(NS, [], states=states, on_duplicate=on_duplicate)


async def _load(store: Store, key: str) -> StateEntry:
    return (await store.load_states(NS, [key]))[key]


async def _keys(store: Store) -> list[str]:
    return [entry.key for entry in await store.scan_states(NS, "", PLENTY, now_us=NOW)]


async def test_states_are_written_after_the_items_in_order(store: Store) -> None:
    states = [build_state("b", 1, description="why"), build_state("a", 2, expire_us=NOW + 5)]
    receipt = await store.add_items(NS, [build_write("i"), build_write("j")], states=states)
    b, a = await _load(store, "b"), await _load(store, "a")
    assert (b.version, b.description, b.expire_us, b.value_json) == (1, "why", None, b"1")
    assert (a.version, a.description, a.expire_us, a.value_json) == (1, "", NOW + 5, b"2")
    assert [stamp.id for stamp in receipt.items] == ["i", "j"]
    assert receipt.items[1].revision < b.revision < a.revision == receipt.revision
    changes = await store.read_changes(NS, 0, PLENTY)
    assert [change.subject for change in changes] == ["i", "j", "b", "a"]
    await assert_consistent(store)


async def test_a_namespace_may_begin_with_states_alone(store: Store) -> None:
    receipt = await _import(store, [build_state("k")])
    assert (receipt.items, receipt.skipped_state_count) == ([], 0)
    await assert_consistent(store)


@pytest.mark.parametrize(
    ("item", "state", "error"),
    [
        (build_write("fresh", "kiwi"), build_state("taken"), Conflict),
        (build_write("taken", "kiwi"), build_state("fresh"), AlreadyExists),
        (build_write("wrong", "kiwi", [1.0, 2.0]), build_state("fresh"), InvalidArgument),
        (build_write("fresh", "kiwi"), build_state("first"), Conflict),
    ],
    ids=["taken key", "taken id", "wrong dimension", "repeated key"],
)
async def test_a_bad_item_or_state_keeps_out_all_of_both(
    store: Store, item: ItemWrite, state: StateWrite, error: type[Exception]
) -> None:
    taken = [build_write("taken", "old", [1.0, 2.0, 3.0])]
    await store.add_items(NS, taken, states=[build_state("taken", "old")])
    before = await store.namespace(NS)
    with pytest.raises(error):
        await store.add_items(NS, [build_write("a", "kiwi"), item], states=[build_state("first"), state])
    assert await store.namespace(NS) == before
    assert (await scan_ids(store), await _keys(store)) == (["taken"], ["taken"])
    assert (await _load(store, "taken")).value_json == b'"old"'
    assert await words_found(store, "kiwi") == set()
    await assert_consistent(store)


async def test_a_first_batch_with_a_repeated_key_begins_no_namespace(store: Store) -> None:
    with pytest.raises(Conflict):
        await _import(store, [build_state("k", 1), build_state("k", 2)])
    assert await store.namespace(NS) is None


async def test_skip_leaves_and_counts_what_exists_of_each(store: Store) -> None:
    await store.add_items(NS, [build_write("i", "old")], states=[build_state("k", "old")])
    states = [build_state("k", "lost"), build_state("l", "first"), build_state("l", "lost")]
    items = [build_write("i", "lost"), build_write("j")]
    receipt = await store.add_items(NS, items, states=states, on_duplicate=OnDuplicate.SKIP)
    assert (receipt.skipped_count, receipt.skipped_state_count) == (1, 2)
    assert (await get_item(store, "i")).content == TextPart("old")
    assert (await _load(store, "k")).value_json == b'"old"'
    assert (await _load(store, "l")).value_json == b'"first"'
    await assert_consistent(store)


async def test_a_batch_that_is_skipped_whole_changes_nothing(store: Store) -> None:
    await store.add_items(NS, [build_write("i")], states=[build_state("k")])
    before = await store.namespace(NS)
    receipt = await store.add_items(
        NS, [build_write("i")], states=[build_state("k")], on_duplicate=OnDuplicate.SKIP
    )
    assert (receipt.skipped_count, receipt.skipped_state_count) == (1, 1)
    assert await store.namespace(NS) == before


async def test_replace_saves_over_what_exists(store: Store) -> None:
    await _import(store, [build_state("k", "old", description="why")])
    states = [build_state("k", "new", NOW + 1), build_state("l", 1), build_state("l", 2)]
    receipt = await _import(store, states, OnDuplicate.REPLACE)
    assert receipt.skipped_state_count == 0
    k, again = await _load(store, "k"), await _load(store, "l")
    assert (k.value_json, k.version, k.create_us, k.update_us) == (b'"new"', 2, NOW, NOW + 1)
    assert (again.value_json, again.version) == (b"2", 2)
    assert len(await store.read_changes(NS, 0, PLENTY)) == 4


@pytest.mark.parametrize("on_duplicate", list(OnDuplicate))
async def test_an_expired_key_is_free(store: Store, on_duplicate: OnDuplicate) -> None:
    await _import(store, [build_state("k", "old", expire_us=NOW + 5)])
    receipt = await _import(store, [build_state("k", "new", NOW + 5)], on_duplicate)
    assert receipt.skipped_state_count == 0
    kept = await _load(store, "k")
    assert (kept.value_json, kept.create_us) == (b'"new"', NOW + 5)
    assert kept.version > 1


async def test_a_repeated_request_with_states_is_applied_once(store: Store) -> None:
    async def send(digest: bytes = b"body") -> Receipt:
        return await store.add_items(
            NS,
            [build_write("i"), build_write("j")],
            states=[build_state("k", "first"), build_state("l")],
            on_duplicate=OnDuplicate.REPLACE,
            request=build_request(digest=digest),
        )

    first = await send()
    await store.save_state(NS, build_state("k", "later"))
    assert await send() == msgspec.structs.replace(first, replayed=True)
    assert (await _load(store, "k")).value_json == b'"later"'
    with pytest.raises(FailedPrecondition):
        await send(b"other")
