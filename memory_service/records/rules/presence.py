"""Whether a stored entry exists for a write, and what happens to it when the write replaces it."""

from __future__ import annotations

import enum
from typing import Protocol, TypeVar


class Found(Protocol):
    """A stored item or state, expired or not; times are in microseconds."""

    @property
    def expire_us(self) -> int | None: ...


F = TypeVar("F", bound=Found)


def live(found: F | None, at_us: int) -> F | None:
    """Return the stored entry unless it has expired by then."""
    if found is None or (found.expire_us is not None and found.expire_us <= at_us):
        return None
    return found


class Before(enum.Enum):
    """What happens to an existing entry that a write replaces."""

    NOTHING = 0
    """Nothing exists."""
    EXPIRE = 1
    """It is removed as expired, and the write creates a new entry."""
    KEEP = 2
    """It is kept as a version."""
    FORGET = 3
    """No versions are kept: the answers that mention it are forgotten with it."""


def before(found: Found | None, at_us: int, *, keeps_history: bool) -> Before:
    """Return what happens to the entry that a write at this time replaces."""
    if found is None:
        return Before.NOTHING
    if live(found, at_us) is None:
        return Before.EXPIRE
    return Before.KEEP if keeps_history else Before.FORGET
