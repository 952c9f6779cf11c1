"""Changes: all of them, in order; and waiting for the next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from contract.builders import NOW, NS, PLENTY, SECOND, build_state, build_write
from contract.conftest import Stores
from memory_service.data_model import ChangeType, OnDuplicate
from memory_service.store import Store

# Longer than any wait takes: a waiter that is not woken fails its test instead of hanging it.
HANG_S = 20

StartWaiter = Callable[[str, int], "asyncio.Task[None]"]


async def _kinds(store: Store, after: int = 0) -> list[tuple[ChangeType, str]]:
    return [(change.type, change.subject) for change in await store.read_changes(NS, after, PLENTY)]


@pytest.fixture
async def start_waiter(store: Store) -> AsyncIterator[StartWaiter]:
    """Start tasks that wait for a change; those still waiting at the end are cancelled."""
    waiters: list[asyncio.Task[None]] = []

    def start(namespace: str, after_revision: int) -> asyncio.Task[None]:
        waiters.append(asyncio.create_task(store.wait_for_change(namespace, after_revision)))
        return waiters[-1]

    yield start
    for waiter in waiters:
        waiter.cancel()
    await asyncio.gather(*waiters, return_exceptions=True)


async def _waits(store: Store, waiter: asyncio.Task[None]) -> bool:
    """Return whether a waiter still waits after it and others had a chance to run."""
    for _ in range(3):
        await store.namespace("elsewhere")
        await asyncio.sleep(0)
    return not waiter.done()


async def _ends(waiter: asyncio.Task[None]) -> None:
    async with asyncio.timeout(HANG_S):
        await waiter


async def test_every_write_of_items_is_a_change(store: Store) -> None:
    await store.add_items(NS, [build_write("a"), build_write("b")])
    await store.replace_item(NS, build_write("a"))
    await store.delete_item(NS, "b", now_us=NOW)
    await store.add_items(NS, [build_write("a"), build_write("b")], on_duplicate=OnDuplicate.REPLACE)
    await store.add_items(NS, [build_write("a"), build_write("c")], on_duplicate=OnDuplicate.SKIP)
    assert await _kinds(store) == [
        (ChangeType.ITEM_ADDED, "a"),
        (ChangeType.ITEM_ADDED, "b"),
        (ChangeType.ITEM_UPDATED, "a"),
        (ChangeType.ITEM_DELETED, "b"),
        (ChangeType.ITEM_UPDATED, "a"),
        (ChangeType.ITEM_ADDED, "b"),
        (ChangeType.ITEM_ADDED, "c"),
    ]


async def test_every_write_of_states_is_a_change(store: Store) -> None:
    await store.save_state(NS, build_state("a"))
    await store.save_state(NS, build_state("a", 2))
    await store.delete_state(NS, "a", now_us=NOW)
    await store.add_items(NS, [], states=[build_state("b"), build_state("c")])
    await store.clear_states(NS)
    assert await _kinds(store) == [
        (ChangeType.STATE_SAVED, "a"),
        (ChangeType.STATE_SAVED, "a"),
        (ChangeType.STATE_DELETED, "a"),
        (ChangeType.STATE_SAVED, "b"),
        (ChangeType.STATE_SAVED, "c"),
        (ChangeType.STATE_CLEARED, ""),
    ]


async def test_changes_carry_the_revisions_that_writes_return(store: Store) -> None:
    added = await store.add_items(NS, [build_write("a"), build_write("b")])
    saved = await store.save_state(NS, build_state("k"))
    replaced = await store.replace_item(NS, build_write("a"))
    deleted = await store.delete_item(NS, "b", now_us=NOW)
    unsaved = await store.delete_state(NS, "k", now_us=NOW)
    cleared = await store.clear_states(NS)
    expected = [
        *(stamp.revision for stamp in added.items),
        *(receipt.revision for receipt in (saved, replaced, deleted, unsaved)),
    ]
    revisions = [change.revision for change in await store.read_changes(NS, 0, PLENTY)]
    assert revisions[:6] == expected == sorted(set(expected))
    info = await store.namespace(NS)
    assert info is not None and info.revision == revisions[-1] == cleared.revision


async def test_reading_goes_on_from_any_revision(store: Store) -> None:
    await store.add_items(NS, [build_write(f"i{n}") for n in range(9)])
    changes = await store.read_changes(NS, 0, PLENTY)
    for at, change in enumerate(changes):
        assert await store.read_changes(NS, change.revision, 3) == changes[at + 1 : at + 4]
    assert await store.read_changes(NS, changes[-1].revision + 99, 3) == []
    assert await store.read_changes("none", 0, 3) == []


async def test_a_reset_is_the_first_of_a_new_history(store: Store) -> None:
    before = await store.add_items(NS, [build_write("a")])
    reset = await store.reset(NS)
    await store.add_items(NS, [build_write("b")])
    changes = await store.read_changes(NS, 0, PLENTY)
    assert [(change.type, change.subject) for change in changes] == [
        (ChangeType.RESET, ""),
        (ChangeType.ITEM_ADDED, "b"),
    ]
    assert changes[0].revision == reset.revision > before.revision
    # A reader that stopped in the old history gets the reset and everything after it.
    assert await store.read_changes(NS, before.revision, PLENTY) == changes


async def test_expiry_becomes_a_change_when_it_is_removed(store: Store) -> None:
    await store.add_items(NS, [build_write("a", expire_us=NOW + SECOND), build_write("b")])
    await store.save_state(NS, build_state("k", expire_us=NOW + SECOND))
    after = (await store.read_changes(NS, 0, PLENTY))[-1].revision
    assert await store.remove_expired(NOW + SECOND, 0, PLENTY) == 2
    assert set(await _kinds(store, after)) == {
        (ChangeType.ITEM_EXPIRED, "a"),
        (ChangeType.STATE_EXPIRED, "k"),
    }
    changes = await store.read_changes(NS, 0, PLENTY)
    revisions = [change.revision for change in changes]
    assert revisions == sorted(set(revisions))
    info = await store.namespace(NS)
    assert info is not None and info.revision == revisions[-1]


async def test_taking_an_expired_id_ends_with_its_addition(store: Store) -> None:
    await store.add_items(NS, [build_write("a", expire_us=NOW + SECOND)])
    receipt = await store.add_items(NS, [build_write("a", update_us=NOW + SECOND)])
    last = (await store.read_changes(NS, 0, PLENTY))[-1]
    assert (last.type, last.subject, last.revision) == (ChangeType.ITEM_ADDED, "a", receipt.items[0].revision)


async def test_changes_of_other_namespaces_are_not_seen(store: Store) -> None:
    await store.add_items(NS, [build_write("a")])
    await store.add_items(NS + "/more", [build_write("b")])
    await store.save_state("other", build_state("k"))
    assert await _kinds(store) == [(ChangeType.ITEM_ADDED, "a")]


async def test_a_reader_beside_writers_never_misses_a_change(store: Store) -> None:
    seen: list[int] = []

    async def follow(count: int) -> None:
        while len(seen) < count:
            after = seen[-1] if seen else 0
            await store.wait_for_change(NS, after)
            seen.extend(change.revision for change in await store.read_changes(NS, after, 7))

    async with asyncio.timeout(HANG_S):
        follower = asyncio.create_task(follow(60))
        await asyncio.gather(
            *(store.add_items(NS, [build_write(f"i{n}"), build_write(f"j{n}")]) for n in range(20)),
            *(store.save_state(NS, build_state(f"k{n}")) for n in range(20)),
        )
        await follower
    assert seen == [change.revision for change in await store.read_changes(NS, 0, PLENTY)]


async def test_waiting_for_what_has_happened_returns_at_once(store: Store) -> None:
    receipt = await store.add_items(NS, [build_write("a")])
    async with asyncio.timeout(HANG_S):
        await store.wait_for_change(NS, receipt.revision - 1)


CHANGING: dict[str, Callable[[Store], Awaitable[object]]] = {
    "add": lambda store: store.add_items(NS, [build_write("b")]),
    "replace": lambda store: store.replace_item(NS, build_write("a")),
    "delete": lambda store: store.delete_item(NS, "a", now_us=NOW),
    "save": lambda store: store.save_state(NS, build_state("k")),
    "add state": lambda store: store.add_items(NS, [], states=[build_state("l")]),
    "delete state": lambda store: store.delete_state(NS, "k", now_us=NOW),
    "clear": lambda store: store.clear_states(NS),
    "reset": lambda store: store.reset(NS),
    "expire": lambda store: store.remove_expired(NOW + SECOND, 0, PLENTY),
    "delete namespace": lambda store: store.delete_namespace(NS),
}


@pytest.mark.parametrize("kind", CHANGING)
async def test_a_waiter_is_woken_by_every_kind_of_change(
    store: Store, start_waiter: StartWaiter, kind: str
) -> None:
    await store.save_state(NS, build_state("k"))
    receipt = await store.add_items(NS, [build_write("a", expire_us=NOW + SECOND)])
    waiter = start_waiter(NS, receipt.revision)
    assert await _waits(store, waiter)
    await CHANGING[kind](store)
    await _ends(waiter)


async def test_a_waiter_is_not_woken_by_other_namespaces_or_failures(
    store: Store, start_waiter: StartWaiter
) -> None:
    receipt = await store.add_items(NS, [build_write("a")])
    waiter = start_waiter(NS, receipt.revision)
    assert await _waits(store, waiter)
    await store.add_items(NS + "/more", [build_write("a")])
    await store.add_items(NS, [build_write("a")], on_duplicate=OnDuplicate.SKIP)
    await store.delete_namespace(NS + "/more")
    assert await _waits(store, waiter)


async def test_a_waiter_waits_until_its_revision_is_passed(store: Store, start_waiter: StartWaiter) -> None:
    receipt = await store.add_items(NS, [build_write("a")])
    waiter = start_waiter(NS, receipt.revision + 1)
    assert await _waits(store, waiter)
    await store.add_items(NS, [build_write("b")])
    assert await _waits(store, waiter)
    await store.add_items(NS, [build_write("c")])
    await _ends(waiter)


async def test_a_namespace_can_be_waited_for(store: Store, start_waiter: StartWaiter) -> None:
    waiter = start_waiter(NS, 0)
    assert await _waits(store, waiter)
    assert await store.namespace(NS) is None
    await store.save_state(NS, build_state("k"))
    await _ends(waiter)


async def test_many_waiters_are_all_woken(store: Store, start_waiter: StartWaiter) -> None:
    receipt = await store.add_items(NS, [build_write("a")])
    waiters = [start_waiter(NS, receipt.revision) for _ in range(20)]
    assert await _waits(store, waiters[0])
    await store.add_items(NS, [build_write("b")])
    for waiter in waiters:
        await _ends(waiter)


async def test_a_waiter_can_be_cancelled_without_harm_to_others(
    store: Store, start_waiter: StartWaiter
) -> None:
    receipt = await store.add_items(NS, [build_write("a")])
    cancelled, kept = start_waiter(NS, receipt.revision), start_waiter(NS, receipt.revision)
    assert await _waits(store, cancelled)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await _ends(cancelled)
    assert await _waits(store, kept)
    await store.add_items(NS, [build_write("b")])
    await _ends(kept)


async def test_waiters_are_woken_by_closing(store: Store, stores: Stores, start_waiter: StartWaiter) -> None:
    receipt = await store.add_items(NS, [build_write("a")])
    waiters = [start_waiter(NS, receipt.revision), start_waiter("none", 0)]
    assert await _waits(store, waiters[0])
    await stores.close()
    # How they end is up to the store; that they end is the promise.
    async with asyncio.timeout(HANG_S):
        await asyncio.wait(waiters)
