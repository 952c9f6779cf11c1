"""Heavy writes take turns: one at a time, and whoever goes away leaves the turn to the next."""

from __future__ import annotations

import asyncio

import pytest

from memory_service import giving_way
from memory_service.runtime.caller import Owner
from memory_service.stores.hnsw import heavy_turns
from memory_service.stores.hnsw.heavy_turns import HeavyTurns


class Writers:
    """Heavy writes that end when they are told to, and what has begun so far."""

    def __init__(self) -> None:
        self.turns = HeavyTurns()
        self.begun: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}

    async def _write(self, namespace: str, name: str) -> None:
        async with self.turns.turn(namespace):
            self.begun.append(name)
            await self.ends[name].wait()

    async def start(self, name: str) -> asyncio.Task[None]:
        """Starts a write; the first letter of its name is its namespace."""
        self.ends[name] = asyncio.Event()
        task = asyncio.create_task(self._write(name[0], name))
        await self.rest()
        return task

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await self.rest()

    async def rest(self) -> None:
        """Lets everything go on that can."""
        for _ in range(5):
            await asyncio.sleep(0)


async def test_namespaces_take_turns_one_at_a_time() -> None:
    writers = Writers()
    for name in ("a1", "a2", "a3", "b1"):
        await writers.start(name)
    assert writers.begun == ["a1"]
    for name in ("a1", "a2", "b1", "a3"):
        await writers.end(name)
    assert writers.begun == ["a1", "a2", "b1", "a3"]
    # All have ended, and who comes now does not wait.
    await writers.start("a4")
    assert writers.begun[-1] == "a4"


async def test_who_goes_away_while_it_waits_is_passed_over() -> None:
    writers = Writers()
    for name in ("a1", "b1"):
        await writers.start(name)
    gone = writers.ends["b1"]
    task = await writers.start("c1")
    task.cancel()
    await writers.rest()
    await writers.start("d1")
    await writers.end("a1")
    gone.set()
    await writers.rest()
    assert writers.begun == ["a1", "b1", "d1"]


async def test_who_is_cancelled_just_when_its_turn_comes_passes_it_on() -> None:
    writers = Writers()
    await writers.start("a1")
    task = await writers.start("b1")
    await writers.start("c1")
    writers.ends["a1"].set()
    # It ends, and gives the turn to the next one, which has not gone on yet.
    await asyncio.sleep(0)
    task.cancel()
    await writers.rest()
    assert writers.begun == ["a1", "c1"]


async def test_a_write_that_fails_leaves_the_turn_to_the_next() -> None:
    turns = HeavyTurns()
    with pytest.raises(ValueError, match="refused"):
        async with turns.turn("a"):
            raise ValueError("refused")
    async with asyncio.timeout(10), turns.turn("b"):
        pass


@pytest.fixture
def long_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rest that is as long as one may be, however short the write was."""
    monkeypatch.setattr(heavy_turns, "_REST", 1e9)


def call_of(namespace: str, *, gives_way: bool = False) -> None:
    """A call that comes and is answered."""
    stay = giving_way.begin(Owner("", namespace.encode()))
    giving_way.enter(stay)
    if gives_way:
        stay.go_on(giving_way._Phase.OTHER)
    giving_way.leave(stay)


@pytest.mark.usefixtures("long_rests")
async def test_beside_short_calls_of_others_a_rest_follows_each_write() -> None:
    writers = Writers()
    await writers.start("a1")
    next_one = await writers.start("a2")
    call_of("b")
    # Whose the last call was does not matter, if there was one of somebody else.
    call_of("a")
    await writers.end("a1")
    assert writers.begun == ["a1"]
    writers.ends["a2"].set()
    async with asyncio.timeout(10):
        await next_one
    # Those calls have had theirs.
    await writers.start("a3")
    assert writers.begun == ["a1", "a2", "a3"]


@pytest.mark.usefixtures("long_rests")
@pytest.mark.parametrize(("namespace", "gives_way"), [("a", False), ("b", True)])
async def test_nobody_rests_for_its_own_calls_nor_for_long_ones(namespace: str, gives_way: bool) -> None:
    writers = Writers()
    await writers.start("a1")
    await writers.end("a1")
    await writers.start("a2")
    call_of(namespace, gives_way=gives_way)
    await writers.end("a2")
    await writers.start("a3")
    assert writers.begun == ["a1", "a2", "a3"]
