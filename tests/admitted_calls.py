"""Calls that ask an `Admission` to be let in."""

from __future__ import annotations

import asyncio
from contextvars import Context, copy_context
from dataclasses import replace

from memory_service.errors import Overloaded
from memory_service.limits import Limits
from memory_service.runtime.caller import ANYBODY, set_caller
from memory_service.server.admission import Admission
from memory_service.server.inlet import Inlet
from memory_service.server.tickets import Ticket

LIMITS = Limits(concurrent_calls_max=8, waiting_calls_max=16)


def request(namespace: str, size: int = 0) -> bytes:
    """What a request of this namespace begins with."""
    return bytes([0x0A, len(namespace)]) + namespace.encode() + bytes(size)


def called_by(name: str) -> Context:
    """What a call of this caller has around it."""
    context = copy_context()
    context.run(set_caller, replace(ANYBODY, name=name))
    return context


class Calls:
    """Calls that start when they are let in, and end when they are told to."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.admission = Admission(limits, Inlet())
        self.started: list[str] = []
        self.refused: list[str] = []
        self.may_end = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    def arrive(
        self, name: str, turns_before: int = 0, raw: bytes = b"", caller: str = ""
    ) -> asyncio.Task[None]:
        """A call that arrives after some turns of the loop; its name begins with its namespace."""
        raw = raw or request(name.partition("-")[0])
        call = self._call(name, turns_before, raw)
        self.tasks.append(asyncio.get_running_loop().create_task(call, context=called_by(caller)))
        return self.tasks[-1]

    async def _call(self, name: str, turns_before: int, raw: bytes) -> None:
        for _ in range(turns_before):
            await asyncio.sleep(0)
        ticket: Ticket | None = None
        try:
            ticket = self.admission.arrive(raw, None)
            if ticket.gate is not None:
                await ticket.gate
            self.started.append(name)
            await self.may_end.wait()
        except Overloaded:
            self.refused.append(name)
        finally:
            if ticket is not None:
                self.admission.leave(ticket)

    async def until_started(self, count: int) -> None:
        """Waits until so many calls have started or been refused."""
        async with asyncio.timeout(30):
            while len(self.started) + len(self.refused) < count:  # noqa: ASYNC110 - calls start one by one
                await asyncio.sleep(0.001)

    async def end(self) -> None:
        """Lets all calls end."""
        self.may_end.set()
        await asyncio.gather(*self.tasks, return_exceptions=True)
