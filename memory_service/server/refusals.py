"""Holds refusals back for a moment: callers who ask again at once would have a server do nothing but refuse.

A refusal costs a tenth of an answer and more, and some hundred callers who come back with each keep a server
busy. While its refusal is held a caller waits, as it does for an answer. Who does not wait for one call
before it makes the next is slowed down by the bound of calls of a connection, to which those held count.
Where more would be held than may be, it is of no use, and for a while none is. The same is done by mail
servers, which call it tarpitting.
"""

from __future__ import annotations

import asyncio
import math
import random

from memory_service.errors import Overloaded
from memory_service.limits import KIB, MIB

_HELD_S = 0.5
# Of the time that a caller gives its call.
_HELD_PART = 0.5
_HELD_MAX = 4096
_HELD_BYTES_MAX = 32 * MIB
# The refusal of a larger request is not held.
LARGE_BYTES = 64 * KIB
# For how long none is held after as many were as may be.
_NONE_S = 1.0


class Refusals:
    """For one event loop, and one reason to refuse: many of one kind do not take the places of the others."""

    def __init__(self, together_s: float | None = None) -> None:
        """Those due within `together_s` are told together; None: at different times."""
        self._together_s = together_s
        self._held = set[asyncio.Future[None]]()
        self._held_bytes = 0
        self._none_until = 0.0
        self._ended = False

    async def hold(self, refusal: Overloaded, request_bytes: int, remaining_s: float | None) -> None:
        """Return when a caller that has so much time left is to be told of its refusal; None: any time.

        The refusal's `retry_after_s` is so much less then: who comes again when it is told to loses nothing.
        gRPC keeps the request for so long. A large one is told at once: those have bounds of their own while
        they wait or are under way.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        if len(self._held) >= _HELD_MAX or self._held_bytes + request_bytes > _HELD_BYTES_MAX:
            self._none_until = now + _NONE_S
        if self._ended or now < self._none_until or request_bytes > LARGE_BYTES:
            return
        held_s = min(_HELD_S, refusal.retry_after_s)
        if remaining_s is not None:
            held_s = min(held_s, remaining_s * _HELD_PART)
        told: asyncio.Future[None] = loop.create_future()
        loop.call_at(self._told_at(now, held_s, refusal.retry_after_s), _tell, told)
        self._held.add(told)
        self._held_bytes += request_bytes
        try:
            await told
        finally:
            self._held.discard(told)
            self._held_bytes -= request_bytes
        refusal.retry_after_s = max(refusal.retry_after_s - (loop.time() - now), 0.0)

    def end(self) -> None:
        """Have those told that are held, and hold no more: the server ends."""
        self._ended = True
        for told in self._held:
            _tell(told)

    def _told_at(self, now: float, held_s: float, retry_after_s: float) -> float:
        if self._together_s is not None:
            return math.floor((now + held_s) / self._together_s) * self._together_s
        if held_s < retry_after_s:
            # All of these are held for the longest time: those who came together would come back together.
            held_s *= random.uniform(0.5, 1)
        return now + held_s


def _tell(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)
