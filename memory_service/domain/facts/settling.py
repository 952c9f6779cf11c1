"""Decides and writes in one step, without making other calls wait for a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TypeVar
from weakref import WeakValueDictionary

from memory_service.data_model import Since
from memory_service.deciders.base import Begin
from memory_service.domain.checks import Checks
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.facts.judging import Judging
from memory_service.domain.facts.reading import KINDS, UserMemoryReading
from memory_service.domain.items import Items
from memory_service.errors import Conflict
from memory_service.store import Store

P = TypeVar("P")
R = TypeVar("R")

_CONCURRENT_TRIES = 3


@dataclass(frozen=True)
class Parts:
    """What the services for facts share, and a lock for each namespace.

    Conditional writes keep writers apart, also those of two servers. The locks only save work within one
    server: without them each write would void what others have planned in the meantime.
    """

    store: Store
    items: Items
    reading: UserMemoryReading
    judging: Judging
    checks: Checks
    begin: Begin
    _turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def turn(self, namespace: str) -> asyncio.Lock:
        """Return the lock of a namespace, which exists as long as a caller holds or awaits it."""
        return self._turns.setdefault(namespace, asyncio.Lock())

    async def since(self, namespace: str) -> Since:
        """Return the condition that no fact has been added or changed from now on.

        Removals matter only to facts that refer to the removed one; see `FactSaving.write`. A caller that
        removes memories one by one must not stop those that save facts.
        """
        return Since(await self.reading.revision(namespace), KINDS, removals=False)

    async def settle(
        self,
        namespace: str,
        plan: Callable[[], Awaitable[P]],
        write: Callable[[P, Since], Awaitable[R]],
        *,
        slow: bool,
    ) -> R:
        """Plan and write; plan again if any fact has changed since planning began.

        With `slow`, the plan asks a language model and does not hold the lock, except after several
        conflicts. Raises what both raise; Conflict only after many tries.
        """
        conflict: Conflict | None = None
        for attempt in range(TRIES):
            alone = not slow or attempt >= _CONCURRENT_TRIES
            async with self.turn(namespace) if alone else nullcontext():
                since = await self.since(namespace)
                planned = await plan()
                # A result that needs no write must also be decided on current facts.
                if not alone and await self.reading.revision(namespace) != since.revision:
                    continue
                try:
                    return await write(planned, since)
                except Conflict as error:
                    conflict = error
            await pause_after(attempt)
        assert conflict is not None
        raise conflict
