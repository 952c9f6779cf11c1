"""Refusals are held for a moment, but neither too many nor too long; the clock is the test's own."""

from __future__ import annotations

import asyncio

import pytest

from memory_service.errors import Overloaded
from memory_service.server import refusals
from memory_service.server.refusals import LARGE_BYTES, Refusals

HELD_MAX = 3


class Callers:
    """Callers that are refused when a test wants, of a loop whose clock stands still meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, together_s: float | None = 0.05) -> None:
        monkeypatch.setattr(refusals, "_HELD_MAX", HELD_MAX)
        self.refusals = Refusals(together_s)
        self.now_s = 1000.01
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.now_s)

    async def refuse(
        self, remaining_s: float | None = None, size: int = 100, refusal: Overloaded | None = None
    ) -> asyncio.Task[None]:
        refusal = refusal or Overloaded("waiting_calls_max", 1)
        task = asyncio.create_task(self.refusals.hold(refusal, size, remaining_s))
        await self.pass_time(0)
        return task

    async def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
async def callers(monkeypatch: pytest.MonkeyPatch) -> Callers:
    return Callers(monkeypatch)


async def test_a_refusal_is_held_and_then_told(callers: Callers) -> None:
    refused = await callers.refuse()
    await callers.pass_time(0.43)
    assert not refused.done()
    await callers.pass_time(0.07)
    assert refused.done()


async def test_who_comes_again_as_told_comes_when_it_would_have(callers: Callers) -> None:
    refusal, at_once = Overloaded("waiting_calls_max", 1, 0.6), Overloaded("waiting_calls_max", 1, 0.6)
    refused_at = callers.now_s
    refused = await callers.refuse(refusal=refusal)
    while not refused.done():
        await callers.pass_time(0.01)
    assert callers.now_s - refused_at + refusal.retry_after_s == pytest.approx(0.6)
    callers.refusals.end()
    await callers.refuse(refusal=at_once)
    assert at_once.retry_after_s == 0.6


async def test_of_a_loop_that_stood_still_nobody_is_told_a_time_that_has_passed(callers: Callers) -> None:
    refusal = Overloaded("waiting_calls_max", 1, 0.6)
    refused = await callers.refuse(refusal=refusal)
    await callers.pass_time(20)
    assert refused.done() and refusal.retry_after_s == 0


@pytest.mark.parametrize("remaining_s", [0.001, 0.1, 0.25, 0.7])
async def test_no_more_than_half_of_a_callers_time_is_taken(callers: Callers, remaining_s: float) -> None:
    hasty, patient = await callers.refuse(remaining_s), await callers.refuse(remaining_s=10)
    await callers.pass_time(remaining_s / 2)
    assert (hasty.done(), patient.done()) == (True, False)


async def test_those_of_about_the_same_time_are_told_together(callers: Callers) -> None:
    first = await callers.refuse()
    await callers.pass_time(0.02)
    second = await callers.refuse()
    told = []
    while not first.done():
        told.append(second.done())
        await callers.pass_time(0.001)
    assert len(told) > 100 and not any(told)
    assert second.done()


async def test_a_large_request_is_not_kept(callers: Callers) -> None:
    large, small = await callers.refuse(size=LARGE_BYTES + 1), await callers.refuse(size=LARGE_BYTES)
    assert (large.done(), small.done()) == (True, False)


async def test_where_too_many_are_held_none_is_for_a_while(callers: Callers) -> None:
    held = [await callers.refuse() for _ in range(HELD_MAX)]
    assert (await callers.refuse()).done()
    await callers.pass_time(0.9)
    assert all(task.done() for task in held)
    assert (await callers.refuse()).done()
    await callers.pass_time(0.2)
    assert not (await callers.refuse()).done()


async def test_where_too_many_bytes_are_held_none_is_for_a_while(
    callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "_HELD_BYTES_MAX", 1000)
    held = [await callers.refuse(size=500), await callers.refuse(size=500)]
    assert (await callers.refuse(size=1)).done()
    await callers.pass_time(0.5)
    assert all(task.done() for task in held)
    await callers.pass_time(0.6)
    assert not (await callers.refuse(size=1000)).done()


async def test_a_caller_that_goes_away_leaves_its_place(callers: Callers) -> None:
    held = [await callers.refuse() for _ in range(HELD_MAX)]
    for task in held:
        task.cancel()
    await callers.pass_time(0)
    assert not (await callers.refuse()).done()
    # Their time comes, too.
    await callers.pass_time(0.5)
    assert all(task.cancelled() for task in held)


async def test_a_server_that_ends_tells_all_and_holds_none(callers: Callers) -> None:
    held = [await callers.refuse() for _ in range(HELD_MAX - 1)]
    callers.refusals.end()
    await callers.pass_time(0)
    assert all(task.done() for task in held)
    assert (await callers.refuse()).done()


async def test_a_refusal_is_not_held_for_longer_than_its_caller_is_to_wait(callers: Callers) -> None:
    refused = await callers.refuse(refusal=Overloaded.too_many_calls(5, 0.2))
    await callers.pass_time(0.13)
    assert not refused.done()
    await callers.pass_time(0.06)
    assert refused.done()


async def test_those_that_came_together_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    told = set()
    for _ in range(20):
        callers = Callers(monkeypatch, together_s=None)
        refused = await callers.refuse(refusal=Overloaded.too_many_calls(5, 1.0))
        came_at = callers.now_s
        while not refused.done():
            await callers.pass_time(0.001)
        told.add(round(callers.now_s - came_at, 3))
    assert 0.25 <= min(told) < max(told) <= 0.501
    assert len(told) > 5


async def test_who_can_be_held_until_it_is_due_is_told_then(monkeypatch: pytest.MonkeyPatch) -> None:
    callers = Callers(monkeypatch, together_s=None)
    refusal = Overloaded.too_many_calls(5, 0.2)
    refused = await callers.refuse(refusal=refusal)
    await callers.pass_time(0.199)
    assert not refused.done()
    await callers.pass_time(0.002)
    assert refused.done()
    assert refusal.retry_after_s == 0
