"""Settings that servers with shared records have in common."""

from __future__ import annotations

import asyncio

import pytest

from contract.conftest import Stores
from memory_service.errors import Unsupported
from memory_service.store import Store


async def test_the_first_value_stays(stores: Stores, shared_store: Store) -> None:
    assert await shared_store.keep_setting("key", b"\0one") == b"\0one"
    other = await stores.open()
    assert await other.keep_setting("key", b"two") == b"\0one"
    assert await other.keep_setting("another", b"two") == b"two"
    reopened = await stores.reopen()
    assert await reopened.keep_setting("key", b"three") == b"\0one"


async def test_of_several_servers_at_once_all_get_the_same(stores: Stores, shared_store: Store) -> None:
    servers = [shared_store, *[await stores.open() for _ in range(3)]]
    for name in ("a", "b", "c", "d"):
        kept = await asyncio.gather(
            *(store.keep_setting(name, bytes([number])) for number, store in enumerate(servers))
        )
        assert len(set(kept)) == 1, name


async def test_records_of_one_server_keep_none(store: Store) -> None:
    if store.capabilities.shared:
        pytest.skip("needs a store without the capability `shared`")
    with pytest.raises(Unsupported):
        await store.keep_setting("key", b"one")


async def test_records_that_are_open_can_be_reached(store: Store) -> None:
    assert await store.is_reachable()
