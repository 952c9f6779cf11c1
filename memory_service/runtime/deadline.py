"""How long the caller of the present call waits for its answer.

It belongs to the call and not to what is asked, so it goes with the call's context and not through the
arguments of everything in between.
"""

from __future__ import annotations

import time
from contextvars import ContextVar

_END: ContextVar[float | None] = ContextVar("deadline", default=None)


def set_remaining_s(seconds: float | None) -> None:
    """Note how long the caller of this call waits from now on; None: for ever."""
    _END.set(None if seconds is None else time.monotonic() + seconds)


def remaining_s() -> float | None:
    """Return how long the caller still waits; None: for ever, or nobody does."""
    end = _END.get()
    return None if end is None else max(end - time.monotonic(), 0.0)
