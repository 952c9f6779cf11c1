"""Calls that arrive together start together, and none is forgotten."""

from __future__ import annotations

import asyncio

from memory_service.server.turnstile import Turnstile


async def _arrive(turnstile: Turnstile, started: list[int], number: int, turns_before: int) -> None:
    for _ in range(turns_before):
        await asyncio.sleep(0)
    gate = turnstile.wait(1)
    assert gate is not None
    await gate
    started.append(number)


async def test_a_call_that_is_alone_does_not_wait() -> None:
    turnstile = Turnstile()
    assert turnstile.wait(0) is None
    assert turnstile.wait(0) is None


async def test_what_arrives_within_a_few_turns_starts_together() -> None:
    turnstile, started = Turnstile(), list[int]()
    calls = [asyncio.create_task(_arrive(turnstile, started, n, 2 * n)) for n in range(8)]
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    # The first to start is not alone: all that were waiting were let in with it.
    assert started == list(range(8))
    await asyncio.gather(*calls)


async def test_an_endless_stream_of_calls_does_not_keep_the_first_waiting() -> None:
    turnstile, started = Turnstile(), list[int]()
    calls = [asyncio.create_task(_arrive(turnstile, started, n, n)) for n in range(200)]
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    assert sum(call.done() for call in calls) < 200
    assert started[0] == 0
    await asyncio.gather(*calls)
    assert started == list(range(200))


async def test_a_call_that_goes_away_while_it_waits_takes_no_other_with_it() -> None:
    turnstile, started = Turnstile(), list[int]()
    calls = [asyncio.create_task(_arrive(turnstile, started, n, 0)) for n in range(3)]
    await asyncio.sleep(0)
    calls[0].cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert started == [1, 2]


async def test_after_a_bunch_a_single_call_is_let_in() -> None:
    turnstile, started = Turnstile(), list[int]()
    await asyncio.gather(*(_arrive(turnstile, started, n, 0) for n in range(3)))
    await _arrive(turnstile, started, 3, 0)
    assert started == [0, 1, 2, 3]
    assert turnstile.wait(0) is None
