"""Calls that wait in a `CallQueue` for their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from memory_service.errors import Overloaded
from memory_service.limits import Limits
from memory_service.runtime.caller import Owner
from memory_service.runtime.yielding import PLACE
from memory_service.server.admission.call_queue import CallQueue

LIMITS = Limits(concurrent_calls_max=8, waiting_calls_max=16)


async def nothing() -> None:
    """Return immediately."""


class Calls:
    """Calls that start in their turn, do their work and end when the test lets them."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.queue = CallQueue(limits)
        self.started: list[str] = []
        self.refused: list[str] = []
        self.ended: list[str] = []
        self.may_end = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    def arrive(
        self,
        name: str,
        *,
        caller: str = "",
        remaining_s: float | None = None,
        work: Callable[[], Awaitable[object]] | None = None,
    ) -> asyncio.Task[None]:
        """Run a call whose name begins with its namespace: do its work, or wait until it may end."""
        owner = Owner(caller, name.partition("-")[0].encode())
        call = self._call(name, owner, remaining_s, work or self.may_end.wait)
        self.tasks.append(asyncio.create_task(call))
        return self.tasks[-1]

    async def _call(
        self, name: str, owner: Owner, remaining_s: float | None, work: Callable[[], Awaitable[object]]
    ) -> None:
        try:
            place = self.queue.arrive(owner, remaining_s)
        except Overloaded:
            self.refused.append(name)
            return
        try:
            if place.gate is not None:
                await place.gate
            self.started.append(name)
            PLACE.set(place)
            await work()
            self.ended.append(name)
        except Overloaded:
            self.refused.append(name)
        finally:
            self.queue.leave(place)

    async def until_started(self, count: int) -> None:
        """Wait until this many calls have started or been refused."""
        async with asyncio.timeout(30):
            while len(self.started) + len(self.refused) < count:  # noqa: ASYNC110 - calls start one by one
                await asyncio.sleep(0.001)

    async def end(self) -> None:
        """Let all calls end."""
        self.may_end.set()
        await asyncio.gather(*self.tasks, return_exceptions=True)
