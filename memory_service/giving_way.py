"""Long work on the event loop gives way: it is done in parts, and between them short calls come first.

A call of one item takes the loop for tens of microseconds at a time, one of a thousand for tens of
milliseconds; and a short call, which passes the loop some eight times, would wait for that each time.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

from memory_service.caller import Owner

T = TypeVar("T")
R = TypeVar("R")

_PART_S = 0.0005
# For so many turns of the loop a part waits at most: a short call takes about as many, and if there are some
# still, they wait for something else than the loop.
_TURNS = 10
_ARRIVAL_S = 0.0005
# A look at the clock takes about as long as a tenth of what is done for an item.
_BETWEEN_LOOKS = 4


class Stay:
    """A call from when it is let in until it is answered. It is short until it has given way."""

    __slots__ = ("owner", "short")

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.short = True


class _Latest(NamedTuple):
    """Whose short calls were answered lately, and when: the last one's, and the last one of anybody else."""

    owner: Owner
    at: float
    others_at: float


_STAY: ContextVar[Stay | None] = ContextVar("stay", default=None)
_short_calls = 0
_arriving_until = 0.0
_latest = _Latest(Owner("", b""), -math.inf, -math.inf)


def arrive() -> None:
    """Note that a call has begun to arrive: gRPC brings it in two or three turns of the loop."""
    global _arriving_until
    _arriving_until = time.perf_counter() + _ARRIVAL_S


def enter(owner: Owner) -> Stay:
    """Note that a call is let in: long work gives way to it."""
    global _short_calls
    _short_calls += 1
    stay = Stay(owner)
    _STAY.set(stay)
    return stay


def leave(stay: Stay | None) -> None:
    """Note that a call is answered. None: it was not let in."""
    if stay is not None and stay.short:
        _note(stay.owner, time.perf_counter())
        _no_longer_short(stay)


def others_were_here(owner: Owner, since: float) -> bool:
    """Whether a short call of anybody else was answered since a time of `time.perf_counter()`."""
    return (_latest.others_at if owner == _latest.owner else _latest.at) >= since


def _note(owner: Owner, now: float) -> None:
    global _latest
    others_at = _latest.others_at if owner == _latest.owner else _latest.at
    _latest = _Latest(owner, now, others_at)


def _no_longer_short(stay: Stay) -> None:
    global _short_calls
    stay.short = False
    _short_calls -= 1


async def give_way() -> None:
    """Let the short calls that are inside come first; the present one is none of them any more."""
    stay = _STAY.get()
    if stay is not None and stay.short:
        _no_longer_short(stay)
    for _ in range(_TURNS):
        await asyncio.sleep(0)
        if not _short_calls and time.perf_counter() > _arriving_until:
            return


async def each(do: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """Return what `do` returns for each thing, in order. Raises what it raises."""
    done: list[R] = []
    until = time.perf_counter() + _PART_S
    for number, thing in enumerate(things, 1):
        done.append(do(thing))
        if number % _BETWEEN_LOOKS == 0 and time.perf_counter() > until:
            await give_way()
            until = time.perf_counter() + _PART_S
    return done
