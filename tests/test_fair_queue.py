"""Queues that take turns: the next entry, the entries ahead, and those that give way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_service.runtime.fair_queue import FairQueue

Owner = tuple[str, str]


def filled(*owners: Owner) -> FairQueue[str, tuple[Owner, int]]:
    """Return a queue in which owners put entries in this order: the owner and a number."""
    queue = FairQueue[str, tuple[Owner, int]]()
    for number, owner in enumerate(owners):
        queue.put(owner, (owner, number))
    return queue


def taken(queue: FairQueue[str, tuple[Owner, int]]) -> list[tuple[Owner, int]]:
    """Return all entries in the order in which they are taken."""
    found = []
    while (waiting := queue.take()) is not None:
        found.append(waiting)
    return found


A1, A2, A3, B1 = ("a", "1"), ("a", "2"), ("a", "3"), ("b", "1")
OWNERS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("123")), max_size=40)


def test_callers_take_turns_and_so_do_the_namespaces_of_each() -> None:
    order = [owner for owner, _ in taken(filled(A1, A1, A1, A2, A2, B1, B1, B1))]
    assert order == [A1, B1, A2, B1, A1, B1, A2, A1]


def test_who_may_not_start_something_is_passed_over() -> None:
    queue = filled(A1, A2, B1)
    assert queue.take(lambda caller, namespace: (caller, namespace) == A2) == (A2, 1)
    assert queue.take(lambda caller, namespace: caller == "b") == (B1, 2)
    assert queue.take(lambda caller, namespace: False) is None
    assert taken(queue) == [(A1, 0)]


@given(OWNERS)
def test_nothing_is_lost_and_each_owner_stays_in_order(owners: list[Owner]) -> None:
    queue = filled(*owners)
    assert len(queue) == len(list(queue)) == len(owners)
    found = taken(queue)
    for owner in set(owners):
        assert [n for whose, n in found if whose == owner] == [n for n, o in enumerate(owners) if o == owner]
    assert sorted(n for _, n in found) == list(range(len(owners)))
    assert len(queue) == 0


@given(OWNERS, st.tuples(st.sampled_from("abc"), st.sampled_from("123")))
def test_no_more_is_taken_before_it_than_is_ahead(owners: list[Owner], owner: Owner) -> None:
    queue = filled(*owners)
    ahead = queue.ahead_of(owner)
    queue.put(owner, (owner, -1))
    assert [number for _, number in taken(queue)].index(-1) <= ahead


def test_what_is_ahead_is_not_all_that_waits() -> None:
    assert filled(*[A1] * 20, *[B1] * 2).ahead_of(("c", "1")) == 2
    assert filled(*[A1] * 20, *[A2] * 2).ahead_of(A3) == 2
    assert filled(*[A1] * 20, *[A2] * 2).ahead_of(A2) == 6


def test_the_longest_queue_gives_way() -> None:
    queue = filled(*[A1] * 5, *[A2] * 2)
    assert queue.push_out_for(A3) == (A1, 4)
    assert queue.push_out_for(A2) == (A1, 3)
    # It would then have no more than the other owner.
    assert queue.push_out_for(A2) is None
    assert len(queue) == 5


def test_the_caller_with_most_gives_way_however_it_spreads_that() -> None:
    queue = filled(*(("a", str(number)) for number in range(6)), B1)
    assert queue.push_out_for(B1) == (("a", "5"), 5)
    assert len(queue) == 6
    # An owner with many entries does not displace others.
    assert queue.push_out_for(("a", "new")) is None
    assert len(taken(queue)) == 6


def test_what_is_removed_is_gone() -> None:
    queue = filled(A1, A2, A2, B1)
    for owner, number in ((A1, 0), (B1, 3), (B1, 4), (A2, 1)):
        queue.remove(owner, (owner, number))
    assert len(queue) == 1
    assert taken(queue) == [(A2, 2)]


def test_what_is_put_first_is_taken_before_what_its_owner_has() -> None:
    queue = filled(A1, A1, B1)
    queue.put(A1, (A1, -1), first=True)
    assert taken(queue) == [(A1, -1), (B1, 2), (A1, 0), (A1, 1)]
