"""Selects among several turns, each measuring something and its reference one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def middle(turns: Sequence[T], ratio: Callable[[T], float]) -> T:
    """Return the turn with the median ratio.

    The speed of a shared machine varies: within a turn of some seconds this affects both, whereas the best of
    each list would come from two different moments.
    """
    return sorted(turns, key=ratio)[len(turns) // 2]
