"""A cap on what a model costs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from memory_service.decisions import FailureReason, Usage
from memory_service.llms.base import LlmFailed

_WINDOW_S = 60.0


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
