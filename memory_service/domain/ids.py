"""Ids that the server makes."""

from __future__ import annotations

import os

_RANDOM_BYTES = 9
# Drawn from the system many at a time: asking it lets other threads go on, which takes longer than the rest.
_drawn: list[str] = []


def new_id(now_us: int) -> str:
    """Return an id that is unique, and sorts by the time it was made: indexes grow at their end."""
    try:
        random = _drawn.pop()
    except IndexError:
        _drawn.extend(os.urandom(_RANDOM_BYTES * 256).hex("-", _RANDOM_BYTES).split("-"))
        random = _drawn.pop()
    return f"{now_us:014x}{random}"
