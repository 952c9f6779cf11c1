"""Reads that let items live on."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import Item
from memory_service.runtime.caller import present_caller
from memory_service.runtime.clock import now_us
from memory_service.store import Store


async def refreshed(store: Store, namespace: str, items: Sequence[Item]) -> list[Item]:
    """Extend the expiry of items by their time to live, and return them with the new expiry."""
    at_us = now_us()
    positions = [item.position for item in items if item.expire_us is not None]
    if positions:
        await store.refresh_expiry(namespace, positions, at_us, by=present_caller())
    return [item.living_on(at_us) for item in items]


async def refresh_all(store: Store, names: Sequence[str], items: list[Item]) -> None:
    """Extend the expiry of items, each of the namespace of this name, and replace them in the list."""
    for name in dict.fromkeys(names):
        places = [at for at, of in enumerate(names) if of == name]
        living_on = await refreshed(store, name, [items[at] for at in places])
        for at, item in zip(places, living_on, strict=True):
            items[at] = item
