"""The wall clock, for times that people read and for expiry. Nothing is ordered by it."""

from __future__ import annotations

import time


def now_us() -> int:
    """Return the present time in microseconds since the Unix epoch."""
    return time.time_ns() // 1000
