"""Deciding and writing as one step, without making others wait for a language model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from memory_service.errors import Conflict
from memory_service.stores.base import Store

P = TypeVar("P")
R = TypeVar("R")

_TRIES = 10
_UNLOCKED_TRIES = 3


class Locks:
    """One lock per namespace, for as long as somebody holds or awaits it.

    A process has its data folder for itself, so a lock of its own is enough.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, namespace: str) -> AsyncIterator[None]:
        """Hold the lock of a namespace."""
        lock = self._locks.get(namespace)
        if lock is None:
            lock = self._locks[namespace] = asyncio.Lock()
        async with lock:
            yield


async def settle(
    store: Store,
    locks: Locks,
    namespace: str,
    plan: Callable[[], Awaitable[P]],
    write: Callable[[P], Awaitable[R]],
    *,
    slow: bool,
) -> R:
    """Plan, and write what was planned if nothing else was written in between; else plan anew.

    With `slow` the plan asks a language model: it is then made before the lock is taken, unless others
    have been faster again and again. Raises what both raise; Conflict only after many tries.
    """
    conflict: Conflict | None = None
    for attempt in range(_TRIES):
        seen = await _revision(store, namespace)
        planned = await plan() if slow and attempt < _UNLOCKED_TRIES else None
        async with locks.hold(namespace):
            if planned is None:
                planned = await plan()
            elif await _revision(store, namespace) != seen:
                continue
            try:
                return await write(planned)
            except Conflict as error:
                # Something that does not take the lock changed one of the memories: look again.
                conflict = error
    assert conflict is not None
    raise conflict


async def _revision(store: Store, namespace: str) -> int:
    info = await store.namespace(namespace)
    return info.revision if info else 0
