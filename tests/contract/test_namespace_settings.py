"""Settings of namespaces, and the default time to live."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from contract.builders import NOW, NS, PLENTY, SECOND, build_item, build_write, get_item
from contract.conftest import Reopen
from contract.invariants import assert_consistent
from memory_service.data_model import NO_SETTINGS, ItemWrite, NamespaceSettings, OnDuplicate
from memory_service.errors import Conflict
from memory_service.store import Store

HOUR = NamespaceSettings("Europe/Berlin", 3600 * SECOND)


async def _settings(store: Store) -> NamespaceSettings | None:
    info = await store.namespace(NS)
    return None if info is None else info.settings


def _lasting(item_id: str, at: int = NOW, **fields: object) -> ItemWrite:
    return ItemWrite(build_item(item_id, "kiwi", update_us=at, **fields), "kiwi", default_ttl=True)


async def test_settings_are_saved_at_the_next_version(store: Store) -> None:
    info = await store.save_settings(NS, HOUR, expected_version=0)
    assert info.settings == msgspec.structs.replace(HOUR, version=1)
    assert (info.name, info.revision, info.item_count) == (NS, 0, 0)
    await store.add_items(NS, [build_write("a")])
    assert await _settings(store) == msgspec.structs.replace(HOUR, version=1)
    (listed,) = await store.scan_namespaces("", "", PLENTY)
    assert listed.settings == msgspec.structs.replace(HOUR, version=1)
    await store.save_settings(NS, NO_SETTINGS, expected_version=1)
    assert await _settings(store) == NamespaceSettings(version=2)
    assert len(await store.read_changes(NS, 0, PLENTY)) == 1


async def test_settings_of_another_version_are_not_saved(store: Store) -> None:
    with pytest.raises(Conflict):
        await store.save_settings(NS, HOUR, expected_version=1)
    assert await store.namespace(NS) is None
    outcomes = await asyncio.gather(
        *(store.save_settings(NS, HOUR, expected_version=0) for _ in range(5)), return_exceptions=True
    )
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 4


async def test_settings_outlive_a_reset_and_go_with_the_namespace(store: Store) -> None:
    await store.save_settings(NS, HOUR, expected_version=0)
    await store.reset(NS)
    assert await _settings(store) == msgspec.structs.replace(HOUR, version=1)
    await store.delete_namespace(NS)
    assert await _settings(store) is None
    await store.add_items(NS, [build_write("a")])
    assert await _settings(store) == NO_SETTINGS


async def test_settings_are_durable(file_store: Store, reopen: Reopen) -> None:
    await file_store.save_settings(NS, HOUR, expected_version=0)
    store = await reopen()
    assert await _settings(store) == msgspec.structs.replace(HOUR, version=1)


async def test_items_that_are_added_expire_after_the_default_ttl(store: Store) -> None:
    await store.add_items(NS, [_lasting("before")])
    await store.save_settings(NS, HOUR, expected_version=0)
    end = NOW + SECOND + 3600 * SECOND
    receipt = await store.add_items(NS, [_lasting("a", NOW + SECOND), build_write("b")])
    assert [stamp.expire_us for stamp in receipt.items] == [end, None]
    assert (await get_item(store, "a")).expire_us == end
    assert (await get_item(store, "b")).expire_us is None
    assert (await get_item(store, "before")).expire_us is None
    await store.add_items(NS, [_lasting("b", NOW + SECOND)], on_duplicate=OnDuplicate.REPLACE)
    assert (await get_item(store, "b")).expire_us == end
    assert await store.remove_expired(end, 0, PLENTY) == 2
    await store.save_settings(NS, NO_SETTINGS, expected_version=1)
    await store.add_items(NS, [_lasting("c")])
    assert (await get_item(store, "c")).expire_us is None
    await assert_consistent(store)
