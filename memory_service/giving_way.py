"""Long work on the event loop gives way: it is done in parts, and between them short calls come first.

A call of one item takes the loop for tens of microseconds at a time, one of a thousand for tens of
milliseconds; and a short call, which passes the loop some eight times, would wait for that each time.
"""

from __future__ import annotations

import asyncio
import enum
import math
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

from memory_service.runtime.caller import Owner

T = TypeVar("T")
R = TypeVar("R")

_PART_S = 0.0005
# Where others made short calls lately, and few are here: a crowd waits for itself, and long work beside it
# would get nowhere.
_SHARED_PART_S = 0.0002
_LATELY_S = 0.1
_FEW_CALLS = 4
# For so many turns of the loop a part waits at most: a short call takes about as many, and if there are some
# still, they wait for something else than the loop.
_TURNS = 10
# Or for so long, if one arrives or waits to be let in: gRPC's threads bring it, which takes time, not turns.
_ARRIVAL_S = 0.0015


class _Phase(enum.IntEnum):
    WAITING = 0
    SHORT = 1
    OTHER = 2


class Stay:
    """A call from when it has arrived until it is answered. Let in, it is short until it gives way."""

    __slots__ = ("owner", "phase")

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.phase = _Phase.WAITING
        _calls[self.phase] += 1

    def go_on(self, phase: _Phase) -> None:
        """Note that it is in another phase from now on."""
        _calls[self.phase] -= 1
        _calls[phase] += 1
        self.phase = phase


class _Latest(NamedTuple):
    """Whose short calls were answered lately, and when: the last one's, and the last one of anybody else."""

    owner: Owner
    at: float
    others_at: float


_STAY: ContextVar[Stay | None] = ContextVar("stay", default=None)
_calls = [0] * len(_Phase)
_arriving_until = -math.inf
_latest = _Latest(Owner("", b""), -math.inf, -math.inf)


def arrive() -> None:
    """Note that a call has begun to arrive: gRPC brings it in two or three turns of the loop."""
    global _arriving_until
    _arriving_until = time.perf_counter() + _ARRIVAL_S


def begin(owner: Owner) -> Stay:
    """Note that the present call has arrived, and waits to be let in."""
    global _arriving_until
    _arriving_until = -math.inf
    stay = Stay(owner)
    _STAY.set(stay)
    return stay


def enter(stay: Stay) -> None:
    """Note that a call is let in: long work gives way to it."""
    stay.go_on(_Phase.SHORT)


def leave(stay: Stay) -> None:
    """Note that a call is answered, or has ended otherwise. Once more changes nothing."""
    if stay.phase is _Phase.SHORT:
        _note(stay.owner, time.perf_counter())
    stay.go_on(_Phase.OTHER)


def others_were_here(owner: Owner, since: float) -> bool:
    """Whether a short call of anybody else was answered since a time of `time.perf_counter()`."""
    return (_latest.others_at if owner == _latest.owner else _latest.at) >= since


def _note(owner: Owner, now: float) -> None:
    global _latest
    others_at = _latest.others_at if owner == _latest.owner else _latest.at
    _latest = _Latest(owner, now, others_at)


async def give_way() -> None:
    """Let short calls, and those that arrive, come first; the present one is none of them any more."""
    if (stay := _STAY.get()) is not None:
        stay.go_on(_Phase.OTHER)
    turns, until = 0, time.perf_counter() + _ARRIVAL_S
    while True:
        await asyncio.sleep(0)
        turns += 1
        if _is_one_coming(until):
            continue
        if not _calls[_Phase.SHORT] or turns >= _TURNS:
            return


def _is_one_coming(until: float) -> bool:
    now = time.perf_counter()
    return now < until and _are_few() and (_calls[_Phase.WAITING] > 0 or now < _arriving_until)


class Part:
    """A part of long work, from now on, where it is no list that `each` could take."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until = _end_of_part()

    async def give_way_if_long(self) -> None:
        """Let others come first, and begin a new part, where this one has taken long."""
        if time.perf_counter() > self._until:
            await give_way()
            self._until = _end_of_part()


async def each(do: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """Return what `do` returns for each thing, in order. Raises what it raises."""
    done: list[R] = []
    until = _end_of_part()
    for thing in things:
        done.append(do(thing))
        # After each: four large ones may take a hundred times as long as a part.
        if time.perf_counter() > until:
            await give_way()
            until = _end_of_part()
    return done


def _end_of_part() -> float:
    now, stay = time.perf_counter(), _STAY.get()
    is_shared = _are_few() and stay is not None and others_were_here(stay.owner, now - _LATELY_S)
    return now + (_SHARED_PART_S if is_shared else _PART_S)


def _are_few() -> bool:
    """Whether there is no crowd: in one, those who wait do so for those who are inside."""
    return _calls[_Phase.WAITING] + _calls[_Phase.SHORT] <= _FEW_CALLS
