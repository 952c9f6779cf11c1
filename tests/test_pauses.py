"""How long calls are taken in between two bunches, and what a call costs by them."""

from __future__ import annotations

import asyncio
import time

import pytest

from memory_service.runtime.caller import Owner
from memory_service.server import pauses
from memory_service.server.bunches import Bunches
from memory_service.server.inlet import Inlet
from memory_service.server.pauses import Pauses

BUSY_S = 0.03


class AfterBunch:
    """The first pause after a bunch of four that took the loop 30 ms."""

    def __init__(self, *, refusals: int) -> None:
        self.bunches = Bunches()
        self.pauses = Pauses(self.bunches, Inlet())
        self.bunches.end(time.perf_counter(), kept_waiting=False)
        self.bunches.begin(time.perf_counter(), 4)
        self.pauses.begin_bunch(is_flooded=False)
        for _ in range(refusals):
            self.pauses.note_refusal()
        until = time.thread_time() + BUSY_S
        while time.thread_time() < until:
            pass
        asyncio.run(self._wait())

    async def _wait(self) -> None:
        self.began_after = time.perf_counter()
        self.pauses.wait(lambda: None, awake=False)
        self.began_before = time.perf_counter()

    def wanted(self, began: float, share: float, *, taken_in: int, awake: bool) -> bool:
        """Whether more are taken in when it has lasted for this share of the bunch, and some came."""
        self.bunches.taken_in = taken_in
        return self.pauses.wanted(began + share * BUSY_S, awake=awake)


@pytest.mark.parametrize(
    ("refusals", "taken_in", "awake", "share"),
    [(0, 1, False, 0.1), (1, 1, False, 0.3), (1, 5, False, 0.5), (0, 1, True, 0.4)],
)
def test_a_pause_takes_its_share_of_the_time(refusals: int, taken_in: int, awake: bool, share: float) -> None:
    after = AfterBunch(refusals=refusals)
    assert after.wanted(after.began_after, 0.8 * share, taken_in=taken_in, awake=awake)
    # The loop did something besides.
    assert not after.wanted(after.began_before, 2 * share, taken_in=taken_in, awake=awake)


@pytest.mark.parametrize(
    ("others", "soon_s", "share"),
    [
        (0, 3600.0, pauses._ASKING_AGAIN_SHARE),
        (pauses._PROMPT_OWNERS - 1, 3600.0, pauses._ASKING_AGAIN_SHARE),
        (pauses._PROMPT_OWNERS, 3600.0, pauses._AWAKE_SHARE),
        (0, 0.0, pauses._AWAKE_SHARE),
    ],
)
def test_who_comes_again_soon_is_waited_for_but_not_one_of_many(
    monkeypatch: pytest.MonkeyPatch, others: int, soon_s: float, share: float
) -> None:
    monkeypatch.setattr(pauses, "_ONE_AFTER_THE_OTHER_S", soon_s)
    monkeypatch.setattr(pauses, "_ASKING_AGAIN_S", 3600.0)
    after = AfterBunch(refusals=0)
    for name in (b"modest", *(b"other %d" % n for n in range(others)), b"modest"):
        after.pauses.note_prompt_call(Owner("", name))
    assert after.wanted(after.began_after, 0.8 * share, taken_in=1, awake=True)
    assert not after.wanted(after.began_before, 2 * share, taken_in=1, awake=True)


def test_who_came_last_is_remembered_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "_ONE_AFTER_THE_OTHER_S", 3600.0)
    monkeypatch.setattr(pauses, "_ASKING_AGAIN_S", 0.0)
    after = AfterBunch(refusals=0)
    others = [b"other %d" % n for n in range(pauses._PROMPT_OWNERS)]
    for name in (b"modest", *others[:2], b"modest", *others[2:]):
        after.pauses.note_prompt_call(Owner("", name))
    monkeypatch.setattr(pauses, "_ASKING_AGAIN_S", 3600.0)
    after.pauses.note_prompt_call(Owner("", b"modest"))
    assert after.wanted(after.began_after, 0.8, taken_in=1, awake=True)


def test_in_a_flood_nobody_comes_while_a_bunch_runs_and_a_few_do_after_it() -> None:
    inlet = Inlet()
    bunches = Bunches()
    flooded = Pauses(bunches, inlet)
    flooded.begin_bunch(is_flooded=True)
    assert inlet.used_up

    async def wait() -> None:
        flooded.wait(lambda: None, awake=False)

    asyncio.run(wait())
    assert not inlet.used_up
    flooded.begin_bunch(is_flooded=False)
    assert not inlet.used_up


def test_how_often_calls_start_is_measured_while_others_wait() -> None:
    bunches = Bunches()
    at_first = bunches.start_interval_s
    for n in range(100):
        bunches.end(n * 1.0, kept_waiting=n > 90)
        bunches.begin(n * 1.0, 4)
        if n == 90:
            assert bunches.start_interval_s == at_first
    assert 0.2 < bunches.start_interval_s <= 0.25
