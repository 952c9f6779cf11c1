"""Heavy writes: one at a time from the words of their items to their publication, and owners take turns.

Side by side they would be no quicker, for all of them need the loop, the writer's connection and the
interpreter. So who writes much would have the next heavy write wait for the commit already when one ends, and
small writes of others, which come between two of them, would wait longer, and queries with them.

Where others make short calls meanwhile, no heavy write follows another at once: what those calls meet takes a
quarter of the time, and not all of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memory_service.giving_way import others_were_here
from memory_service.runtime.caller import Owner, present_caller
from memory_service.runtime.fair_queue import FairQueue

HEAVY_ITEMS = 64
"""A write of more than so many items and states is heavy."""

# Times what the write took; it may have waited for a checkpoint, hence the bound.
_REST = 3.0
_REST_S_MAX = 0.25


class HeavyTurns:
    """For one event loop."""

    def __init__(self) -> None:
        self._waiting = FairQueue[str, asyncio.Future[None]]()
        self._taken = False
        self._ended_at = time.perf_counter()

    @asynccontextmanager
    async def turn(self, namespace: str) -> AsyncIterator[None]:
        """Wait for the turn of the present caller's namespace, which lasts as long as the context."""
        caller = present_caller().name
        if self._taken:
            await self._wait((caller, namespace))
        self._taken = True
        began = time.perf_counter()
        try:
            yield
        finally:
            self._rest(Owner(caller, namespace.encode()), began)

    async def _wait(self, owner: tuple[str, str]) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put(owner, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # It was given the turn, and cancelled before it went on.
                self._pass_on()
            raise

    def _rest(self, owner: Owner, began: float) -> None:
        """Pass the turn on: after a rest, if others made short calls since the write before ended."""
        now = time.perf_counter()
        since, self._ended_at = self._ended_at, now
        if others_were_here(owner, since):
            rest_s = min(_REST * (now - began), _REST_S_MAX)
            asyncio.get_running_loop().call_later(rest_s, self._pass_on)
        else:
            self._pass_on()

    def _pass_on(self) -> None:
        self._taken = False
        while (turn := self._waiting.take()) is not None:
            if not turn.done():
                self._taken = True
                turn.set_result(None)
                return
