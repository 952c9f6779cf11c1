"""The server's clock, for timestamps and expiry. Nothing is ordered by it.

It follows the machine's clock. If that is set while the server runs, by mistake or as a correction, this
clock continues steadily: it never goes back, and closes the gap so slowly that an entry with a time to live
of an hour expires at most six minutes early. At startup the server trusts the machine's clock.

Credentials use the stricter `latest_s`: once expired by the machine's clock, they stay expired.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from memory_service.runtime.event_log import EventLog

_STEP_NS_MAX = 1_000_000_000
"""A gap up to this is not a jump: the clock follows at once, or waits for the machine's clock."""
_CLOSED_SHARE = 10
"""A gap is closed by one part in this many of the time that passes."""
_log = EventLog(__name__)


def _steady_ns() -> int:
    # Unlike CLOCK_MONOTONIC it also runs while the machine sleeps, so that sleep delays no expiry.
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Clock:
    """Nanoseconds since the Unix epoch, which never go back and never jump. Thread-safe."""

    def __init__(
        self, wall_ns: Callable[[], int] = time.time_ns, steady_ns: Callable[[], int] = _steady_ns
    ) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._now_ns = wall_ns()
        self._at_ns = steady_ns()
        # The latest time that the machine showed after a jump.
        self._shown_ns = self._now_ns
        self._jumped = False
        self._lock = Lock()

    def now_ns(self) -> int:
        """Return the current time."""
        with self._lock:
            at_ns = self._steady_ns()
            passed_ns, self._at_ns = at_ns - self._at_ns, at_ns
            wall_ns = self._wall_ns()
            gap_ns = wall_ns - (self._now_ns + passed_ns)
            jumped = abs(gap_ns) > _STEP_NS_MAX
            if jumped:
                closed_ns = passed_ns // _CLOSED_SHARE
                self._now_ns += passed_ns + (closed_ns if gap_ns > 0 else -closed_ns)
                self._shown_ns = max(self._shown_ns, wall_ns)
            else:
                self._now_ns = max(self._now_ns, wall_ns)
            if jumped and not self._jumped:
                _log.warning("clock_jumped", by_s=gap_ns / 1e9)
            self._jumped = jumped
            return self._now_ns

    def latest_ns(self) -> int:
        """Return the latest time that this clock, or the machine's when it was read, has shown."""
        return max(self.now_ns(), self._shown_ns)


_CLOCK = Clock()


def now_us() -> int:
    """Return the current time in microseconds since the Unix epoch."""
    return _CLOCK.now_ns() // 1000


def latest_s() -> float:
    """Return the time by which credentials expire, in seconds since the Unix epoch.

    It jumps ahead with the machine's clock but does not go back with it, so expired credentials stay expired.
    """
    return _CLOCK.latest_ns() / 1e9
