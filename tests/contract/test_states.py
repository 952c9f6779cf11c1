"""States: named values whose versions never repeat."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from contract.builders import NOW, NS, PLENTY, SECOND, build_state, build_write
from memory_service.data_model import Receipt, StateEntry
from memory_service.errors import Conflict, NotFound
from memory_service.store import Store

# In the order of their UTF-8 bytes; UTF-16, a locale or a case-insensitive order would differ.
ORDERED_KEYS = ["%", "A", "B", "_", "a", "a b", "a/b", "a/c", "aa", "\u00e9", "\uffff", "\U0001f600"]


async def _load(store: Store, key: str) -> StateEntry:
    return (await store.load_states(NS, [key]))[key]


async def _scan_keys(store: Store, after: str = "", limit: int = PLENTY, now_us: int = NOW) -> list[str]:
    return [entry.key for entry in await store.scan_states(NS, after, limit, now_us=now_us)]


@pytest.mark.parametrize(
    "value", [None, True, 0, 1.5, "\u00e9\U0001f600", [], {"a": [1, {"b": None}]}, "x" * 70_000]
)
async def test_a_value_comes_back_byte_for_byte(store: Store, value: Any) -> None:
    written = build_state("k", value)
    await store.save_state(NS, written)
    kept = await _load(store, "k")
    assert kept.value_json == written.value_json
    assert kept.size_bytes == len(written.value_json)
    assert await store.scan_states(NS, "", 1, now_us=NOW) == [kept]


async def test_versions_count_up_from_one(store: Store) -> None:
    receipts = [await store.save_state(NS, build_state("k", n)) for n in range(3)]
    other = await store.save_state(NS, build_state("other"))
    assert [receipt.version for receipt in receipts] == [1, 2, 3]
    assert other.version == 1
    assert (await _load(store, "k")).version == 3


async def test_a_receipt_tells_times_and_the_entry_agrees(store: Store) -> None:
    await store.save_state(NS, build_state("k", 1, NOW))
    receipt = await store.save_state(NS, build_state("k", 2, NOW + 5, expire_us=NOW + 9))
    assert (receipt.create_us, receipt.update_us, receipt.expire_us) == (NOW, NOW + 5, NOW + 9)
    kept = await _load(store, "k")
    assert (kept.create_us, kept.update_us, kept.expire_us) == (NOW, NOW + 5, NOW + 9)
    assert kept.revision == receipt.revision


async def test_a_save_without_expiry_ends_the_one_before(store: Store) -> None:
    await store.save_state(NS, build_state("k", 1, expire_us=NOW + 9))
    await store.save_state(NS, build_state("k", 2))
    assert (await _load(store, "k")).expire_us is None
    assert await _scan_keys(store, now_us=NOW + 9) == ["k"]


async def test_a_description_stays_until_another_comes(store: Store) -> None:
    descriptions = []
    for given in (None, "first", None, "", None):
        receipt = await store.save_state(NS, build_state("k", description=given))
        descriptions.append((await _load(store, "k")).description)
        assert receipt.description == descriptions[-1]
    assert descriptions == ["", "first", "first", "", ""]


async def test_expected_version_must_be_current(store: Store) -> None:
    await store.save_state(NS, build_state("k", "one", expected_version=0))
    await store.save_state(NS, build_state("k", "two", expected_version=1))
    before = await store.namespace(NS)
    for stale in (0, 1, 3):
        with pytest.raises(Conflict) as raised:
            await store.save_state(NS, build_state("k", "lost", expected_version=stale))
        assert raised.value.reason == "VERSION_MISMATCH"
        assert raised.value.metadata["current_version"] == "2"
        assert raised.value.metadata["expected_version"] == str(stale)
    assert (await _load(store, "k")).value_json == b'"two"'
    assert await store.namespace(NS) == before


async def test_a_version_is_not_met_where_there_is_nothing(store: Store) -> None:
    with pytest.raises(Conflict) as raised:
        await store.save_state(NS, build_state("k", expected_version=1))
    assert raised.value.metadata["current_version"] == "0"
    assert await store.namespace(NS) is None


async def test_a_version_does_not_come_back_after_deletion(store: Store) -> None:
    for n in range(3):
        await store.save_state(NS, build_state("k", n))
    await store.delete_state(NS, "k", now_us=NOW)
    again = await store.save_state(NS, build_state("k", "again", NOW + 5, expected_version=0))
    assert again.version > 3
    assert again.create_us == NOW + 5
    # A caller that read version 1 to 3 before must not overwrite what came after.
    for stale in (0, 1, 2, 3):
        with pytest.raises(Conflict):
            await store.save_state(NS, build_state("k", "lost", expected_version=stale))


@pytest.mark.parametrize("way", ["clear", "expiry", "removal of the expired", "reset"])
async def test_a_version_does_not_come_back_in_the_life_of_a_namespace(store: Store, way: str) -> None:
    await store.save_state(NS, build_state("k", 1))
    await store.save_state(NS, build_state("k", 2, expire_us=NOW + 5))
    if way == "clear":
        await store.clear_states(NS)
    elif way == "removal of the expired":
        assert await store.remove_expired(NOW + 5, 0, PLENTY) == 1
    elif way == "reset":
        await store.reset(NS)
    again = await store.save_state(NS, build_state("k", 3, NOW + 5, expected_version=0))
    assert again.version > 2


async def test_versions_begin_anew_in_a_new_namespace(store: Store) -> None:
    for n in range(3):
        await store.save_state(NS, build_state("k", n))
    await store.delete_namespace(NS)
    assert (await store.save_state(NS, build_state("k"))).version == 1


async def test_an_expired_state_is_as_if_it_did_not_exist(store: Store) -> None:
    await store.save_state(NS, build_state("k", 1, description="old", expire_us=NOW + SECOND))
    with pytest.raises(Conflict):
        await store.save_state(NS, build_state("k", 2, NOW + SECOND - 1, expected_version=0))
    with pytest.raises(Conflict):
        await store.save_state(NS, build_state("k", 2, NOW + SECOND, expected_version=1))
    receipt = await store.save_state(NS, build_state("k", 2, NOW + SECOND, expected_version=0))
    assert receipt.create_us == NOW + SECOND
    assert (await _load(store, "k")).description == ""


async def test_load_returns_expired_states_and_leaves_out_the_rest(store: Store) -> None:
    assert await store.load_states(NS, ["k"]) == {}
    await store.save_state(NS, build_state("k", expire_us=NOW - 1))
    await store.save_state(NS, build_state("other"))
    assert set(await store.load_states(NS, ["none", "k", "other", "k"])) == {"k", "other"}
    assert await store.load_states(NS, []) == {}


async def test_scan_is_ordered_by_utf8_bytes(store: Store) -> None:
    for key in reversed(ORDERED_KEYS):
        await store.save_state(NS, build_state(key))
    assert sorted(ORDERED_KEYS, key=str.encode) == ORDERED_KEYS
    assert await _scan_keys(store) == ORDERED_KEYS
    for at, key in enumerate(ORDERED_KEYS):
        assert await _scan_keys(store, after=key, limit=3) == ORDERED_KEYS[at + 1 : at + 4]
    assert await _scan_keys(store, after="a!", limit=2) == ["a/b", "a/c"]


async def test_scan_leaves_out_the_expired_and_counts_without_them(store: Store) -> None:
    for n in range(6):
        await store.save_state(NS, build_state(f"k{n}", expire_us=NOW + 5 if n < 4 else None))
    assert await _scan_keys(store, limit=2, now_us=NOW + 5) == ["k4", "k5"]
    assert await _scan_keys(store, limit=2, now_us=NOW + 4) == ["k0", "k1"]


async def test_scan_follows_saves_and_deletions(store: Store) -> None:
    assert await _scan_keys(store) == []
    await store.save_state(NS, build_state("b"))
    await store.save_state(NS, build_state("a"))
    await store.save_state(NS, build_state("b", "new"))
    assert await _scan_keys(store) == ["a", "b"]
    assert await _scan_keys(store, limit=0) == []
    await store.delete_state(NS, "a", now_us=NOW)
    assert [entry.value_json for entry in await store.scan_states(NS, "", 9, now_us=NOW)] == [b'"new"']


async def test_delete_needs_a_state(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.delete_state(NS, "k", now_us=NOW)
    assert await store.namespace(NS) is None
    await store.save_state(NS, build_state("k", expire_us=NOW + 5))
    with pytest.raises(NotFound):
        await store.delete_state(NS, "k", now_us=NOW + 5)
    await store.delete_state(NS, "k", now_us=NOW + 4)
    with pytest.raises(NotFound):
        await store.delete_state(NS, "k", now_us=NOW)


async def test_delete_compares_the_version(store: Store) -> None:
    await store.save_state(NS, build_state("k", 1))
    await store.save_state(NS, build_state("k", 2))
    for stale in (0, 1, 3):
        with pytest.raises(Conflict):
            await store.delete_state(NS, "k", now_us=NOW, expected_version=stale)
    assert await _scan_keys(store) == ["k"]
    await store.delete_state(NS, "k", now_us=NOW, expected_version=2)
    assert await store.load_states(NS, ["k"]) == {}


async def test_clear_removes_every_state_and_no_item(store: Store) -> None:
    await store.add_items(NS, [build_write("a")])
    for key in ORDERED_KEYS:
        await store.save_state(NS, build_state(key))
    before = await store.read_changes(NS, 0, PLENTY)
    receipt = await store.clear_states(NS)
    assert (receipt.removed_state_count, receipt.removed_count) == (len(ORDERED_KEYS), 0)
    assert await _scan_keys(store) == []
    assert await store.load_states(NS, ORDERED_KEYS) == {}
    assert len(await store.read_changes(NS, 0, PLENTY)) == len(before) + 1
    info = await store.namespace(NS)
    assert info is not None and (info.item_count, info.state_count) == (1, 0)


async def test_of_many_creators_one_wins(store: Store) -> None:
    outcomes = await asyncio.gather(
        *(store.save_state(NS, build_state("k", n, expected_version=0)) for n in range(20)),
        return_exceptions=True,
    )
    winners = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Receipt)]
    assert len(winners) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 19
    assert (await _load(store, "k")).value_json == str(winners[0]).encode()


async def test_no_increment_is_lost(store: Store) -> None:
    await store.save_state(NS, build_state("counter", 0))

    async def increment() -> None:
        while True:
            entry = await _load(store, "counter")
            raised = build_state("counter", int(entry.value_json) + 1, expected_version=entry.version)
            try:
                await store.save_state(NS, raised)
            except Conflict:
                continue
            return

    await asyncio.gather(*(increment() for _ in range(12)))
    assert (await _load(store, "counter")).value_json == b"12"
