"""The deadline of the current call.

It is a context variable, because it belongs to the call rather than to the request, and would otherwise be an
argument of everything in between.
"""

from __future__ import annotations

import time
from contextvars import ContextVar

_END: ContextVar[float | None] = ContextVar("deadline", default=None)


def set_remaining_s(seconds: float | None) -> None:
    """Set how long the caller waits from now on; None: forever."""
    _END.set(None if seconds is None else time.monotonic() + seconds)


def remaining_s() -> float | None:
    """Return how long the caller still waits; None: forever, or there is no caller."""
    end = _END.get()
    return None if end is None else max(end - time.monotonic(), 0.0)
