"""Where somebody with few calls comes among others with many, bunches are small; else they are large."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import product

import pytest

from admitted_calls import Calls
from memory_service.limits import Limits
from memory_service.server import admission, pauses
from memory_service.server.bunches import FIRST_CALL_S, SMALL_BUNCH_S, TOGETHER_MAX


async def begin_with_many(calls: Calls, *owners: str, callers: Sequence[str] = ("",)) -> None:
    """So many calls of each owner that some wait; each ends as soon as it is let in."""
    for n in range(60):
        for owner, caller in product(owners, callers):
            calls.arrive(f"{owner}-{n}", caller=caller)
    await asyncio.sleep(0)
    calls.may_end.set()


async def first_bunch(calls: Calls) -> int:
    """How many of those with many calls are let in together. One that was alone started before them."""

    def started() -> int:
        return sum(not name.startswith("modest") for name in calls.started)

    async with asyncio.timeout(30):
        while started() < 2:  # noqa: ASYNC110 - each turn of the loop counts
            await asyncio.sleep(0)
    return started() - 1


async def test_where_each_has_many_calls_bunches_are_as_large_as_they_get() -> None:
    calls = Calls(Limits())
    await begin_with_many(calls, "one", "other")
    assert await first_bunch(calls) == TOGETHER_MAX
    await calls.end()


async def test_beside_somebody_with_few_calls_bunches_are_small() -> None:
    calls = Calls(Limits())
    await begin_with_many(calls, "greedy")
    calls.arrive("modest-0")
    assert await first_bunch(calls) <= SMALL_BUNCH_S / FIRST_CALL_S
    await calls.end()


async def test_among_many_who_take_turns_bunches_grow_with_their_number() -> None:
    calls = Calls(Limits())
    await begin_with_many(calls, *(f"owner {n}" for n in range(16)))
    calls.arrive("modest-0")
    assert await first_bunch(calls) == 16
    await calls.end()


async def test_beside_somebody_with_few_calls_nobody_sleeps_between_two_bunches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = Calls(Limits())
    await begin_with_many(calls, "greedy")
    calls.arrive("modest-0")
    await first_bunch(calls)
    monkeypatch.setattr(pauses, "PAUSE_S", 3600.0)
    await calls.until_started(61)
    assert calls.refused == []
    await calls.end()


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside somebody with few calls, who may ask again as late as it likes, bunches follow at once."""
    for share in ("_AWAKE_SHARE", "_ASKING_AGAIN_SHARE"):
        monkeypatch.setattr(pauses, share, 0.0)
    monkeypatch.setattr(admission, "_SHARED_S", 3600.0)
    monkeypatch.setattr(pauses, "_ASKING_AGAIN_S", 3600.0)
    monkeypatch.setattr(pauses, "_ONE_AFTER_THE_OTHER_S", 3600.0)


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize(
    ("share", "name", "waits"),
    [(1e9, "modest-1", True), (0.0, "modest-1", False), (1e9, "another modest-0", False)],
)
async def test_who_asks_one_after_the_other_gets_a_moment_to_ask_again(
    monkeypatch: pytest.MonkeyPatch, share: float, name: str, waits: bool
) -> None:
    calls = Calls(Limits())
    await begin_with_many(calls, "greedy")
    calls.arrive("modest-0")
    await first_bunch(calls)
    monkeypatch.setattr(pauses, "_ASKING_AGAIN_SHARE", share)
    await calls.arrive(name)
    for _ in range(5000):
        await asyncio.sleep(0)
    assert (len(calls.started) < 62) == waits
    monkeypatch.setattr(pauses, "_ASKING_AGAIN_SHARE", 0.0)
    await calls.until_started(62)
    await calls.end()


@pytest.mark.usefixtures("without_pauses")
async def test_in_each_pause_some_go_past_those_who_have_much(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(Limits())
    await begin_with_many(calls, "greedy")
    calls.arrive("modest-0")
    await first_bunch(calls)
    # The next pause does not end.
    monkeypatch.setattr(pauses, "_ASKING_AGAIN_SHARE", 1e9)
    async with asyncio.timeout(10):
        for n in range(5 * admission._PROMPT_CALLS):
            await calls.arrive(f"modest-{n}")
            # So long the caller takes to ask again.
            await asyncio.sleep(2 * pauses.PAUSE_S)
    assert "greedy-59" not in calls.started
    monkeypatch.setattr(pauses, "_ASKING_AGAIN_SHARE", 0.0)
    await calls.end()


async def test_bunches_are_small_beside_few_calls_of_who_may_not_go_past() -> None:
    calls = Calls(Limits())
    await begin_with_many(calls, "greedy", callers=("gateway", "other"))
    calls.arrive("modest-0", caller="gateway")
    assert await first_bunch(calls) <= SMALL_BUNCH_S / FIRST_CALL_S
    await calls.end()
