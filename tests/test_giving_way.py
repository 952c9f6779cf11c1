"""Long work is done in parts, and short calls come first."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Coroutine
from contextvars import copy_context

import pytest

from memory_service import giving_way
from memory_service.giving_way import Stay, arrive, begin, each, enter, leave
from memory_service.runtime.caller import Owner

# As many turns of the loop as a short call takes.
TURNS = 8


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a part is over when it begins."""
    monkeypatch.setattr(giving_way, "_PART_S", -1.0)
    monkeypatch.setattr(giving_way, "_SHARED_PART_S", -1.0)


def start(call: Coroutine[None, None, None]) -> asyncio.Task[None]:
    """A call with a context of its own, as calls of a server have."""
    return asyncio.get_running_loop().create_task(call, context=copy_context())


def let_in(namespace: str = "", caller: str = "") -> Stay:
    """A call that was let in."""
    stay = begin(Owner(caller, namespace.encode()))
    enter(stay)
    return stay


async def long_call(done: list[str], name: str = "part", count: int = 40) -> None:
    stay = let_in()
    found = await each(lambda number: done.append(name) or number, range(count))
    assert found == list(range(count))
    leave(stay)


async def short_call(done: list[str], turns: int = TURNS) -> None:
    stay = let_in()
    try:
        for _ in range(turns):
            await asyncio.sleep(0)
        done.append("short")
    finally:
        leave(stay)


async def call_that_arrives(done: list[str], turns: int, waits: bool = False) -> None:
    """A call that gRPC brings in, or which waits for others that come with it, for so many turns."""
    if waits:
        stay = begin(Owner("", b""))
    else:
        arrive()
    for _ in range(turns):
        await asyncio.sleep(0)
    if not waits:
        stay = begin(Owner("", b""))
    enter(stay)
    assert calls_inside() == [0, 1]
    done.append("let in")
    leave(stay)


def calls_inside() -> list[int]:
    """Calls that wait to be let in, and short ones."""
    return giving_way._calls[:2]


class Turns:
    """Counts the turns of the loop."""

    def __init__(self) -> None:
        self.count = 0
        self._counting = asyncio.create_task(self._go_on())

    async def _go_on(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)

    def stop(self) -> None:
        self._counting.cancel()


async def test_a_short_call_waits_for_one_part_alone() -> None:
    done: list[str] = []
    await asyncio.gather(start(long_call(done)), start(short_call(done)))
    assert done.index("short") == 1
    assert len(done) == 41
    assert calls_inside() == [0, 0]


async def test_long_work_goes_on_where_a_call_waits_for_something_else() -> None:
    done: list[str] = []
    waiting = start(short_call(done, turns=10_000))
    await start(long_call(done))
    assert len(done) == 40
    waiting.cancel()
    await asyncio.wait([waiting])


async def test_long_calls_do_not_wait_for_each_other() -> None:
    done: list[str] = []
    turns = Turns()
    await asyncio.gather(*(start(long_call(done, str(number))) for number in range(3)))
    turns.stop()
    assert len(done) == 120
    # Forty parts of each, side by side; were they to wait for each other, it were ten times as many.
    assert turns.count < 160
    assert calls_inside() == [0, 0]


@pytest.mark.parametrize("waits", [False, True])
async def test_a_call_that_arrives_waits_for_one_part_alone(
    monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    monkeypatch.setattr(giving_way, "_ARRIVAL_S", 5.0)
    done: list[str] = []
    # Longer than a call is waited for that is short.
    await asyncio.gather(start(long_call(done)), start(call_that_arrives(done, 5 * TURNS, waits)))
    assert done.index("let in") == 1
    assert len(done) == 41
    assert calls_inside() == [0, 0]


async def test_long_work_goes_on_where_a_call_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving_way, "_ARRIVAL_S", 0.001)
    done: list[str] = []
    arrive()
    waiting = begin(Owner("", b""))
    await start(long_call(done))
    assert done == ["part"] * 40
    leave(waiting)
    assert calls_inside() == [0, 0]


async def test_long_work_goes_on_in_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving_way, "_ARRIVAL_S", 5.0)
    crowd = [begin(Owner("", b"")) for _ in range(5)]
    arrive()
    turns = Turns()
    await start(long_call([]))
    assert turns.count < 80
    turns.stop()
    for stay in crowd:
        leave(stay)
    assert calls_inside() == [0, 0]


@pytest.mark.parametrize(
    ("caller", "lately_s", "inside", "is_shorter"),
    [
        ("b", 60.0, 0, True),
        ("b", 60.0, 4, True),
        ("b", 60.0, 5, False),
        ("b", 0.0, 0, False),
        ("a", 60.0, 0, False),
    ],
)
async def test_parts_are_shorter_beside_few_calls_of_others(
    monkeypatch: pytest.MonkeyPatch, caller: str, lately_s: float, inside: int, is_shorter: bool
) -> None:
    monkeypatch.setattr(giving_way, "_PART_S", 3600.0)
    monkeypatch.setattr(giving_way, "_SHARED_PART_S", -1.0)
    monkeypatch.setattr(giving_way, "_LATELY_S", lately_s)
    # What other tests did is long ago.
    monkeypatch.setattr(giving_way, "_latest", giving_way._Latest(Owner("", b""), -math.inf, -math.inf))
    leave(let_in(caller=caller))
    waiting = [start(short_call([], turns=10_000)) for _ in range(inside)]
    await asyncio.sleep(0)
    stay = let_in(caller="a")
    leave(stay)
    counted = Turns()
    await each(str, range(40))
    counted.stop()
    assert (counted.count >= 10) == is_shorter
    for call in waiting:
        call.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_what_it_does_may_fail() -> None:
    with pytest.raises(ZeroDivisionError):
        await each(lambda number: 1 // number, range(-6, 6))


def test_it_is_known_whether_others_were_here() -> None:
    def answered(namespace: bytes) -> float:
        before = time.perf_counter()
        leave(let_in(namespace.decode()))
        return before

    def were_here(since: float) -> list[bool]:
        return [giving_way.others_were_here(Owner("", namespace), since) for namespace in (b"a", b"b", b"c")]

    first, second, third = answered(b"a"), answered(b"b"), answered(b"b")
    assert were_here(first) == [True, True, True]
    assert were_here(second) == were_here(third) == [True, False, True]
    fourth = answered(b"a")
    assert were_here(third) == [True, True, True]
    assert were_here(fourth) == [False, True, True]
    assert were_here(time.perf_counter()) == [False, False, False]
