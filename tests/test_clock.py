"""The server's clock runs steadily, whatever the machine's clock does."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.runtime.clock import Clock

SECOND = 1_000_000_000
DAY = 86_400 * SECOND


class Machine:
    """A machine whose clock the test sets."""

    def __init__(self) -> None:
        self.wall_ns = 20_000 * DAY
        self.steady_ns = 5 * DAY
        self.clock = Clock(lambda: self.wall_ns, lambda: self.steady_ns)

    def go_on(self, ns: int) -> None:
        self.wall_ns += ns
        self.steady_ns += ns


def test_a_clock_that_is_never_set_shows_the_machines_time() -> None:
    machine = Machine()
    for _ in range(5):
        machine.go_on(DAY)
        assert machine.clock.now_ns() == machine.wall_ns


def test_a_small_gap_is_closed_at_once_but_never_backwards() -> None:
    machine = Machine()
    machine.wall_ns += SECOND // 2
    assert machine.clock.now_ns() == machine.wall_ns
    before = machine.wall_ns
    machine.wall_ns -= SECOND // 2
    assert machine.clock.now_ns() == before
    machine.go_on(SECOND)
    assert machine.clock.now_ns() == machine.wall_ns


def test_a_jump_is_followed_slowly_until_it_is_caught_up_with() -> None:
    for jump in (DAY, -DAY):
        machine = Machine()
        began = machine.clock.now_ns()
        machine.wall_ns += jump
        assert machine.clock.now_ns() == began
        machine.go_on(10 * SECOND)
        assert machine.clock.now_ns() - began == (11 if jump > 0 else 9) * SECOND
        for _ in range(11 * 24):
            machine.go_on(DAY // 24)
            machine.clock.now_ns()
        assert machine.clock.now_ns() == machine.wall_ns


def test_a_gap_is_closed_also_by_a_server_that_asks_all_the_time() -> None:
    machine = Machine()
    began = machine.clock.now_ns()
    machine.wall_ns += DAY
    for _ in range(100_000):
        machine.go_on(1000)
        machine.clock.now_ns()
    assert machine.clock.now_ns() - began == 110_000 * 1000


def test_what_has_expired_by_the_machine_has_expired_for_good() -> None:
    machine = Machine()
    machine.wall_ns += DAY
    ahead = machine.wall_ns
    assert machine.clock.latest_ns() == ahead
    machine.wall_ns -= 3 * DAY
    machine.go_on(SECOND)
    assert machine.clock.latest_ns() == ahead
    # It does not stand still until the machine's clock has caught up either: the server's own clock runs on.
    machine.go_on(2 * DAY)
    assert machine.clock.latest_ns() > ahead


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10 * SECOND), st.integers(-2 * DAY, 2 * DAY)), max_size=30))
def test_the_time_of_credentials_never_goes_back_and_is_never_behind(moves: list[tuple[int, int]]) -> None:
    machine = Machine()
    before = machine.clock.latest_ns()
    for passed, jump in moves:
        machine.go_on(passed)
        machine.wall_ns += jump
        latest = machine.clock.latest_ns()
        assert latest >= max(before, machine.wall_ns, machine.clock.now_ns())
        before = latest


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10 * SECOND), st.integers(-2 * DAY, 2 * DAY)), max_size=30))
def test_whatever_happens_it_never_goes_back_and_never_leaps(moves: list[tuple[int, int]]) -> None:
    machine = Machine()
    before = machine.clock.now_ns()
    for passed, jump in moves:
        machine.go_on(passed)
        machine.wall_ns += jump
        now = machine.clock.now_ns()
        assert 0 <= now - before <= passed + passed // 10 + SECOND
        before = now
