"""Heavy writes: one at a time from the words of their items to their publication, and owners take turns.

Side by side they would be no quicker, for all of them need the loop, the writer's connection and the
interpreter. So who writes much would have the next heavy write wait for the commit already when one ends, and
small writes of others, which come between two of them, would wait longer, and queries with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memory_service.caller import present_caller
from memory_service.fair_queue import FairQueue


class HeavyTurns:
    """For one event loop."""

    def __init__(self) -> None:
        self._waiting = FairQueue[str, asyncio.Future[None]]()
        self._taken = False

    @asynccontextmanager
    async def turn(self, namespace: str) -> AsyncIterator[None]:
        """Wait for the turn of the present caller's namespace, which lasts as long as the context."""
        if self._taken:
            await self._wait((present_caller().name, namespace))
        self._taken = True
        try:
            yield
        finally:
            self._pass_on()

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

    def _pass_on(self) -> None:
        self._taken = False
        while (turn := self._waiting.take()) is not None:
            if not turn.done():
                self._taken = True
                turn.set_result(None)
                return
