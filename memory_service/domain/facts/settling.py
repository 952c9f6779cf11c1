"""Deciding and writing as one step, without making others wait for a language model."""

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
    """What the services of facts work with, and whose turn it is in a namespace.

    What keeps two writers apart, also in two servers, is the condition of their writes. The turns of one
    server save work: without them each write would make void what the others have planned meanwhile.
    """

    store: Store
    items: Items
    reading: UserMemoryReading
    judging: Judging
    checks: Checks
    begin: Begin
    _turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def turn(self, namespace: str) -> asyncio.Lock:
        """Return what is held while it is one's turn, for as long as anybody holds or awaits it."""
        return self._turns.setdefault(namespace, asyncio.Lock())

    async def since(self, namespace: str) -> Since:
        """Return the condition that no fact is added or changed from now on.

        What is removed is of no other fact's concern, but where it is named; see `FactSaving.write`. Who
        removes messages one by one shall not stop those who save facts.
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
        """Plan, and write what was planned if no fact has changed since the plan was begun; else plan anew.

        With `slow` the plan asks a language model, and then does not wait for its turn, unless others have
        been faster again and again. Raises what both raise; Conflict only after many tries.
        """
        conflict: Conflict | None = None
        for attempt in range(TRIES):
            alone = not slow or attempt >= _CONCURRENT_TRIES
            async with self.turn(namespace) if alone else nullcontext():
                since = await self.since(namespace)
                planned = await plan()
                # What is not written, but only told, is decided on what is there now, too.
                if not alone and await self.reading.revision(namespace) != since.revision:
                    continue
                try:
                    return await write(planned, since)
                except Conflict as error:
                    conflict = error
            await pause_after(attempt)
        assert conflict is not None
        raise conflict
