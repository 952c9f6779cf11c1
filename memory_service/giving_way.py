"""Long work on the event loop gives way: it is done in parts, and between them short calls come first.

A call of one item takes the loop for tens of microseconds at a time, one of a thousand for tens of
milliseconds; and a short call, which passes the loop some eight times, would wait for that each time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_PART_S = 0.0005
# For so many turns of the loop a part waits at most: a short call takes about as many, and if there are some
# still, they wait for something else than the loop.
_TURNS = 10
# A look at the clock takes about as long as a tenth of what is done for an item.
_BETWEEN_LOOKS = 4


class Stay:
    """A call from when it is let in until it is answered. It is short until it has given way."""

    __slots__ = ("short",)

    def __init__(self) -> None:
        self.short = True


_STAY: ContextVar[Stay | None] = ContextVar("stay", default=None)
_short_calls = 0


def enter() -> Stay:
    """Note that a call is let in: long work gives way to it."""
    global _short_calls
    _short_calls += 1
    stay = Stay()
    _STAY.set(stay)
    return stay


def leave(stay: Stay) -> None:
    """Note that a call is answered."""
    _lengthen(stay)


def _lengthen(stay: Stay | None) -> None:
    global _short_calls
    if stay is not None and stay.short:
        stay.short = False
        _short_calls -= 1


def short_calls() -> int:
    """Return how many calls are inside that long work gives way to."""
    return _short_calls


def waits(turns: int) -> bool:
    """Whether long work that has given way for so many turns of the loop should do so for another one."""
    return _short_calls > 0 and turns < _TURNS


class Part:
    """A part of long work: over when it has taken its time."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until = time.perf_counter() + _PART_S

    @property
    def over(self) -> bool:
        """Whether others should come first now."""
        return time.perf_counter() > self._until


async def give_way() -> None:
    """Let the calls that are inside come first; the present one is none of the short ones any more."""
    _lengthen(_STAY.get())
    turns = 0
    while True:
        await asyncio.sleep(0)
        turns += 1
        if not waits(turns):
            return


async def each(do: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """Return what `do` returns for each thing, in order. Raises what it raises."""
    done: list[R] = []
    part = Part()
    for number, thing in enumerate(things, 1):
        done.append(do(thing))
        if number % _BETWEEN_LOOKS == 0 and part.over:
            await give_way()
            part = Part()
    return done
