"""How a call shares the event loop: long work is done in slices, and a call that waits leaves its place."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_SLICE_S = 0.0005
"""Of long work. Doubled, a short call, which takes some seven turns of the loop, waits 4 ms longer."""


class Place(Protocol):
    """The place of a call among those that run."""

    def step_aside(self) -> None:
        """Leave it to others: the call waits for something else than the event loop."""

    def come_back(self) -> None:
        """Take it again, at once. Each follows one `step_aside`."""

    async def give_way(self) -> None:
        """Return when the call may go on with its long work."""


PLACE: ContextVar[Place | None] = ContextVar("place", default=None)
"""That of the present call."""


async def aside(awaitable: Awaitable[T]) -> T:
    """Wait for a disk, a provider or a thread; meanwhile other calls run in the place of the present one."""
    if (place := PLACE.get()) is None:
        return await awaitable
    place.step_aside()
    try:
        return await awaitable
    finally:
        place.come_back()


async def give_way() -> None:
    """Let others come first: the present call does long work on the event loop."""
    if (place := PLACE.get()) is None:
        await asyncio.sleep(0)
    else:
        await place.give_way()


class Part:
    """A slice of long work, from now on, where it is no list that `each` could take."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + _SLICE_S

    async def give_way_if_long(self) -> None:
        """Let others come first, and begin a new slice, where this one has taken long."""
        if time.perf_counter() > self._until:
            await give_way()
            self._until = time.perf_counter() + _SLICE_S


async def each(do: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """Return what `do` returns for each thing, in order. Raises what it raises."""
    done: list[R] = []
    part = Part()
    for thing in things:
        done.append(do(thing))
        # After each: four large ones may take a hundred times as long as a slice.
        await part.give_way_if_long()
    return done
