"""A limit on the cost of a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from memory_service.decisions import FailureReason, Usage
from memory_service.llms.base import LlmFailed

_WINDOW_S = 60.0


class Reservation:
    """Tokens counted as used since `time`."""

    def __init__(self, time: float, tokens: int) -> None:
        self.time = time
        self.tokens = tokens


class TokenBudget:
    """Limits the tokens of the last minute; 0: no limit. `whose` names the budget in messages."""

    def __init__(self, tokens_per_minute_max: int, clock: Callable[[], float], whose: str) -> None:
        self._max = tokens_per_minute_max
        self._clock = clock
        self._whose = whose
        self._used: deque[Reservation] = deque()
        self._sum = 0

    def require(self, tokens: int, usage: Usage) -> None:
        """Raise LLM_BUDGET_EXCEEDED, with the `usage` so far, if so many more tokens exceed the limit."""
        while self._used and self._used[0].time <= self._clock() - _WINDOW_S:
            self.settle(self._used.popleft(), 0)
        if self._max and self._sum + tokens > self._max:
            message = f"the limit of {self._max} tokens per minute of {self._whose} is reached"
            raise LlmFailed(FailureReason.LLM_BUDGET_EXCEEDED, message, usage)

    def reserve(self, tokens: int) -> Reservation:
        """Count an estimate; `settle` it once the actual number is known."""
        reservation = Reservation(self._clock(), tokens)
        self._used.append(reservation)
        self._sum += tokens
        return reservation

    def settle(self, reservation: Reservation, tokens: int) -> None:
        """Replace the number of tokens; a reservation older than a minute counts none."""
        if reservation.time > self._clock() - _WINDOW_S or not tokens:
            self._sum += tokens - reservation.tokens
            reservation.tokens = tokens
