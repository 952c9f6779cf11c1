"""A circuit breaker, which pauses calls to a service that fails repeatedly."""

from __future__ import annotations

from collections.abc import Callable


class Breaker:
    """Admits no calls for a while after too many failures in a row; then one, as a trial."""

    def __init__(self, failures_max: int, pause_s: float, clock: Callable[[], float]) -> None:
        self._failures_max = failures_max
        self._pause_s = pause_s
        self._clock = clock
        self._failures = 0
        self._paused_until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are paused now."""
        return self._failures >= self._failures_max and self._clock() < self._paused_until

    def admit(self) -> bool:
        """Return whether a call may be made now. An admitted caller must report the outcome."""
        if self._failures < self._failures_max:
            return True
        if self.is_open:
            return False
        # Others wait for the outcome of this trial, but not forever: it may never be reported.
        self._paused_until = self._clock() + self._pause_s
        return True

    def succeeded(self) -> None:
        """Report a success."""
        self._failures = 0

    def failed(self) -> None:
        """Report a failure."""
        self._failures += 1
        if self._failures >= self._failures_max:
            self._paused_until = self._clock() + self._pause_s
