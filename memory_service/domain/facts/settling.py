"""Deciding and writing as one step, without making others wait for a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar
from weakref import WeakValueDictionary

from memory_service.deciders.base import Begin
from memory_service.domain.checks import Checks
from memory_service.domain.facts.judging import Judging
from memory_service.domain.facts.reading import MemoryReading
from memory_service.domain.memories import Memories
from memory_service.errors import Conflict
from memory_service.records.base import Store

P = TypeVar("P")
R = TypeVar("R")

_TRIES = 10
_UNLOCKED_TRIES = 3


@dataclass(frozen=True)
class Parts:
    """What the services of facts work with, and one lock per namespace, for as long as it is held or awaited.

    A process has its data folder for itself, so a lock of its own is enough.
    """

    store: Store
    memories: Memories
    reading: MemoryReading
    judging: Judging
    checks: Checks
    begin: Begin
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def lock(self, namespace: str) -> asyncio.Lock:
        """Return the lock of a namespace."""
        return self._locks.setdefault(namespace, asyncio.Lock())

    async def settle(
        self,
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
            seen = await self.reading.revision(namespace)
            planned = await plan() if slow and attempt < _UNLOCKED_TRIES else None
            async with self.lock(namespace):
                if planned is None:
                    planned = await plan()
                elif await self.reading.revision(namespace) != seen:
                    continue
                try:
                    return await write(planned)
                except Conflict as error:
                    # Something that does not take the lock changed one of the memories: look again.
                    conflict = error
        assert conflict is not None
        raise conflict
