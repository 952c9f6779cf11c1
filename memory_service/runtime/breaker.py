"""A circuit breaker: what fails again and again is left alone for a while."""

from __future__ import annotations

from collections.abc import Callable


class Breaker:
    """Lets nobody ask for a while after too many failures in a row; then one, to see how it is."""

    def __init__(self, failures_max: int, pause_s: float, clock: Callable[[], float]) -> None:
        self._failures_max = failures_max
        self._pause_s = pause_s
        self._clock = clock
        self._failures = 0
        self._paused_until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether nobody is to ask now."""
        return self._failures >= self._failures_max and self._clock() < self._paused_until

    def admit(self) -> bool:
        """Whether to ask now. Who is admitted tells how it went."""
        if self._failures < self._failures_max:
            return True
        if self.is_open:
            return False
        # Others wait while this one tries, but not for ever: it may never tell.
        self._paused_until = self._clock() + self._pause_s
        return True

    def succeeded(self) -> None:
        """Note an answer."""
        self._failures = 0

    def failed(self) -> None:
        """Note a failure."""
        self._failures += 1
        if self._failures >= self._failures_max:
            self._paused_until = self._clock() + self._pause_s
