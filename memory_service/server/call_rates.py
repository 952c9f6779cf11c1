"""How many calls a second each caller makes, and which of them are too many."""

from __future__ import annotations

import itertools

from memory_service.caller import Holder

# One more than each call may add: what is idle is soon gone, and no call pays for all of it.
_LOOKED_AT = 2


class CallRates:
    """A bucket of tokens for each holder: `per_s` of them come a second, and so many have room in it."""

    def __init__(self, per_s: int) -> None:
        self.per_s = per_s
        # How many tokens were left at which time, who called last at the end.
        self._buckets: dict[Holder, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, holder: Holder, now_s: float) -> float:
        """Take a token for a call. Return 0, or in how many seconds there is one."""
        tokens, since_s = self._buckets.pop(holder, (self.per_s, now_s))
        tokens = min(self.per_s, tokens + (now_s - since_s) * self.per_s)
        wait_s = 0.0 if tokens >= 1 else (1 - tokens) / self.per_s
        self._buckets[holder] = (tokens if wait_s else tokens - 1, now_s)
        self._forget_full(now_s)
        return wait_s

    def _forget_full(self, now_s: float) -> None:
        """Forget who has not called for a second: their buckets are as those of somebody new."""
        for holder, (_, since_s) in list(itertools.islice(self._buckets.items(), _LOOKED_AT)):
            if since_s <= now_s - 1:
                del self._buckets[holder]
