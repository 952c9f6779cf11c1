"""Two brakes: one for a model that fails, one for a model that costs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from memory_service.decisions import FailureReason, Usage
from memory_service.llms.base import LlmFailed

_WINDOW_S = 60.0


class Breaker:
    """Lets nobody ask for a while after too many failures in a row; then one, to see how it is."""

    def __init__(self, failures_max: int, pause_s: float, clock: Callable[[], float]) -> None:
        self._failures_max = failures_max
        self._pause_s = pause_s
        self._clock = clock
        self._failures = 0
        self._paused_until = 0.0

    def admit(self) -> bool:
        """Whether to ask now. Who is admitted tells how it went."""
        if self._failures < self._failures_max:
            return True
        if self._clock() < self._paused_until:
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


class Reservation:
    """Tokens that are counted as used since `time`."""

    def __init__(self, time: float, tokens: int) -> None:
        self.time = time
        self.tokens = tokens


class TokenBudget:
    """Counts the tokens of the last minute against a cap; 0 is no cap."""

    def __init__(self, tokens_per_minute_max: int, clock: Callable[[], float]) -> None:
        self._max = tokens_per_minute_max
        self._clock = clock
        self._used: deque[Reservation] = deque()

    def require(self, tokens: int, usage: Usage) -> None:
        """Raises LLM_BUDGET_EXCEEDED, with what was spent so far, where so many more are too many."""
        while self._used and self._used[0].time <= self._clock() - _WINDOW_S:
            self._used.popleft()
        if self._max and sum(each.tokens for each in self._used) + tokens > self._max:
            message = f"the cap of {self._max} tokens per minute is reached"
            raise LlmFailed(FailureReason.LLM_BUDGET_EXCEEDED, message, usage)

    def reserve(self, tokens: int) -> Reservation:
        """Count an estimate; set its `tokens` when the true number is known."""
        self._used.append(Reservation(self._clock(), tokens))
        return self._used[-1]
