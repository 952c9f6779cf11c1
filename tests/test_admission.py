"""Calls that arrive together start together, owners take turns, and none is forgotten."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from admitted_calls import LIMITS, Calls, called_by, request
from memory_service.errors import Overloaded
from memory_service.limits import Limits
from memory_service.server import admission, bunches, pauses
from memory_service.server.admission import _PROMPT_CALLS, Admission
from memory_service.server.inlet import Inlet
from memory_service.server.tickets import Ticket


async def four_under_way(**limits: int) -> Calls:
    """Calls of four namespaces that take all places there are."""
    calls = Calls(replace(LIMITS, concurrent_calls_max=4, **limits))
    for n in range(4):
        calls.arrive(f"first{n}-")
    await calls.until_started(4)
    return calls


async def test_a_call_that_is_alone_does_not_wait() -> None:
    admission = Admission(LIMITS, Inlet())
    ticket = admission.arrive(request("a"), None)
    assert ticket.gate is None
    admission.leave(ticket)


async def test_what_arrives_within_a_few_turns_starts_together(monkeypatch: pytest.MonkeyPatch) -> None:
    # However little of the processor there is.
    monkeypatch.setattr(admission, "_GATHERING_S", 60.0)
    calls = Calls(Limits())
    calls.arrive("first")
    for n in range(8):
        calls.arrive(f"a-{n}", 2 * n)
    await calls.until_started(2)
    # The second to start is not alone: all that were waiting were let in with it.
    assert calls.started == ["first", *(f"a-{n}" for n in range(8))]
    await calls.end()


async def test_nobody_waits_long_turns_for_others_to_arrive() -> None:
    calls = Calls(Limits())
    calls.arrive("first")
    calls.arrive("a-0")
    turns = 0
    while len(calls.started) < 2:
        turns += 1
        # What else the loop has to do.
        time.sleep(0.005)  # noqa: ASYNC251
        await asyncio.sleep(0)
    assert turns <= 4
    await calls.end()


async def test_an_endless_stream_of_calls_does_not_keep_the_first_waiting() -> None:
    calls = Calls(Limits())
    calls.arrive("first")
    for n in range(150):
        calls.arrive(f"a-{n}", n)
    await calls.until_started(2)
    assert len(calls.started) < 151
    await calls.until_started(151)
    assert calls.started == ["first", *(f"a-{n}" for n in range(150))]
    await calls.end()


async def test_a_call_that_goes_away_while_it_waits_takes_no_other_with_it() -> None:
    calls = Calls()
    calls.arrive("first")
    gone = calls.arrive("a-0")
    for n in (1, 2):
        calls.arrive(f"a-{n}")
    await asyncio.sleep(0)
    gone.cancel()
    await calls.until_started(3)
    assert calls.started == ["first", "a-1", "a-2"]
    await calls.end()


async def test_places_that_are_free_again_are_taken() -> None:
    calls = Calls()
    for n in range(20):
        calls.arrive(f"{'abcde'[n % 5]}-{n}")
    await calls.until_started(8)
    assert len(calls.started) == 8
    await calls.end()
    assert len(calls.started) == 20


async def test_what_the_loop_did_long_ago_makes_nobody_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    used = time.thread_time
    calls = Calls()
    # Hours of work since the last calls that waited, or since the start of the process.
    monkeypatch.setattr(time, "thread_time", lambda: used() + 36_000)
    for n in range(20):
        calls.arrive(f"{'abcde'[n % 5]}-{n}")
    await calls.until_started(8)
    assert len(calls.started) == 8
    await calls.end()


async def test_one_owner_does_not_take_all_places() -> None:
    calls = Calls()
    for n in range(12):
        calls.arrive(f"greedy-{n}")
    await calls.until_started(6)
    for n in range(2):
        calls.arrive(f"modest-{n}")
    await calls.until_started(8)
    assert calls.started[6:] == ["modest-0", "modest-1"]
    await calls.end()
    assert len(calls.started) == 14


async def test_owners_take_turns() -> None:
    calls = await four_under_way()
    for n in range(9):
        calls.arrive(f"greedy-{n}")
    for n in range(3):
        calls.arrive(f"modest-{n}")
    await asyncio.sleep(0)
    await calls.end()
    # Three of each in turn, and then what is left of the greedy one.
    first = [name.partition("-")[0] for name in calls.started[4:10]]
    assert first == ["greedy", "modest"] * 3
    assert len(calls.started) == 16


async def test_callers_take_turns_and_so_do_the_namespaces_of_each() -> None:
    calls = await four_under_way()
    for n in range(6):
        calls.arrive(f"busy-{n}", caller="gateway")
    calls.arrive("quiet-0", caller="gateway")
    for n in range(3):
        calls.arrive(f"other-{n}", caller="other")
    await asyncio.sleep(0)
    await calls.end()
    assert calls.started[4:] == [
        *("busy-0", "other-0", "quiet-0", "other-1", "busy-1", "other-2"),
        *(f"busy-{n}" for n in range(2, 6)),
    ]


async def test_a_caller_gets_no_more_places_for_having_many_namespaces() -> None:
    calls = Calls()
    for n in range(12):
        calls.arrive(f"tenant {n}", caller="greedy")
    await calls.until_started(6)
    for n in range(2):
        calls.arrive(f"modest-{n}", caller="modest")
    await calls.until_started(8)
    assert calls.started[6:] == ["modest-0", "modest-1"]
    await calls.end()


async def test_a_tenant_of_a_gateway_goes_past_those_of_it_who_have_much_but_past_no_other_caller() -> None:
    admission = Admission(Limits(), Inlet())

    def arrive(namespace: str, caller: str) -> Ticket:
        return called_by(caller).run(admission.arrive, request(namespace), None)

    for _ in range(60):
        arrive("busy", "gateway")
    assert arrive("quiet", "gateway").gate is None
    assert arrive("modest", "modest").gate is None
    # Two that wait: now the gateway is not alone.
    assert [arrive("modest", "modest").gate is None for _ in range(2)] == [False, False]
    assert arrive("another", "gateway").gate is not None


async def test_the_caller_with_most_gives_way_however_many_namespaces_it_has() -> None:
    calls = await four_under_way(waiting_calls_max=8)
    for n in range(8):
        calls.arrive(f"tenant {n}", caller="greedy")
    for _ in range(4):
        await asyncio.sleep(0)
    for n in range(2):
        calls.arrive(f"modest-{n}", caller="modest")
    await calls.until_started(6)
    assert calls.refused == ["tenant 7", "tenant 6"]
    await calls.end()
    assert {"modest-0", "modest-1"} <= set(calls.started)


def test_bunches_do_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    # However little of the processor there is, nothing here waits for anything else.
    monkeypatch.setattr(admission, "_OVERDUE_S", 60.0)
    calls, under_way, most = Calls(Limits()), 0, 0

    async def work() -> None:
        nonlocal under_way, most
        ticket = calls.admission.arrive(request("a"), None)
        if ticket.gate is not None:
            await ticket.gate
        under_way += 1
        most = max(most, under_way)
        # As many turns as a retrieval takes, and as much work.
        for _ in range(6):
            until = time.thread_time() + 20e-6
            while time.thread_time() < until:
                pass
            await asyncio.sleep(0)
        under_way -= 1
        calls.admission.leave(ticket)

    async def all_of_them() -> None:
        await asyncio.gather(*(work() for _ in range(200)))

    asyncio.run(all_of_them())
    # One call that was alone, and the largest bunch.
    assert most <= 33


async def test_what_waits_for_something_else_does_not_hold_up_the_next_bunch() -> None:
    calls = Calls(Limits())
    for n in range(40):
        calls.arrive(f"slow-{n}")
    for _ in range(1_000_000):
        if len(calls.started) == 40:
            break
        # In each turn of the loop somebody comes and goes, so it is never quiet.
        ticket = calls.admission.arrive(request("brief"), None)
        await asyncio.sleep(0)
        if ticket.gate is not None:
            ticket.gate.cancel()
        calls.admission.leave(ticket)
    assert len(calls.started) == 40
    await calls.end()


async def test_who_waits_too_long_inside_gets_no_more_calls_in() -> None:
    admission = Admission(Limits(), Inlet())
    tickets = [admission.arrive(request("slow"), None) for _ in range(100)]
    await asyncio.gather(*(ticket.gate for ticket in tickets if ticket.gate is not None))
    for _ in range(20):
        # One is answered each hundredth of a second, at best.
        await asyncio.sleep(0.01)
        admission.leave(tickets.pop())
    for _ in range(60):
        # Refused is not answered, however quick it is.
        await asyncio.sleep(0.002)
        admission.leave(tickets.pop(), answered=False)
    with pytest.raises(Overloaded):
        admission.arrive(request("slow"), 0.3)
    patient = admission.arrive(request("slow"), 600)
    another = admission.arrive(request("other"), 0.3)
    for ticket in (*tickets, patient, another):
        admission.leave(ticket)
    # Nothing is left of it.
    admission.leave(admission.arrive(request("slow"), 0.3))


async def test_who_has_nothing_here_goes_past_those_who_have_much() -> None:
    admission = Admission(Limits(), Inlet())
    waiting = [admission.arrive(request("greedy"), None) for _ in range(60)]
    assert [ticket for ticket in waiting[1:] if ticket.gate is None] == []
    first = admission.arrive(request("modest"), None)
    assert first.gate is None
    # Not while it has one, and not everybody: ten thousand strangers are a crowd, too.
    assert admission.arrive(request("modest"), None).gate is not None
    strangers = [admission.arrive(request(f"stranger {n}"), None) for n in range(_PROMPT_CALLS + 4)]
    assert [ticket.gate is None for ticket in strangers] == [True] * (_PROMPT_CALLS - 1) + [False] * 5


async def test_where_too_many_wait_the_longest_queue_gives_way() -> None:
    calls = await four_under_way(waiting_calls_max=8)
    for n in range(20):
        calls.arrive(f"greedy-{n}")
    await calls.until_started(16)
    for n in range(2):
        calls.arrive(f"modest-{n}")
    await calls.until_started(18)
    assert calls.refused[:12] == [f"greedy-{n}" for n in range(8, 20)]
    assert calls.refused[12:] == ["greedy-7", "greedy-6"]
    await calls.end()
    assert {"modest-0", "modest-1"} <= set(calls.started)
    assert len(calls.started) == 4 + 8


async def test_calls_whose_callers_have_gone_make_room() -> None:
    calls = await four_under_way(waiting_calls_max=4)
    waiting = [calls.arrive(f"gone-{n}") for n in range(4)]
    for _ in range(10):
        await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    for n in range(4):
        calls.arrive(f"a-{n}")
    await asyncio.sleep(0)
    await calls.end()
    assert calls.refused == []
    assert calls.started[4:] == [f"a-{n}" for n in range(4)]


async def test_a_call_that_could_not_start_in_time_is_refused_at_once() -> None:
    calls = Calls(replace(LIMITS, concurrent_calls_max=1))
    calls.arrive("first")
    await calls.until_started(1)
    calls.arrive("a-0")
    for _ in range(10):
        await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        calls.admission.arrive(request("a"), 1e-9)
    await calls.end()
    assert calls.started == ["first", "a-0"]


async def test_nobody_waits_for_more_to_be_refused_when_none_came_in_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (admission, bunches):
        monkeypatch.setattr(module, "TOGETHER_MAX", 2)
    # Where calls are refused there is time to take more in: for ever, if they come for ever.
    monkeypatch.setattr(pauses, "_REFUSING_SHARE", 1e9)
    calls = Calls()
    for n in range(6):
        calls.arrive(f"a-{n}")
    await calls.until_started(2)
    with pytest.raises(Overloaded):
        calls.admission.arrive(request("a"), 0.0)
    calls.may_end.set()
    await calls.until_started(6)
    assert calls.refused == []
    await calls.end()


class Source:
    """Calls of one namespace without end: one more arrives as soon as it is let in."""

    def __init__(self, limits: Limits) -> None:
        self.inlet = Inlet()
        self.came, self.answered = 0, 0
        self.may_end = asyncio.Event()
        self.may_end.set()
        self._admission = Admission(limits, self.inlet)
        self._behind = asyncio.Event()
        self._behind.set()
        self._calls = set[asyncio.Task[None]]()
        self._askers = [asyncio.create_task(self._ask()) for _ in range(64)]

    async def _ask(self) -> None:
        while True:
            await self.inlet.ask(self._next)
            call = asyncio.create_task(self._call())
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)

    async def _next(self) -> None:
        await asyncio.sleep(0)
        await self._behind.wait()
        self.came += 1

    async def _call(self) -> None:
        try:
            ticket = self._admission.arrive(request("a"), None)
        except Overloaded:
            return
        try:
            if ticket.gate is not None:
                await ticket.gate
            self.answered += 1
            await self.may_end.wait()
        except Overloaded:
            return
        finally:
            self._admission.leave(ticket)

    async def until(self, came: int) -> None:
        """Waits until so many have come."""
        async with asyncio.timeout(60):
            while self.came < came:  # noqa: ASYNC110 - they come one by one
                await asyncio.sleep(0.001)

    async def until_flooded(self) -> None:
        """Waits until no more are let in than may come."""
        async with asyncio.timeout(60):
            while not self.inlet.used_up:  # noqa: ASYNC110 - they come one by one
                await asyncio.sleep(0.001)

    async def end(self) -> None:
        """No more come; returns when all are answered."""
        self._behind.clear()
        while self._calls:
            await asyncio.wait(set(self._calls))
        for asker in self._askers:
            asker.cancel()
        await asyncio.gather(*self._askers, return_exceptions=True)


async def test_in_a_flood_few_more_are_taken_in_than_are_answered() -> None:
    source = Source(LIMITS)
    await source.until_flooded()
    came, answered = source.came, source.answered
    await source.until(came + 3_000)
    # Three of five. Were all that come taken in, it would be one of ten, or of a hundred.
    assert source.answered - answered > (source.came - came) / 3
    # Where those that were let in wait for something, nobody could start, and all the others are refused.
    source.may_end.clear()
    await source.until(source.came + 10_000)
    source.may_end.set()
    # And when it is over, as many may come as want to.
    await source.end()
    for _ in range(1_000):
        await asyncio.wait_for(source.inlet.ask(lambda: asyncio.sleep(0)), 1)
