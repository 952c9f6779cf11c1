"""Long work is sliced so that others run in between; work that waits gives up its place."""

from __future__ import annotations

import asyncio
import time

import pytest

from memory_service.runtime.yielding import PLACE, Part, aside, each, give_way


def work(_: object = None) -> None:
    """Take longer than a slice."""
    until = time.perf_counter() + 0.001
    while time.perf_counter() < until:
        pass


class Turns:
    """Counts the turns of the loop."""

    def __init__(self) -> None:
        self.count = 0
        self._counting = asyncio.create_task(self._go_on())

    async def _go_on(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)

    def stop(self) -> int:
        self._counting.cancel()
        return self.count


class Noted:
    """A place that records events."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def step_aside(self) -> None:
        self.notes.append("aside")

    def come_back(self) -> None:
        self.notes.append("back")

    async def give_way(self) -> None:
        self.notes.append("gives way")


async def test_others_come_between_the_slices_of_long_work() -> None:
    turns = Turns()
    assert await each(lambda n: work() or n, range(20)) == list(range(20))
    assert turns.stop() >= 19


async def test_short_work_is_done_in_one_piece() -> None:
    turns = Turns()
    assert await each(str, range(3)) == ["0", "1", "2"]
    assert turns.stop() <= 1


async def test_a_slice_lasts_until_it_is_over_however_often_it_is_asked() -> None:
    turns, part = Turns(), Part()
    for _ in range(5):
        work()
        await part.give_way_if_long()
    assert turns.stop() >= 4


async def test_what_it_does_may_fail() -> None:
    with pytest.raises(ZeroDivisionError):
        await each(lambda number: 1 // number, range(-6, 6))


async def test_a_call_leaves_its_place_while_it_waits_and_takes_it_again() -> None:
    place = Noted()
    PLACE.set(place)
    assert await aside(asyncio.sleep(0, "found")) == "found"
    assert place.notes == ["aside", "back"]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await aside(asyncio.sleep(60))
    assert place.notes == ["aside", "back"] * 2
    await give_way()
    assert place.notes[4:] == ["gives way"]


async def test_without_a_place_it_just_waits() -> None:
    assert await aside(asyncio.sleep(0, "found")) == "found"
    await give_way()
