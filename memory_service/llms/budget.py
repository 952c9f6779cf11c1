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
    """Counts the tokens of the last minute against a cap; 0 is no cap. `whose` names it in messages."""

    def __init__(self, tokens_per_minute_max: int, clock: Callable[[], float], whose: str) -> None:
        self._max = tokens_per_minute_max
        self._clock = clock
        self._whose = whose
        self._used: deque[Reservation] = deque()
        self._sum = 0

    def require(self, tokens: int, usage: Usage) -> None:
        """Raises LLM_BUDGET_EXCEEDED, with what was spent so far, where so many more are too many."""
        while self._used and self._used[0].time <= self._clock() - _WINDOW_S:
            self.settle(self._used.popleft(), 0)
        if self._max and self._sum + tokens > self._max:
            message = f"the cap of {self._max} tokens per minute of {self._whose} is reached"
            raise LlmFailed(FailureReason.LLM_BUDGET_EXCEEDED, message, usage)

    def reserve(self, tokens: int) -> Reservation:
        """Count an estimate; `settle` it when the true number is known."""
        reservation = Reservation(self._clock(), tokens)
        self._used.append(reservation)
        self._sum += tokens
        return reservation

    def settle(self, reservation: Reservation, tokens: int) -> None:
        """Count another number of tokens instead; none for what is older than a minute."""
        if reservation.time > self._clock() - _WINDOW_S or not tokens:
            self._sum += tokens - reservation.tokens
            reservation.tokens = tokens
