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
be answered, wherever they wait; one whose caller has gone is forgotten. Refusing is quick: see `Pauses`.

**Beside somebody with few calls** bunches are small, so that these meet little, and the loop stays awake
between two of them: to sleep and to be woken takes longer than such a bunch. Who was let in a moment ago is
given time to ask again. Where each has many there is nobody to be quick for, and bunches are large.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TypeVar

from memory_service.errors import Overloaded
from memory_service.limits import Limits
from memory_service.runtime.caller import Holder, Owner, present_caller
from memory_service.runtime.fair_queue import FairQueue
from memory_service.server.bunches import TOGETHER_MAX, Bunches
from memory_service.server.flood import Flood
from memory_service.server.inlet import Inlet
from memory_service.server.paces import Paces
from memory_service.server.pauses import Pauses
from memory_service.server.tickets import Ticket

# gRPC hands over one call in one or two turns of the event loop. From start to answer it takes six or seven.
_QUIET_TURNS = 5
_ANSWER_TURNS = 10
# Turns in which hundreds are refused for calling too often are long.
_GATHERING_S = 0.004
# Where some with few calls come among others who have many, or did a moment ago, bunches are small.
_SHARED_S = 1.0
# One that takes longer waits for something else than the loop.
_OVERDUE_S = 0.02
_SHARED_OVERDUE_S = 0.004
# With so many for each owner nobody has many.
_EVEN_CALLS = 4
# So many go past those who have many after a bunch, and so many at least in each pause.
_PROMPT_CALLS = 12
_PROMPT_CALLS_PER_PAUSE = 8
# Who comes sooner after a call that was alone, in parts of what that one took, is not alone.
_ALONE_AGAIN_SHARE = 0.7
_K = TypeVar("_K")


class Admission:
    """For one event loop."""

    def __init__(self, limits: Limits, inlet: Inlet) -> None:
        self._limits = limits
        self._inlet = inlet
        self._flood = Flood()
        self._bunches = Bunches()
        self._pauses = Pauses(self._bunches, inlet)
        self._paces = Paces()
        # What one owner leaves to the others of the places that there are.
        self._reserve = limits.concurrent_calls_max // 4
        self._arrived: list[Ticket] = []
        # So few find room in any case.
        self._check_from = min(TOGETHER_MAX, limits.waiting_calls_max)
        self._turns = FairQueue[bytes, Ticket]()
        self._let_in: set[Ticket] = set()
        # Those of the last bunch that are not answered yet.
        self._running: set[Ticket] = set()
        # How many calls each owner has here, and each caller.
        self._owned: dict[Owner, int] = {}
        self._called: dict[str, int] = {}
        self._gone = 0
        self._looking = False
        self._looking_since = 0.0
        self._looking_since_opening = False
        self._shared_until = 0.0
        self._prompt_left = _PROMPT_CALLS
        self._alone: Ticket | None = None
        self._alone_since = 0.0
        self._alone_from = 0.0
        # Counts who came and who went.
        self._changes = 0

    def arrive(self, raw: bytes, remaining_s: float | None) -> Ticket:
        """Return the ticket of a call, whose gate it has to await; raises Overloaded.

        One that is alone, and follows one that was alone, does not wait.
        """
        self._bunches.taken_in += 1
        self._changes += 1
        ticket = Ticket(raw, present_caller())
        here = self._owned.get(ticket.owner, 0)
        if remaining_s is not None and self._paces.inside_s(ticket.owner, here) > remaining_s / 2:
            self._refuse_now(ticket)
        if self._may_be_alone():
            self._alone, self._alone_since = ticket, time.perf_counter()
            return self._enter_at_once(ticket)
        if self._turns:
            is_first = self._is_behind_many(ticket.owner)
            if is_first or self._is_one_of_few(ticket.owner):
                self._shared_until = time.perf_counter() + _SHARED_S
            if is_first and self._prompt_left and self._free() > self._reserve:
                return self._go_past(ticket)
        ticket.wait(
            asyncio.get_running_loop().create_future(),
            None if remaining_s is None else time.perf_counter() + remaining_s,
        )
        if self._turns or len(self._arrived) >= self._check_from:
            self._find_room(ticket, remaining_s)
        self._enter(ticket)
        self._arrived.append(ticket)
        if not self._looking:
            self._start_looking()
        return ticket

    def leave(self, ticket: Ticket, *, answered: bool = True) -> None:
        """Note that a call is answered; else it was refused after all, or its caller has gone."""
        self._changes += 1
        left = _subtract(self._owned, ticket.owner)
        _subtract(self._called, ticket.owner.caller)
        self._paces.note(ticket.owner, left, answered=answered)
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
        self._pauses.note_prompt_call(ticket.owner)
        return self._enter_at_once(ticket)

    def _may_be_alone(self) -> bool:
        """Whether there is no other call, and the one before was alone, too."""
        return self._bunches.count == 1 and not self._owned and time.perf_counter() >= self._alone_from

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
        self._pauses.note_refusal()
        self._flood.note_refusal()
        raise self._overloaded()

    def _free(self) -> int:
        return self._limits.concurrent_calls_max - len(self._let_in)

    def _overloaded(self) -> Overloaded:
        return Overloaded("waiting_calls_max", self._limits.waiting_calls_max)

    def _wait_s(self, owner: Owner) -> float:
        """Return how long a call that comes now will wait, about."""
        return self._turns.ahead_of(owner) * self._bunches.start_interval_s

    def _queue_arrived(self) -> None:
        arrived, self._arrived = self._arrived, []
        for ticket in arrived:
            self._turns.put(ticket.owner, ticket)

    def _start_looking(self) -> None:
        self._looking, self._looking_since = True, time.perf_counter()
        asyncio.get_running_loop().call_soon(self._look, self._changes, 0)

    def _look(self, changes: int, quiet_turns: int) -> None:
        """Let the next ones in if it is time, or look again: in the next turn, or after a pause."""
        now = time.perf_counter()
        quiet_turns = quiet_turns + 1 if self._changes == changes else 0
        is_shared = now < self._shared_until
        if not self._turns:
            waits = (
                quiet_turns < _QUIET_TURNS
                and len(self._arrived) < TOGETHER_MAX
                and now < self._looking_since + _GATHERING_S
            )
        else:
            # Where it is quiet, those of the last bunch wait for something else; so they do where they take
            # much longer than a bunch may.
            overdue = now > self._bunches.opened_at + (_SHARED_OVERDUE_S if is_shared else _OVERDUE_S)
            waits = bool(self._running) and quiet_turns < _ANSWER_TURNS and not overdue
        if waits:
            asyncio.get_running_loop().call_soon(self._look, self._changes, quiet_turns)
        elif self._turns and self._pauses.wanted(now, awake=is_shared):
            self._prompt_left = max(self._prompt_left, _PROMPT_CALLS_PER_PAUSE)
            self._pauses.wait(self._look_again, awake=is_shared)
        else:
            self._open(now)

    def _look_again(self) -> None:
        self._look(self._changes, 0)

    def _open(self, now: float) -> None:
        """Let the next bunch in."""
        self._bunches.end(now, kept_waiting=bool(self._turns) and self._looking_since_opening)
        if self._turns:
            self._queue_arrived()
        self._running.clear()
        together = self._bunches.most(small=now < self._shared_until, owners=self._turns.owners)
        free = self._free()
        if not self._turns and len(self._arrived) <= min(together, free - self._reserve):
            bunch, self._arrived = self._arrived, []
            started = sum([self._start(ticket, now) for ticket in bunch])
        else:
            self._queue_arrived()
            started = self._start_by_turns(min(together, free), now)
        self._bunches.begin(now, started)
        self._prompt_left = _PROMPT_CALLS
        # Where nobody could start, somebody has to leave first.
        self._looking = bool(self._turns) and started > 0
        self._looking_since_opening = self._looking
        is_flood = self._flood.is_on(now, more_behind=self._inlet.used_up)
        self._pauses.begin_bunch(is_flooded=is_flood and self._looking)
        if self._looking:
            asyncio.get_running_loop().call_soon(self._look, self._changes, 0)

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
