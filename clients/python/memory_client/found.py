"""Answers that are a list or a number, with facts about the whole answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self, TypeVar

from memory_client.models import Degradation

T = TypeVar("T")


class Found(list[T]):
    """The entries of all pages of an answer."""

    degraded: tuple[Degradation, ...]
    """What the server could not do for this answer. Empty: it did everything."""
    revision: int
    """Revision of the namespace that the answer reflects."""

    def __init__(
        self, entries: Iterable[T] = (), *, degraded: tuple[Degradation, ...] = (), revision: int = 0
    ) -> None:
        super().__init__(entries)
        self.degraded = degraded
        self.revision = revision


class Deleted(int):
    """The number that a deletion returns, with the number of items that were removed beside those named."""

    derived_count: int
    """The number of further items that were removed because they were made only from the others."""

    def __new__(cls, number: int = 0, derived_count: int = 0) -> Self:
        """Return a number with the count of derived items."""
        made = super().__new__(cls, number)
        made.derived_count = derived_count
        return made
