"""What counts of several turns in which something and its reference were measured, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def middle(turns: Sequence[T], ratio: Callable[[T], float]) -> T:
    """The turn whose ratio is the median.

    A machine that others use is now fast and now slow: within a turn of some seconds that falls on both, and
    the best of each list would be of two moments.
    """
    return sorted(turns, key=ratio)[len(turns) // 2]
