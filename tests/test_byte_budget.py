"""The budget of bytes: one caller's maximum, the rest for others, and that every byte is returned."""

from __future__ import annotations

import random

import pytest

from memory_service.errors import Overloaded
from memory_service.limits import KIB, MIB
from memory_service.runtime.byte_budget import ByteBudget, Held


def filled(budget: ByteBudget, caller: str, size: int = MIB) -> Held:
    held = budget.open(caller)
    while held.try_take(size):
        pass
    return held


@pytest.mark.parametrize("callers", [1, 2, 5, 9])
def test_callers_that_take_all_they_get_leave_as_much_for_the_next_as_each_has(callers: int) -> None:
    budget = ByteBudget(90 * MIB)
    held = [budget.open(f"greedy-{number}") for number in range(callers)]
    for _ in range(90):
        for each in held:
            each.try_take(MIB)
    share = 90 // (callers + 1)
    assert {each.size for each in held} == {share * MIB}
    assert filled(budget, "next").size == (90 - callers * share) // 2 * MIB


def test_many_calls_of_one_caller_get_no_more_than_one() -> None:
    budget = ByteBudget(100 * MIB)
    assert sum(filled(budget, "greedy").size for _ in range(10)) == 50 * MIB


def test_small_things_of_a_caller_are_let_in_beside_its_large_ones_and_leave_a_quarter_to_others() -> None:
    budget = ByteBudget(100 * MIB)
    filled(budget, "greedy")
    assert filled(budget, "greedy", 64 * KIB).size == 25 * MIB
    assert filled(budget, "modest").size == 12 * MIB
    assert filled(budget, "another", 64 * KIB).size > 9 * MIB


def test_what_does_not_fit_is_refused_whole_with_the_limit_in_the_error() -> None:
    budget = ByteBudget(100 * MIB)
    held = budget.open("a")
    held.take(40 * MIB)
    with pytest.raises(Overloaded) as refused:
        held.take(11 * MIB)
    assert (refused.value.metadata["limit_name"], refused.value.metadata["limit"]) == (
        "held_bytes_max",
        str(100 * MIB),
    )
    assert (held.size, budget.used) == (40 * MIB, 40 * MIB)
    held.take(10 * MIB)


def test_what_cannot_be_refused_is_counted_and_keeps_others_of_its_caller_out() -> None:
    budget = ByteBudget(100 * MIB)
    held = budget.open("a")
    held.take_anyway(80 * MIB)
    assert not budget.open("a").try_take(1 * MIB)
    assert budget.open("b").try_take(10 * MIB)
    assert budget.used == 90 * MIB


def test_nothing_stays_taken_when_all_calls_have_ended() -> None:
    budget, random_ = ByteBudget(1000), random.Random(7)
    calls = [budget.open(random_.choice("abc")) for _ in range(50)]
    for _ in range(1000):
        call = random_.choice(calls)
        if call.try_take(random_.randrange(50)):
            call.give(random_.randrange(call.size + 1))
        assert budget.used == sum(call.size for call in calls) <= 1000
        assert all(budget.held_by(name) == sum(c.size for c in calls if c.caller == name) for name in "abc")
    for call in [*calls, *calls]:
        call.close()
    assert budget.used == 0
    assert budget._held_by == {}
