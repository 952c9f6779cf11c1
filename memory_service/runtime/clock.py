"""The server's clock, for times that people read and for expiry. Nothing is ordered by it.

It shows the time of the machine. But where that is set anew while the server runs, by mistake or to put it
right, the clock goes on evenly: it never goes back, and closes the gap so slowly that what was to live for an
hour ends at most six minutes early. A server that starts believes the machine.

Credentials have a stricter one, `latest_s`: what has expired by the machine has expired.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

import structlog

_STEP_NS_MAX = 1_000_000_000
"""A gap up to this is no jump: the clock follows at once, or waits for the machine's."""
_CLOSED_SHARE = 10
"""Of the time that passes, one part in so many is used to close a gap."""
_log = structlog.get_logger(__name__)


def _steady_ns() -> int:
    # Unlike CLOCK_MONOTONIC it counts while the machine sleeps: nothing outlives its time by that.
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Clock:
    """Nanoseconds since the Unix epoch that never go back and never leap. For any thread."""

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
        """Return the present time."""
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
        """Return the latest time that this clock or the machine's has shown to those who looked."""
        return max(self.now_ns(), self._shown_ns)


_CLOCK = Clock()


def now_us() -> int:
    """Return the present time in microseconds since the Unix epoch."""
    return _CLOCK.now_ns() // 1000


def latest_s() -> float:
    """Return the time by which credentials expire, in seconds since the Unix epoch.

    It leaps ahead with the machine's, and does not go back with it: what has expired does not come back.
    """
    return _CLOCK.latest_ns() / 1e9
