"""Sharing the event loop between calls: long work runs in slices, and a waiting call leaves its place."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_SLICE_S = 0.0005
"""Length of a slice. Doubled: a short call, which takes some seven turns of the loop, waits 4 ms longer."""


class Place(Protocol):
    """The place of a call among the running ones."""

    def step_aside(self) -> None:
        """Leave the place to others while the call waits for something other than the event loop."""

    def come_back(self) -> None:
        """Take the place again, at once. Call it once for each `step_aside`."""

    async def give_way(self) -> None:
        """Return when the call may continue its long work."""


PLACE: ContextVar[Place | None] = ContextVar("place", default=None)
"""The place of the current call."""


async def aside(awaitable: Awaitable[T]) -> T:
    """Wait for a disk, a provider or a thread; meanwhile other calls run in the current call's place."""
    if (place := PLACE.get()) is None:
        return await awaitable
    place.step_aside()
    try:
        return await awaitable
    finally:
        place.come_back()


async def give_way() -> None:
    """Let other calls run first, because the current call does long work on the event loop."""
    if (place := PLACE.get()) is None:
        await asyncio.sleep(0)
    else:
        await place.give_way()


class Part:
    """A slice of long work, starting now, for work that is not a list for `each`."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + _SLICE_S

    async def give_way_if_long(self) -> None:
        """Let other calls run first and begin a new slice, if this one has taken too long."""
        if time.perf_counter() > self._until:
            await give_way()
            self._until = time.perf_counter() + _SLICE_S


async def each(do: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """Return the results of `do` for each thing, in order. Raises what `do` raises."""
    done: list[R] = []
    part = Part()
    for thing in things:
        done.append(do(thing))
        # Check after each thing: four large ones may take a hundred times as long as a slice.
        await part.give_way_if_long()
    return done
