"""A read can let items live on: without a change, and found by all reads that begin afterwards."""

from __future__ import annotations

from typing import Any

from contract.builders import NOW, NS, SECOND, build_write, get_item, scan_ids, words_found
from contract.conftest import Stores
from contract.invariants import assert_consistent
from memory_service.data_model import TIME_US_MAX, OnDuplicate
from memory_service.operations import RemoveItem
from memory_service.store import Store

LATER = NOW + 5 * SECOND


def lasting(item_id: str, ttl_s: int = 10, **fields: Any) -> Any:
    """Return a write of an item with a time to live."""
    return build_write(item_id, "kiwi", expire_us=NOW + ttl_s * SECOND, ttl_us=ttl_s * SECOND, **fields)


async def test_an_item_lives_for_its_time_to_live_from_then_on(store: Store) -> None:
    await store.add_items(NS, [lasting("a"), lasting("b"), build_write("forever", "kiwi")])
    before = await store.namespace(NS)
    await words_found(store, "kiwi")
    for _ in range(2):
        await store.refresh_expiry(NS, [1, 3, 99], LATER)
        item = await get_item(store, "a")
        assert (item.expire_us, item.ttl_us, item.revision) == (LATER + 10 * SECOND, 10 * SECOND, 1)
    assert (await get_item(store, "forever")).expire_us is None
    assert await store.namespace(NS) == before
    assert len(await store.read_changes(NS, 0, 9)) == 3
    after = NOW + 12 * SECOND
    assert await words_found(store, "kiwi", now_us=after) == {"a", "forever"}
    assert await scan_ids(store, now_us=after) == ["a", "forever"]
    (loaded,) = await (await store.read(NS)).load_items([1])
    assert loaded is not None and loaded.expire_us == LATER + 10 * SECOND
    assert await store.remove_expired(after, 0, 9) == 1
    assert await scan_ids(store) == ["a", "forever"]
    await assert_consistent(store)
    assert await store.remove_expired(LATER + 10 * SECOND, 0, 9) == 1


async def test_a_longer_life_is_not_shortened(store: Store) -> None:
    await store.add_items(NS, [build_write("a", expire_us=NOW + 99 * SECOND, ttl_us=SECOND)])
    await store.refresh_expiry(NS, [1], LATER)
    assert (await get_item(store, "a")).expire_us == NOW + 99 * SECOND


async def test_no_item_lives_beyond_what_timestamps_hold(store: Store) -> None:
    await store.add_items(NS, [build_write("a", expire_us=TIME_US_MAX - SECOND, update_us=NOW)])
    await store.refresh_expiry(NS, [1], LATER)
    assert (await get_item(store, "a")).expire_us == TIME_US_MAX


async def test_an_item_without_a_time_to_live_has_that_of_its_version(store: Store) -> None:
    await store.add_items(NS, [build_write("a", expire_us=NOW + 10 * SECOND)])
    for at_us in (LATER, LATER + SECOND):
        await store.refresh_expiry(NS, [1], at_us)
        assert (await get_item(store, "a")).expire_us == at_us + 10 * SECOND


async def test_an_expired_item_stays_expired(store: Store) -> None:
    await store.add_items(NS, [lasting("a")])
    await store.refresh_expiry(NS, [1], NOW + 10 * SECOND)
    assert (await get_item(store, "a")).expire_us == NOW + 10 * SECOND
    await store.refresh_expiry("missing", [1], NOW)
    assert await store.namespace("missing") is None


async def test_a_later_version_has_its_own_expiry(store: Store) -> None:
    await store.add_items(NS, [lasting("a")])
    await store.refresh_expiry(NS, [1], LATER)
    write = lasting("a", 2, update_us=NOW + 1)
    await store.add_items(NS, [write], on_duplicate=OnDuplicate.REPLACE)
    assert (await get_item(store, "a")).expire_us == NOW + 2 * SECOND
    assert await scan_ids(store, now_us=NOW + 3 * SECOND) == []


async def test_a_removed_item_is_not_refreshed(store: Store) -> None:
    await store.add_items(NS, [lasting("a"), lasting("b")])
    await store.write(NS, [RemoveItem("a", NOW)])
    await store.refresh_expiry(NS, [1, 2], LATER)
    assert await scan_ids(store, now_us=NOW + 12 * SECOND) == ["b"]


async def test_a_refreshed_expiry_outlives_the_process(stores: Stores) -> None:
    store = await stores.open()
    if not store.capabilities.durable:
        return
    await store.add_items(NS, [lasting(f"i{at}") for at in range(80)])
    await words_found(store, "kiwi")
    await store.flush()
    await store.refresh_expiry(NS, [5, 80], LATER)
    for _ in range(2):
        store = await stores.reopen()
        assert await scan_ids(store, now_us=NOW + 12 * SECOND) == ["i4", "i79"]
        assert await words_found(store, "kiwi", now_us=NOW + 12 * SECOND) == {"i4", "i79"}
