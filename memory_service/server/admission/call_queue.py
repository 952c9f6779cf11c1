"""Decides when a call runs: a bounded, fair queue, from which calls start in batches.

**Batches.** A call that runs right after another one finds its code in the processor's caches; between two
batches gRPC's code replaces it there. So the next batch starts when every call of the last one has ended,
waits for something else (`aside`), or has turned out to be long (`give_way`). Of the long calls of one owner
the first continues, one slice per turn of the event loop; short calls come first, for some turns.

**Turns.** Callers take turns, as do the namespaces of each caller. A caller, or a namespace if callers are
anonymous, leaves some of the places to others.

**Shedding.** A call that has waited for most of its time is refused with a retry delay, because it could not
be answered before its deadline. It is not refused sooner, because calls that wait cost less than callers that
retry at once. In a full queue the owner with the most calls loses its newest one to an owner with fewer;
otherwise the new call is refused.
"""

from __future__ import annotations

import asyncio
import enum
import math
import time
from collections import Counter

from memory_service.errors import Overloaded
from memory_service.limits import Limits
from memory_service.runtime.caller import Holder, Owner
from memory_service.runtime.fair_queue import FairQueue

_BATCH_CALLS_MAX = 16
"""Doubled: a call costs slightly less, and the next call waits for twice as many."""
_BATCH_S = 0.004
"""Target CPU time of a batch. Doubled: health checks and the next calls wait up to 4 ms longer."""
_GATHER_TURNS = 5
"""Turns of the event loop in which calls gather into a batch.

Doubled: more concurrent calls start together, and each call starts some 50 us later.
"""
_LONG_CALLS_MAX = 8
"""Per holder. Doubled: twice as many run, and each takes twice as long."""
_SHORT_TURNS = 10
"""Turns in which short calls come before the next slice of a long one.

Doubled: long calls take twice as long.
"""
_TICK_S = 0.02
"""Interval of checking for overdue calls. A call that runs for longer probably waits without `aside`.

Doubled: such a call blocks others for 40 ms.
"""
_RESERVED_SHARE = 0.25
"""Share of the places that one holder leaves to others.

Doubled: half of them stay empty beside a lone caller.
"""
_WAIT_SHARE = 0.75
"""Share of the time to its deadline that a call may wait. Doubled: calls start that are too late."""
_SMOOTHING = 0.3
"""Weight of the last batch in the cost estimate of a call. Doubled: batch sizes fluctuate more."""
_FIRST_CALL_S = 0.0001
"""Initial cost estimate of a call. Doubled: the first batch has half as many calls."""

_State = enum.Enum("_State", "OUTSIDE WAITING RUNNING LONG ASIDE")


class Place:
    """The place of a call, which awaits its `gate` before it starts.

    For streams, a place outside the queue.
    """

    __slots__ = ("_asides", "_queue", "gate", "owner", "since", "state", "until")

    def __init__(self, queue: CallQueue, owner: Owner, remaining_s: float | None = None) -> None:
        self._queue, self._asides, self.owner = queue, 0, owner
        self.gate: asyncio.Future[None] | None = None
        self.state = _State.OUTSIDE
        # When the call arrived or began to run, and how long it may wait, by `time.perf_counter`.
        self.since = time.perf_counter()
        self.until = math.inf if remaining_s is None else self.since + remaining_s * _WAIT_SHARE

    def step_aside(self) -> None:
        """Free the place for others."""
        self._asides += 1
        self._queue.change(self, _State.ASIDE)

    def come_back(self) -> None:
        """Run again, after the last of several concurrent waits of one call."""
        self._asides -= 1
        if not self._asides:
            self._queue.change(self, _State.RUNNING)

    async def give_way(self) -> None:
        """Return when this long call may continue."""
        was_long = self.state is _State.LONG
        self._queue.change(self, _State.LONG)
        await self._queue.next_slice(self.owner, goes_on=was_long)


class CallQueue:
    """The queue of one event loop."""

    def __init__(self, limits: Limits) -> None:
        self.batch_calls = 0
        """Number of calls in the last batch."""
        self.shed = Counter[str]()
        """Refused calls, by reason."""
        self._free, self._waiting_max = limits.concurrent_calls_max, limits.waiting_calls_max
        self._reserve = int(self._free * _RESERVED_SHARE)
        self.waiting = FairQueue[bytes, Place]()
        """Calls that wait to start."""
        self._slices = FairQueue[bytes, asyncio.Future[None]]()
        self.running = set[Place]()
        """Calls that do not wait for anything and are not long."""
        self._started_of, self._long_of = Counter[Holder](), Counter[Holder]()
        self._is_planned = self._is_slicing = self._ticks = False
        # CPU time of a call, estimated.
        self._cpu_s, self._cpu_began, self._is_measured = _FIRST_CALL_S, 0.0, True

    @property
    def oldest_wait_s(self) -> float:
        """The longest time that any call in the queue has waited to start."""
        now = time.perf_counter()
        return max((now - place.since for place in self.waiting), default=0.0)

    def arrive(self, owner: Owner, remaining_s: float | None) -> Place:
        """Return the place of a call, which must await its gate; raises Overloaded.

        A lone call that follows another lone call does not wait.
        """
        place = Place(self, owner, remaining_s)
        if not self._started_of and not self.waiting and self.batch_calls <= 1:
            self._start(place)
            return place
        # Calls that already have a place do not count.
        if len(self.waiting) >= self._waiting_max + self._free:
            if (pushed_out := self.waiting.push_out_for(owner)) is None:
                raise self._refusal("queue full")
            self._refuse(pushed_out, "pushed out")
        place.gate, place.state = asyncio.get_running_loop().create_future(), _State.WAITING
        self.waiting.put(owner, place)
        self._plan()
        return place

    def leave(self, place: Place) -> None:
        """Note that a call has ended, whether it had started or not."""
        if place.state is _State.WAITING:
            self.waiting.remove(place.owner, place)
        elif place.state is not _State.OUTSIDE:
            self._free += 1
            _subtract(self._started_of, place.owner.holder)
        self.change(place, _State.OUTSIDE)

    def change(self, place: Place, state: _State) -> None:
        """Note a call's new state, if it is in the queue."""
        if place.state is state or place.state is _State.OUTSIDE:
            return
        if place.state is _State.LONG:
            _subtract(self._long_of, place.owner.holder)
        self.running.discard(place)
        place.state = state
        if state is _State.LONG:
            self._long_of[place.owner.holder] += 1
        elif state is _State.RUNNING:
            place.since = time.perf_counter()
            self.running.add(place)
        if not self.running and not self._is_measured:
            self._is_measured = True
            cpu_s = (time.thread_time() - self._cpu_began) / self.batch_calls
            self._cpu_s += _SMOOTHING * (cpu_s - self._cpu_s)
        self._plan()

    async def next_slice(self, owner: Owner, *, goes_on: bool) -> None:
        """Wait until a long call may continue: before others of its owner if it `goes_on`."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._slices.put(owner, turn, first=goes_on)
        if not self._is_slicing:
            self._is_slicing = True
            loop.call_soon(self._start_slice)
        await turn

    def _start_slice(self, turns: int = _SHORT_TURNS) -> None:
        if turns and (self.running or self._is_planned):
            asyncio.get_running_loop().call_soon(self._start_slice, turns - 1)
            return
        self._is_slicing = False
        while not self._is_slicing and (turn := self._slices.take()) is not None:
            if not turn.done():
                turn.set_result(None)
                self._is_slicing = True
                asyncio.get_running_loop().call_soon(self._start_slice)

    def _refusal(self, reason: str) -> Overloaded:
        self.shed[reason] += 1
        return Overloaded("waiting_calls_max", self._waiting_max)

    def _refuse(self, place: Place, reason: str) -> None:
        self.change(place, _State.OUTSIDE)
        if place.gate is not None and not place.gate.done():
            place.gate.set_exception(self._refusal(reason))
            # A caller that disconnects at this moment does not retrieve the exception.
            place.gate.exception()

    def _plan(self) -> None:
        """Schedule the next batch if no call runs."""
        if not self.waiting:
            return
        if not self.running and not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._gather, _GATHER_TURNS)
        if not self._ticks:
            self._ticks = True
            asyncio.get_running_loop().call_later(_TICK_S, self._tick)

    def _tick(self) -> None:
        """Start calls beside those that run for too long, and refuse calls that have waited for too long."""
        self._ticks, now = False, time.perf_counter()
        for place in [place for place in self.running if place.since <= now - _TICK_S]:
            self.change(place, _State.ASIDE)
        for place in [place for place in self.waiting if place.until <= now]:
            self.waiting.remove(place.owner, place)
            self._refuse(place, "deadline")
        self._plan()

    def _gather(self, turns: int) -> None:
        if turns and len(self.waiting) < _BATCH_CALLS_MAX:
            asyncio.get_running_loop().call_soon(self._gather, turns - 1)
            return
        self._is_planned, now, cpu_began = False, time.perf_counter(), time.thread_time()
        most, started = max(1, min(int(_BATCH_S / self._cpu_s), _BATCH_CALLS_MAX)), 0
        while started < most and (place := self.waiting.take(self._may_start)) is not None:
            if place.gate is None or place.gate.done():
                self.change(place, _State.OUTSIDE)
            elif place.until <= now:
                self._refuse(place, "deadline")
            else:
                place.gate.set_result(None)
                self._start(place)
                started += 1
        if started:
            self._cpu_began, self._is_measured, self.batch_calls = cpu_began, False, started

    def _start(self, place: Place) -> None:
        self._free -= 1
        self._started_of[place.owner.holder] += 1
        place.state, place.since = _State.RUNNING, time.perf_counter()
        self.running.add(place)

    def _may_start(self, caller: str, namespace: bytes) -> bool:
        holder = Owner(caller, namespace).holder
        if self._free <= 0 or self._long_of[holder] >= _LONG_CALLS_MAX:
            return False
        return self._free > self._reserve or self._started_of[holder] < self._reserve


def _subtract(counts: Counter[Holder], holder: Holder) -> None:
    counts[holder] -= 1
    if not counts[holder]:
        del counts[holder]
