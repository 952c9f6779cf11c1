"""Whether what is found is there for a write, and what becomes of it when the write takes its place."""

from __future__ import annotations

import enum
from typing import Protocol, TypeVar


class Found(Protocol):
    """An item or a state that is kept, expired or not; times are in microseconds."""

    @property
    def expire_us(self) -> int | None: ...


F = TypeVar("F", bound=Found)


def live(found: F | None, at_us: int) -> F | None:
    """Return what is found, unless it has ceased to exist by then."""
    if found is None or (found.expire_us is not None and found.expire_us <= at_us):
        return None
    return found


class Before(enum.Enum):
    """What becomes of what a write finds in its place."""

    NOTHING = 0
    """There is nothing."""
    EXPIRE = 1
    """It is removed as expired, and the write begins anew."""
    KEEP = 2
    """It is kept as a version."""
    FORGET = 3
    """No versions are kept: with it go the answers that tell of it."""


def before(found: Found | None, at_us: int, *, keeps_history: bool) -> Before:
    """Return what becomes of what a write of this time takes the place of."""
    if found is None:
        return Before.NOTHING
    if live(found, at_us) is None:
        return Before.EXPIRE
    return Before.KEEP if keeps_history else Before.FORGET
