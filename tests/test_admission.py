"""Scheduling of calls: owners take turns, none takes all places, and calls that would be late are refused."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from admitted_calls import LIMITS, Calls, nothing
from memory_service.errors import Overloaded
from memory_service.limits import Limits
from memory_service.runtime.caller import ANYBODY, Owner
from memory_service.runtime.yielding import aside, each
from memory_service.server.admission.call_queue import CallQueue
from memory_service.server.admission.callers import owner_of
from memory_service.v1 import memory_pb2 as pb


async def four_under_way(**limits: int) -> Calls:
    """Calls of four namespaces that take all places."""
    calls = Calls(replace(LIMITS, concurrent_calls_max=4, **limits))
    for n in range(4):
        calls.arrive(f"first{n}-")
    await calls.until_started(4)
    return calls


def keep_the_loop(seconds: float) -> None:
    """Long work on the event loop."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


# Batches


async def test_a_call_that_is_alone_does_not_wait() -> None:
    queue = CallQueue(LIMITS)
    for _ in range(3):
        place = queue.arrive(Owner("", b"a"), None)
        assert place.gate is None
        queue.leave(place)


async def test_calls_that_arrive_together_start_together() -> None:
    calls = Calls(Limits())
    for n in range(9):
        calls.arrive(f"a-{n}")
    await calls.until_started(2)
    assert calls.started == [f"a-{n}" for n in range(9)]
    assert calls.queue.batch_calls == 8
    await calls.end()


async def test_nobody_waits_many_turns_for_others_to_arrive() -> None:
    calls = Calls(Limits())
    calls.arrive("first", work=nothing)
    await calls.end()
    calls.arrive("a-0")
    calls.arrive("a-1")
    turns = 0
    while len(calls.started) < 3:
        turns += 1
        calls.arrive(f"more-{turns}")
        await asyncio.sleep(0)
    assert turns < 12
    await calls.end()


async def test_batches_do_not_overlap() -> None:
    calls, under_way, most = Calls(Limits()), 0, 0

    async def work() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(6):
            await asyncio.sleep(0)
        under_way -= 1

    for n in range(200):
        calls.arrive(f"a-{n}", work=work)
    await calls.end()
    assert len(calls.ended) == 200
    # As many as a batch may have, and those started before more were known to wait.
    assert most <= 17


async def test_calls_that_wait_for_something_else_leave_their_places_to_others() -> None:
    calls, disk = Calls(Limits()), asyncio.Event()

    async def write() -> None:
        await aside(disk.wait())

    began = time.perf_counter()
    for n in range(150):
        calls.arrive(f"a-{n}", work=write)
    await calls.until_started(150)
    assert not calls.queue.running
    # If they counted as busy, each batch would hold up the next one for 20 ms.
    assert time.perf_counter() - began < 60
    disk.set()
    await calls.end()
    assert len(calls.ended) == 150


async def test_a_call_that_waits_for_several_things_is_back_after_the_last() -> None:
    calls, first, second = Calls(Limits()), asyncio.Event(), asyncio.Event()
    running = []

    async def work() -> None:
        waits = [asyncio.create_task(aside(event.wait())) for event in (first, second)]
        await asyncio.sleep(0)
        for event, wait in zip((first, second), waits, strict=True):
            running.append(len(calls.queue.running))
            event.set()
            await wait
        running.append(len(calls.queue.running))

    calls.arrive("a-0", work=work)
    await calls.end()
    assert running == [0, 0, 1]


async def test_a_call_that_waits_without_saying_so_does_not_hold_up_the_others() -> None:
    calls = Calls(Limits())
    for n in range(100):
        calls.arrive(f"slow-{n}")
    await calls.until_started(100)
    await calls.end()


# Long calls


async def test_short_calls_do_not_wait_for_long_ones() -> None:
    calls = Calls(Limits())

    async def long() -> None:
        await each(lambda _: keep_the_loop(0.001), range(50))

    for n in range(4):
        calls.arrive(f"long-{n}", work=long)
    await calls.until_started(4)
    for n in range(20):
        calls.arrive(f"short-{n}", work=nothing)
    await calls.end()
    assert calls.ended[:20] == [f"short-{n}" for n in range(20)]
    assert len(calls.ended) == 24


async def test_of_the_long_calls_of_one_owner_the_first_is_done_first_and_owners_take_turns() -> None:
    calls, slices = Calls(Limits()), list[str]()

    def long(name: str) -> None:
        async def work() -> None:
            await each(lambda _: keep_the_loop(0.001) or slices.append(name), range(30))

        calls.arrive(name, work=work)

    for name in ("a-1", "a-2", "b-1"):
        long(name)
    await calls.end()
    # Each has its first slice when it starts.
    second_of_the_other = [at for at, name in enumerate(slices) if name == "a-2"][1]
    assert slices[:second_of_the_other].count("a-1") == 30
    # While the first one was still running, the other owner had as many.
    last_of_the_first = len(slices) - slices[::-1].index("a-1")
    assert slices[:last_of_the_first].count("b-1") > 10


async def test_a_long_call_that_goes_away_leaves_its_turn_to_the_next() -> None:
    calls = Calls(Limits())

    async def long() -> None:
        await each(lambda _: keep_the_loop(0.001), range(20))

    gone = calls.arrive("a-1", work=long)
    calls.arrive("a-2", work=long)
    for _ in range(10):
        await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait_for(calls.end(), 30)
    assert calls.ended == ["a-2"]


async def test_one_owner_has_few_long_calls_under_way() -> None:
    calls, under_way, most = Calls(Limits()), 0, 0

    async def long() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await each(lambda _: keep_the_loop(0.001), range(5))
        under_way -= 1

    for n in range(100):
        calls.arrive(f"a-{n}", work=long)
    await calls.end()
    assert len(calls.ended) == 100
    # The first batch starts before the calls are known to be long.
    assert most < 50


# Turns


async def test_owners_take_turns() -> None:
    calls = await four_under_way()
    for n in range(9):
        calls.arrive(f"greedy-{n}")
    for n in range(3):
        calls.arrive(f"modest-{n}")
    await asyncio.sleep(0)
    await calls.end()
    # Three of each in turn, and then the rest of the greedy owner's.
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


async def test_places_that_are_free_again_are_taken() -> None:
    calls = Calls()
    for n in range(20):
        calls.arrive(f"{'abcde'[n % 5]}-{n}")
    await calls.until_started(8)
    assert len(calls.started) == 8
    await calls.end()
    assert len(calls.started) == 20


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


# Shedding


async def test_in_a_full_queue_the_owner_with_most_loses_its_newest_call() -> None:
    calls = await four_under_way(waiting_calls_max=8)
    for n in range(20):
        calls.arrive(f"greedy-{n}")
    await calls.until_started(16)
    for n in range(2):
        calls.arrive(f"modest-{n}")
    await calls.until_started(18)
    assert calls.refused[:12] == [f"greedy-{n}" for n in range(8, 20)]
    assert calls.refused[12:] == ["greedy-7", "greedy-6"]
    assert calls.queue.shed == {"queue full": 12, "pushed out": 2}
    await calls.end()
    assert {"modest-0", "modest-1"} <= set(calls.started)
    assert len(calls.started) == 4 + 8


async def test_the_caller_with_most_gives_way_however_many_namespaces_it_has() -> None:
    calls = await four_under_way(waiting_calls_max=8)
    for n in range(8):
        calls.arrive(f"tenant {n}", caller="greedy")
    for n in range(2):
        calls.arrive(f"modest-{n}", caller="modest")
    await calls.until_started(6)
    assert calls.refused == ["tenant 7", "tenant 6"]
    await calls.end()
    assert {"modest-0", "modest-1"} <= set(calls.started)


async def test_a_call_that_waits_for_most_of_its_time_is_refused_and_one_with_more_time_is_not() -> None:
    calls = await four_under_way()
    calls.arrive("hasty-0", remaining_s=0.2)
    calls.arrive("patient-0", remaining_s=600)
    calls.arrive("patient-1")
    await calls.until_started(5)
    assert calls.refused == ["hasty-0"]
    assert calls.queue.shed == {"deadline": 1}
    await calls.end()
    assert set(calls.started[4:]) == {"patient-0", "patient-1"}


async def test_a_refused_call_is_told_when_to_try_again() -> None:
    calls = await four_under_way(waiting_calls_max=0)
    with pytest.raises(Overloaded) as refused:
        calls.queue.arrive(Owner("", b"a"), None)
    assert refused.value.retry_after_s > 0
    await calls.end()


async def test_calls_whose_callers_have_gone_make_room() -> None:
    calls = await four_under_way(waiting_calls_max=4)
    waiting = [calls.arrive(f"gone-{n}") for n in range(4)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    assert not calls.queue.waiting
    for n in range(4):
        calls.arrive(f"a-{n}")
    await asyncio.sleep(0)
    await calls.end()
    assert calls.refused == []
    assert calls.started[4:] == [f"a-{n}" for n in range(4)]


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


async def test_what_goes_on_can_be_read() -> None:
    calls = await four_under_way()
    for n in range(3):
        calls.arrive(f"a-{n}")
    await asyncio.sleep(0.01)
    assert len(calls.queue.waiting) == 3
    assert 0 < calls.queue.oldest_wait_s < 30
    await calls.end()
    assert (len(calls.queue.running), len(calls.queue.waiting), calls.queue.oldest_wait_s) == (0, 0, 0.0)
    assert calls.queue.shed == {}


# Owners


@pytest.mark.parametrize("namespace", ["n", "n" * 127, "n" * 128, "n" * 255, "n" * 256, "李雷", "李" * 85])
def test_the_namespace_of_a_request_is_its_owner_whatever_its_length(namespace: str) -> None:
    request = pb.ListRequest(namespace=namespace, session_id="s").SerializeToString()
    assert owner_of(request, ANYBODY) == Owner("", namespace.encode())
    assert owner_of(request, replace(ANYBODY, name="ada")) == Owner("ada", namespace.encode())


@pytest.mark.parametrize(
    "request_", [b"", b"\x0a", b"\x12\x01a", b"\x0a\xff\xff\x03", b"\x0a\x81", b"\x0a\x81\x02" + b"n" * 257]
)
def test_a_request_that_does_not_begin_with_a_namespace_is_its_caller_s(request_: bytes) -> None:
    assert owner_of(request_, ANYBODY) == Owner("", b"")
