"""What a search found: a list, and what is known about the whole of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from memory_client.models import Degradation

T = TypeVar("T")


class Found(list[T]):
    """Entries of an answer, all its pages together."""

    degraded: tuple[Degradation, ...]
    """What the server could not do for this answer. Empty: nothing."""
    revision: int
    """Revision of the namespace that the answer reflects."""

    def __init__(
        self, entries: Iterable[T] = (), *, degraded: tuple[Degradation, ...] = (), revision: int = 0
    ) -> None:
        super().__init__(entries)
        self.degraded = degraded
        self.revision = revision
