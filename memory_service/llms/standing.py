"""The standing of each caller with a language model: its tokens and failures.

It is separate for each caller, so that no caller affects another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from memory_service.llms.budget import TokenBudget
from memory_service.runtime.breaker import Breaker
from memory_service.runtime.caller import Holder

FAILURES_MAX = 5
PAUSE_S = 30.0
# Some kilobytes each. Doubled, they take twice the memory; halved, callers are forgotten earlier and start
# with a fresh budget: the limit of all callers together bounds the cost of that.
_CALLERS_MAX = 4096


class Standing:
    """The standing of one caller with the model."""

    def __init__(self, tokens_per_minute_max: int, clock: Callable[[], float]) -> None:
        self.breaker = Breaker(FAILURES_MAX, PAUSE_S, clock)
        self.budget = TokenBudget(tokens_per_minute_max, clock, "this caller")
        self.refused: frozenset[str] = frozenset()
        """Parameters that the model's server rejected with this caller's questions."""


class Standings:
    """The standings of recent callers, kept from the first question that is sent."""

    def __init__(self, tokens_per_minute_max: int, clock: Callable[[], float]) -> None:
        self._tokens_per_minute_max = tokens_per_minute_max
        self._clock = clock
        self._of: OrderedDict[Holder, Standing] = OrderedDict()

    def find(self, holder: Holder) -> Standing:
        """Return the standing of a caller; a new one is not kept yet."""
        return self._of.get(holder) or Standing(self._tokens_per_minute_max, self._clock)

    def keep(self, holder: Holder, standing: Standing) -> None:
        """Keep the standing of a caller; the least recent caller may be forgotten."""
        self._of[holder] = standing
        self._of.move_to_end(holder)
        if len(self._of) > _CALLERS_MAX:
            self._of.popitem(last=False)
