"""How each caller stands with a language model: what it spent, how its questions fared.

All of it is the caller's own: no other notices what one spends, or does to the model by what it asks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from memory_service.llms.budget import TokenBudget
from memory_service.runtime.breaker import Breaker
from memory_service.runtime.caller import Holder

FAILURES_MAX = 5
PAUSE_S = 30.0
# Some kilobytes each. Twice as many take twice the memory; half as many are forgotten earlier, and begin
# with an unspent budget: the cap of all callers together bounds what that lets them spend.
_CALLERS_MAX = 4096


class Standing:
    """How one caller stands with the model."""

    def __init__(self, tokens_per_minute_max: int, clock: Callable[[], float]) -> None:
        self.breaker = Breaker(FAILURES_MAX, PAUSE_S, clock)
        self.budget = TokenBudget(tokens_per_minute_max, clock, "this caller")
        self.refused: frozenset[str] = frozenset()
        """Parameters that the model's server did not take with this caller's questions."""


class Standings:
    """The standing of each caller that asked lately; it is kept from the first question that is sent."""

    def __init__(self, tokens_per_minute_max: int, clock: Callable[[], float]) -> None:
        self._tokens_per_minute_max = tokens_per_minute_max
        self._clock = clock
        self._of: OrderedDict[Holder, Standing] = OrderedDict()

    def find(self, holder: Holder) -> Standing:
        """Return how a caller stands; a new one is not kept yet."""
        return self._of.get(holder) or Standing(self._tokens_per_minute_max, self._clock)

    def keep(self, holder: Holder, standing: Standing) -> None:
        """Keep how a caller stands; the one that asked the least recently may be forgotten for it."""
        self._of[holder] = standing
        self._of.move_to_end(holder)
        if len(self._of) > _CALLERS_MAX:
            self._of.popitem(last=False)
