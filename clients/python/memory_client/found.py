"""The entries of an answer: a list with facts about the whole answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

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
