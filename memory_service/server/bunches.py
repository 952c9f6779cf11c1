"""What bunches of calls take, and so how many calls the next one may have."""

from __future__ import annotations

import time

TOGETHER_MAX = 32
# Health is answered between two bunches, and who comes next waits for the one that has begun. The larger,
# the more is shared in it: where somebody has few calls it is small.
_BUNCH_S = 0.008
SMALL_BUNCH_S = 0.0005
# Of what a call costs, so much is to take it in.
_INTAKE_PART = 0.25
# For so long what the loop did counts as the work of the last bunch.
_RECENT_S = 0.25
_COUNTED_BUSY_S = 0.05
# What a call costs until it is known.
FIRST_CALL_S = 0.0001
_LEAST_CALL_S = 1e-6
_SMOOTHING = 0.3


class Bunches:
    """Those of one event loop, one after the other. Times are those of `time.perf_counter`."""

    def __init__(self) -> None:
        self.opened_at = 0.0
        self.count = 1
        """Calls of the last bunch."""
        self.taken_in = 0
        """Calls that have come since it started."""
        self.start_interval_s = FIRST_CALL_S
        """Seconds from one start of a call to the next, where calls wait."""
        self._call_cpu_s = FIRST_CALL_S
        self._cpu_at_opening = 0.0

    def end(self, now: float, *, kept_waiting: bool) -> None:
        """Measure the last bunch. `kept_waiting`: there were more calls all the time."""
        since_s = now - self.opened_at
        if kept_waiting:
            self.start_interval_s += _SMOOTHING * (since_s / self.count - self.start_interval_s)
        cpu_now = time.thread_time()
        if since_s < _RECENT_S:
            cpu_s = (cpu_now - self._cpu_at_opening) / (self.count + _INTAKE_PART * self.taken_in)
            self._call_cpu_s += _SMOOTHING * (cpu_s - self._call_cpu_s)
        self._cpu_at_opening = cpu_now

    def begin(self, now: float, count: int) -> None:
        """Note that so many calls start. Follows an `end`."""
        self.opened_at, self.count, self.taken_in = now, max(count, 1), 0

    def busy_s(self) -> float:
        """Return for how long the loop has been busy since the last bunch started."""
        # What it did since then, be it hours ago, is no reason to wait for long.
        return min(time.thread_time() - self._cpu_at_opening, _COUNTED_BUSY_S)

    def most(self, *, small: bool, owners: int) -> int:
        """Return how many calls the next one may have; `owners`: so many take turns."""
        call_s = max(self._call_cpu_s, _LEAST_CALL_S)
        most = max(1, min(TOGETHER_MAX, int(_BUNCH_S / call_s)))
        # Where many take turns, who comes next waits for one of each in any case.
        return min(most, max(1, int(SMALL_BUNCH_S / call_s), owners)) if small else most
