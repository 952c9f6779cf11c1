"""When refusing is given up, and what is taken in then."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from memory_service.server.flood import Flood
from memory_service.server.inlet import Inlet

WINDOW_S = 0.2


class Course:
    """A flood that is looked at every 10 ms."""

    def __init__(self) -> None:
        self.flood = Flood()
        # As a loop that has run for a while.
        self.now = 100.0
        self.flood.is_on(self.now, more_behind=False)

    def go(self, seconds: float, *, refused_per_s: int, more_behind: bool) -> float:
        """Goes on for so long, and returns in what share of the time it was on."""
        looks = [self._look(refused_per_s, more_behind) for _ in range(round(seconds * 100))]
        return sum(looks) / len(looks)

    def _look(self, refused_per_s: int, more_behind: bool) -> bool:
        for _ in range(refused_per_s // 100):
            self.flood.note_refusal()
        self.now += 0.01
        return self.flood.is_on(self.now, more_behind=more_behind)


def test_refusals_that_leave_time_are_no_flood() -> None:
    assert Course().go(5, refused_per_s=2_000, more_behind=True) == 0


def test_refusals_that_take_the_time_are_a_flood_while_more_are_behind() -> None:
    course = Course()
    assert course.go(0.3, refused_per_s=8_000, more_behind=True) > 0
    # In it few are refused: that is no sign that it is over.
    assert course.go(0.5, refused_per_s=500, more_behind=True) == 1
    assert course.go(0.5, refused_per_s=500, more_behind=False) < 0.3
    assert course.go(5, refused_per_s=500, more_behind=True) == 0


def test_a_flood_that_goes_on_is_looked_at_ever_more_seldom() -> None:
    course = Course()
    course.go(0.3, refused_per_s=8_000, more_behind=True)
    begins = []
    for _ in range(4):
        while course.go(0.01, refused_per_s=500, more_behind=True):
            pass
        began = course.now
        while not course.go(0.01, refused_per_s=8_000, more_behind=True):
            pass
        assert course.now - began == pytest.approx(WINDOW_S, abs=0.011)
        begins.append(course.now)
    lasted = [later - earlier for earlier, later in itertools.pairwise(begins)]
    assert lasted == pytest.approx([2.2, 4.2, 4.2], abs=0.03)


def test_a_flood_long_ago_is_forgotten() -> None:
    course = Course()
    course.go(8, refused_per_s=8_000, more_behind=True)
    course.now += 3600
    assert not course.flood.is_on(course.now, more_behind=False)
    assert course.go(1, refused_per_s=0, more_behind=False) == 0


class Source:
    """Calls that come as soon as they are asked for."""

    def __init__(self, inlet: Inlet, askers: int) -> None:
        self.came = 0
        self._inlet = inlet
        self.tasks = [asyncio.create_task(self._ask()) for _ in range(askers)]

    async def _ask(self) -> None:
        while True:
            await self._inlet.ask(self._next)

    async def _next(self) -> None:
        await asyncio.sleep(0)
        self.came += 1

    async def came_within(self, turns: int) -> int:
        before = self.came
        for _ in range(turns):
            await asyncio.sleep(0)
        return self.came - before

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_an_inlet_lets_in_as_many_as_it_is_told() -> None:
    inlet = Inlet()
    source = Source(inlet, askers=8)
    assert await source.came_within(10) > 30
    inlet.limit(0)
    # Those that were asked for still come.
    assert await source.came_within(10) <= 8
    for calls in (5, 20, 1):
        inlet.limit(calls)
        assert not inlet.used_up
        assert await source.came_within(50) == calls
        assert inlet.used_up
    inlet.open()
    assert not inlet.used_up
    assert await source.came_within(10) > 30
    await source.end()


async def test_those_that_were_asked_for_count_among_those_that_are_let_in() -> None:
    inlet = Inlet()
    calls: asyncio.Queue[int] = asyncio.Queue()
    tasks = [asyncio.create_task(inlet.ask(calls.get)) for _ in range(3)]
    await asyncio.sleep(0)
    inlet.limit(4)
    tasks += [asyncio.create_task(inlet.ask(calls.get)) for _ in range(3)]
    for number in range(6):
        calls.put_nowait(number)
    for _ in range(50):
        await asyncio.sleep(0)
    assert sum(task.done() for task in tasks) == 4
    inlet.open()
    await asyncio.wait(tasks)
    assert {task.result() for task in tasks} == set(range(6))


async def test_an_inlet_that_has_ended_is_open_for_good() -> None:
    inlet = Inlet()
    source = Source(inlet, askers=8)
    inlet.limit(0)
    inlet.end()
    inlet.limit(0)
    assert await source.came_within(10) > 30
    await source.end()
