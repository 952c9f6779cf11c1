"""Lets calls in: several at a time, no more than the server does well, and each owner's in turn.

**In bunches.** Between two calls of a busy server gRPC's own code pushes ours out of the processor's caches:
a handler that takes 60 us when it is called in a row takes 150 us when it is called in turns with gRPC. So
calls that arrive at about the same time start together. What they ask of an index they ask together, too:
see `SearchQueue`. They are let in as soon as no more of them arrive, or after some milliseconds.

**By turns.** A bunch is at most what the loop does in some milliseconds, and the next one starts when it is
answered: a call goes through the loop several times, and what is between two of them is what it waits for.
What is left over waits, in a queue for each owner, and the queues take turns, so that who asks for much
waits for itself. Who has nothing here yet goes past those who have much.

**Not at all.** Where too many wait, the longest queue loses its last call; a call that cannot start in half
of the time that its caller gives it is refused at once, and so is one whose owner's calls take that long to
be answered, wherever they wait; one whose caller has gone is forgotten. Refusing has
to be quick, and gRPC, which has threads of its own, has to get the processor: so between two bunches of an
overloaded server there is time to take calls in, be it to refuse them. In a flood, when refusing takes too
much of the time, a few more are taken in than were started, and gRPC keeps the others, or ends them.

**Beside somebody with few calls** bunches are small, so that these meet little, and the loop stays awake
between two of them: to sleep and to be woken takes longer than such a bunch. Who was let in a moment ago is
given time to ask again. Where each has many there is nobody to be quick for, and bunches are large.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TypeVar

from memory_service.caller import Holder, Owner, present_caller
from memory_service.errors import Overloaded
from memory_service.fair_queue import FairQueue
from memory_service.limits import KIB, Limits
from memory_service.server.flood import Flood
from memory_service.server.inlet import Inlet
from memory_service.server.tickets import Ticket

_TOGETHER_MAX = 32
# gRPC hands over one call in one or two turns of the event loop. From start to answer it takes six or seven.
_QUIET_TURNS = 5
_ANSWER_TURNS = 10
# Turns in which hundreds are refused for calling too often are long.
_GATHERING_S = 0.004
# Health is answered between two bunches, and who comes next waits for the one that has begun. The larger,
# the more is shared in it: where some with few calls come among others who have many, or did a moment ago, it
# is small.
_BUNCH_S = 0.008
_SHARED_BUNCH_S = 0.0005
_SHARED_S = 1.0
# One that takes longer waits for something else than the loop.
_OVERDUE_S = 0.02
_SHARED_OVERDUE_S = 0.004
# With so many for each owner nobody has many.
_EVEN_CALLS = 4
# So many go past those who have many after a bunch, and so many at least in each pause.
_PROMPT_CALLS = 4
_PROMPT_CALLS_PER_PAUSE = 2
# Of the time that a bunch takes, as much again is given to taking calls in while others wait: the more, the
# quicker is who has few, and health; the less, the more is answered. Behind those that are refused are more.
# Who went past the others a moment ago may be about to ask again.
_INTAKE_SHARE = 0.1
_REFUSING_INTAKE_SHARE = 0.3
_SHARED_INTAKE_SHARE = 0.4
_ASKING_AGAIN_INTAKE_SHARE = 1.0
_ASKING_AGAIN_S = 0.003
# Who comes sooner after a call that was alone, in parts of what that one took, is not alone.
_ALONE_AGAIN_SHARE = 0.7
# Where calls are refused and so many came in during a pause, more are behind them, in gRPC: health may be
# among those.
_MORE_BEHIND_CALLS = 5
_MORE_BEHIND_INTAKE_SHARE = 0.5
# No timer of the loop is shorter.
_PAUSE_S = 0.001
# In a flood that many more calls come in between two bunches than were started, or one for each such part of
# the time that they took. About as many are refused.
_FLOOD_MORE_CALLS = 4
_FLOOD_MORE_S = 0.0015
_COUNTED_BUSY_S = 0.05
# Of what a call costs, so much is to take it in.
_INTAKE_PART = 0.25
# For so long what the loop did counts as the work of the last bunch.
_RECENT_S = 0.25
# What a call costs until it is known.
_FIRST_CALL_S = 0.0001
_LEAST_CALL_S = 1e-6
_SMOOTHING = 0.3
# Who has so many calls here has a pace, by how many were answered in so long.
_PACED_CALLS = 8
_PACE_S = 0.1
# Smaller requests are bounded by their number.
LARGE_BYTES = 64 * KIB


_K = TypeVar("_K")


class _Pace:
    """How quickly an owner's calls are answered, while it has many."""

    __slots__ = ("_answered", "_since", "interval_s")

    def __init__(self, now: float) -> None:
        self.interval_s = 0.0
        self._answered = 0
        self._since = now

    def note(self, now: float) -> None:
        """Note that a call was answered."""
        self._answered += 1
        if now - self._since >= _PACE_S:
            self.interval_s = (now - self._since) / self._answered
            self._answered, self._since = 0, now


class Admission:
    """For one event loop."""

    def __init__(self, limits: Limits, inlet: Inlet) -> None:
        self._limits = limits
        self._inlet = inlet
        self._flood = Flood()
        self._is_flooded = False
        # What one owner leaves to the others of the places that there are.
        self._reserve = limits.concurrent_calls_max // 4
        self._arrived: list[Ticket] = []
        # So few find room in any case.
        self._check_from = min(_TOGETHER_MAX, limits.waiting_calls_max)
        self._turns = FairQueue[bytes, Ticket]()
        self._let_in: set[Ticket] = set()
        # Those of the last bunch that are not answered yet.
        self._running: set[Ticket] = set()
        # How many calls each owner has here, and each caller.
        self._owned: dict[Owner, int] = {}
        self._called: dict[str, int] = {}
        self._paces: dict[Owner, _Pace] = {}
        self._gone = 0
        self._large_bytes = 0
        self._looking = False
        self._looking_since = 0.0
        self._looking_since_opening = False
        self._last_count = 1
        self._shared_until = 0.0
        self._asking_again_until = 0.0
        self._prompt_left = _PROMPT_CALLS
        self._alone: Ticket | None = None
        self._alone_since = 0.0
        self._alone_from = 0.0
        self._opened_at = 0.0
        self._cpu_at_opening = 0.0
        self._taken_in = 0
        self._taken_in_before_pause = 0
        # Since the last bunch.
        self._has_refused = False
        # Counts who came and who went.
        self._changes = 0
        self._pauses = 0
        self._pause_began = 0.0
        self._paused_at = 0.0
        self._bunch_busy_s = 0.0
        self._call_cpu_s = _FIRST_CALL_S
        self._start_interval_s = _FIRST_CALL_S

    def arrive(self, raw: bytes, remaining_s: float | None) -> Ticket:
        """Return the ticket of a call, whose gate it has to await; raises Overloaded.

        One that is alone, and follows one that was alone, does not wait.
        """
        if len(raw) > LARGE_BYTES:
            self._take_bytes(len(raw))
        self._taken_in += 1
        self._changes += 1
        ticket = Ticket(raw, present_caller())
        if remaining_s is not None and self._inside_s(ticket.owner) > remaining_s / 2:
            self._refuse_now(ticket)
        if self._may_be_alone():
            self._alone, self._alone_since = ticket, time.perf_counter()
            return self._enter_at_once(ticket)
        loop = asyncio.get_running_loop()
        if self._turns:
            is_first = self._is_behind_many(ticket.owner)
            if is_first or self._is_one_of_few(ticket.owner):
                self._shared_until = loop.time() + _SHARED_S
            if is_first and self._prompt_left and self._free() > self._reserve:
                return self._go_past(ticket)
        ticket.wait(loop.create_future(), None if remaining_s is None else loop.time() + remaining_s)
        if self._turns or len(self._arrived) >= self._check_from:
            self._find_room(ticket, remaining_s)
        self._enter(ticket)
        self._arrived.append(ticket)
        if not self._looking:
            self._start_looking()
        return ticket

    def leave(self, ticket: Ticket, *, answered: bool = True) -> None:
        """Note that a call is answered; else it was refused after all, or its caller has gone."""
        if len(ticket.raw) > LARGE_BYTES:
            self._large_bytes -= len(ticket.raw)
        self._changes += 1
        left = _subtract(self._owned, ticket.owner)
        _subtract(self._called, ticket.owner.caller)
        self._note_pace(ticket.owner, left, answered)
        if not ticket.let_in:
            self._gone += 1
            return
        self._let_in.discard(ticket)
        self._running.discard(ticket)
        if ticket is self._alone:
            self._alone = None
            now = time.perf_counter()
            self._alone_from = now + _ALONE_AGAIN_SHARE * (now - self._alone_since)
        if self._turns and not self._looking:
            self._start_looking()

    def _enter(self, ticket: Ticket) -> None:
        owner = ticket.owner
        self._owned[owner] = self._owned.get(owner, 0) + 1
        self._called[owner.caller] = self._called.get(owner.caller, 0) + 1

    def _enter_at_once(self, ticket: Ticket) -> Ticket:
        self._enter(ticket)
        self._let_in.add(ticket)
        return ticket

    def _go_past(self, ticket: Ticket) -> Ticket:
        self._prompt_left -= 1
        self._asking_again_until = time.perf_counter() + _ASKING_AGAIN_S
        return self._enter_at_once(ticket)

    def _may_be_alone(self) -> bool:
        """Whether there is no other call, and the one before was alone, too."""
        return self._last_count == 1 and not self._owned and time.perf_counter() >= self._alone_from

    def _is_behind_many(self, owner: Owner) -> bool:
        """Whether each of the few who wait has many calls, and this one has none.

        That is a caller, or a namespace of the only caller who waits: nobody gets ahead of other callers by
        having many namespaces.
        """
        turns = self._turns
        if owner.caller not in self._called:
            return len(turns) > _EVEN_CALLS * (turns.callers + 1)
        if owner in self._owned or turns.callers > 1 or not turns.has_of(owner.caller):
            return False
        return len(turns) > _EVEN_CALLS * (turns.owners + 1)

    def _is_one_of_few(self, owner: Owner) -> bool:
        """Whether those who wait have many calls each, but this one has few."""
        turns = self._turns
        return self._owned.get(owner, 0) < _EVEN_CALLS and len(turns) > _EVEN_CALLS * turns.owners

    def _find_room(self, ticket: Ticket, remaining_s: float | None) -> None:
        """Let a call join those that wait, in the place of another one if need be, or refuse it."""
        self._queue_arrived()
        owner = ticket.owner
        if remaining_s is not None and self._wait_s(owner) > remaining_s / 2:
            self._refuse_now(ticket)
        # Those for whom there is a place already do not wait.
        most = self._limits.waiting_calls_max + self._free()
        if len(self._turns) < most:
            return
        if self._gone:
            self._gone = 0
            self._turns.keep(Ticket.waits)
        if len(self._turns) >= most:
            pushed_out = self._turns.push_out_for(owner)
            if pushed_out is None:
                self._refuse_now(ticket)
            else:
                self._flood.note_refusal()
                _refuse(pushed_out, self._overloaded())

    def _refuse_now(self, ticket: Ticket) -> None:
        if len(ticket.raw) > LARGE_BYTES:
            self._large_bytes -= len(ticket.raw)
        self._has_refused = True
        self._flood.note_refusal()
        raise self._overloaded()

    def _take_bytes(self, size: int) -> None:
        limit = self._limits.large_calls_bytes_max
        if self._large_bytes + size > limit:
            raise Overloaded("large_calls_bytes_max", limit)
        self._large_bytes += size

    def _free(self) -> int:
        return self._limits.concurrent_calls_max - len(self._let_in)

    def _overloaded(self) -> Overloaded:
        return Overloaded("waiting_calls_max", self._limits.waiting_calls_max)

    def _wait_s(self, owner: Owner) -> float:
        """Return how long a call that comes now will wait, about."""
        return self._turns.ahead_of(owner) * self._start_interval_s

    def _inside_s(self, owner: Owner) -> float:
        """Return how long a call that comes now will be here; 0: it is not known.

        By Little's law: calls wait for things, too, that are not known here, such as long searches.
        """
        pace = self._paces.get(owner)
        return 0.0 if pace is None else self._owned.get(owner, 0) * pace.interval_s

    def _note_pace(self, owner: Owner, left: int, answered: bool) -> None:
        if left < _PACED_CALLS:
            self._paces.pop(owner, None)
        elif (pace := self._paces.get(owner)) is None:
            self._paces[owner] = _Pace(time.perf_counter())
        elif answered:
            pace.note(time.perf_counter())

    def _queue_arrived(self) -> None:
        arrived, self._arrived = self._arrived, []
        for ticket in arrived:
            self._turns.put(ticket.owner, ticket)

    def _start_looking(self) -> None:
        loop = asyncio.get_running_loop()
        self._looking, self._looking_since = True, loop.time()
        loop.call_soon(self._look, self._changes, 0)

    def _look(self, changes: int, quiet_turns: int) -> None:
        """Let the next ones in if it is time, or look again: in the next turn, or after a pause."""
        loop = asyncio.get_running_loop()
        quiet_turns = quiet_turns + 1 if self._changes == changes else 0
        if not self._turns:
            waits = (
                quiet_turns < _QUIET_TURNS
                and len(self._arrived) < _TOGETHER_MAX
                and loop.time() < self._looking_since + _GATHERING_S
            )
        else:
            # Where it is quiet, those of the last bunch wait for something else; so they do where they take
            # much longer than a bunch may.
            now = loop.time()
            overdue_s = _SHARED_OVERDUE_S if now < self._shared_until else _OVERDUE_S
            overdue = now > self._opened_at + overdue_s
            waits = bool(self._running) and quiet_turns < _ANSWER_TURNS and not overdue
        if waits:
            loop.call_soon(self._look, self._changes, quiet_turns)
        elif self._turns and self._takes_in(loop.time()):
            self._pause(loop)
        else:
            self._open()

    def _pause(self, loop: asyncio.AbstractEventLoop) -> None:
        """Leave the processor to gRPC's threads; in a flood the first pause lets some calls come."""
        if not self._pauses:
            self._pause_began, self._paused_at = loop.time(), time.perf_counter()
            self._bunch_busy_s = self._busy_s()
            if self._is_flooded:
                more = max(_FLOOD_MORE_CALLS, int((self._pause_began - self._opened_at) / _FLOOD_MORE_S))
                self._inlet.limit(self._last_count + more)
        self._pauses += 1
        self._taken_in_before_pause = self._taken_in
        self._prompt_left = max(self._prompt_left, _PROMPT_CALLS_PER_PAUSE)
        if self._is_awake(loop.time()) and (left_s := self._awake_left_s()) < _PAUSE_S:
            loop.call_soon(self._stay_awake, time.perf_counter() + left_s)
        else:
            loop.call_later(_PAUSE_S, self._look, self._changes, 0)

    def _stay_awake(self, until: float) -> None:
        """Let what gRPC has come in, turn by turn."""
        if time.perf_counter() < until:
            asyncio.get_running_loop().call_soon(self._stay_awake, until)
        else:
            self._look(self._changes, 0)

    def _is_awake(self, now: float) -> bool:
        return now < self._shared_until and not self._is_flooded

    def _awake_left_s(self) -> float:
        now = time.perf_counter()
        share = _ASKING_AGAIN_INTAKE_SHARE if now < self._asking_again_until else _SHARED_INTAKE_SHARE
        return self._paused_at + share * self._bunch_busy_s - now

    def _takes_in(self, now: float) -> bool:
        """Return whether there is time, still, to take calls in before the next bunch."""
        if self._is_flooded:
            bunch_s = self._pause_began - self._opened_at
            return not self._pauses or (not self._inlet.used_up and now - self._pause_began < bunch_s)
        if self._has_refused and self._pauses and self._taken_in == self._taken_in_before_pause:
            # Those who were refused are in by now, and who waits is not kept waiting for others.
            return False
        if self._is_awake(now):
            return not self._pauses or self._awake_left_s() > 0
        return self._pauses * _PAUSE_S < self._intake_s(now)

    def _intake_s(self, now: float) -> float:
        """Return how long the processor is left to gRPC after the last bunch."""
        busy_s = self._busy_s()
        if self._has_refused and self._taken_in - self._taken_in_before_pause >= _MORE_BEHIND_CALLS:
            return busy_s * _MORE_BEHIND_INTAKE_SHARE
        return busy_s * (_REFUSING_INTAKE_SHARE if self._has_refused else _INTAKE_SHARE)

    def _busy_s(self) -> float:
        # What the loop did since then, be it hours ago, is no reason to wait for long.
        return min(time.thread_time() - self._cpu_at_opening, _COUNTED_BUSY_S)

    def _measure(self, now: float) -> None:
        """Note what a call of the last bunch took, if nothing else has been going on since."""
        cpu_now = time.thread_time()
        if now - self._opened_at < _RECENT_S:
            cpu_s = (cpu_now - self._cpu_at_opening) / (self._last_count + _INTAKE_PART * self._taken_in)
            self._call_cpu_s += _SMOOTHING * (cpu_s - self._call_cpu_s)
        self._cpu_at_opening = cpu_now

    def _open(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._turns and self._looking_since_opening:
            interval_s = (now - self._opened_at) / self._last_count
            self._start_interval_s += _SMOOTHING * (interval_s - self._start_interval_s)
        self._measure(now)
        if self._turns:
            self._queue_arrived()
        self._running.clear()
        together = self._together(now)
        free = self._free()
        if not self._turns and len(self._arrived) <= min(together, free - self._reserve):
            bunch, self._arrived = self._arrived, []
            started = sum([self._start(ticket, now) for ticket in bunch])
        else:
            self._queue_arrived()
            started = self._start_by_turns(min(together, free), now)
        self._last_count = max(started, 1)
        self._opened_at, self._pauses, self._prompt_left = now, 0, _PROMPT_CALLS
        self._taken_in = self._taken_in_before_pause = 0
        self._has_refused = False
        # Where nobody could start, somebody has to leave first.
        self._looking = bool(self._turns) and started > 0
        self._looking_since_opening = self._looking
        is_flood = self._flood.is_on(now, more_behind=self._inlet.used_up)
        self._is_flooded = is_flood and self._looking
        if self._is_flooded:
            self._inlet.limit(0)
        else:
            self._inlet.open()
        if self._looking:
            loop.call_soon(self._look, self._changes, 0)

    def _together(self, now: float) -> int:
        """Return how many calls the next bunch may have."""
        call_s = max(self._call_cpu_s, _LEAST_CALL_S)
        most = max(1, min(_TOGETHER_MAX, int(_BUNCH_S / call_s)))
        if now >= self._shared_until:
            return most
        # Where many take turns, who comes next waits for one of each in any case.
        return min(most, max(1, int(_SHARED_BUNCH_S / call_s), self._turns.owners // 2))

    def _start_by_turns(self, places: int, now: float) -> int:
        free = self._free()
        held: Counter[Holder] = (
            Counter()
            if free > self._reserve + places
            else Counter(ticket.owner.holder for ticket in self._let_in)
        )

        def may_start(caller: str, namespace: bytes) -> bool:
            return free - started > self._reserve or held[Owner(caller, namespace).holder] < self._reserve

        started = 0
        while started < places and (ticket := self._turns.take(may_start)) is not None:
            if self._start(ticket, now):
                held[ticket.owner.holder] += 1
                started += 1
        return started

    def _start(self, ticket: Ticket, now: float) -> bool:
        gate = ticket.gate
        if gate is None or gate.done():
            return False
        if ticket.until is not None and ticket.until <= now:
            _refuse(ticket, self._overloaded())
            return False
        ticket.let_in = True
        self._let_in.add(ticket)
        self._running.add(ticket)
        gate.set_result(None)
        return True


def _subtract(counts: dict[_K, int], key: _K) -> int:
    """Count one less, and return how many are left."""
    if left := counts[key] - 1:
        counts[key] = left
    else:
        del counts[key]
    return left


def _refuse(ticket: Ticket, error: Overloaded) -> None:
    if ticket.gate is not None and not ticket.gate.done():
        ticket.gate.set_exception(error)
        # Who goes away in this very moment does not ask for it.
        ticket.gate.exception()
