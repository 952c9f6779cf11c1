"""How many calls a second each caller makes, and which of them are too many."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from memory_service.caller import Holder

# One more than each call may add: what is idle is soon gone, and no call pays for all of it.
_LOOKED_AT = 2
_WAIT_MAX_S = 1.0


@dataclass(slots=True)
class _Bucket:
    tokens: float
    """How many were left when the last call came."""
    called_s: float
    due_s: float
    """When the last of those that were refused may come again."""


class CallRates:
    """A bucket of tokens for each holder: `per_s` of them come a second, and so many have room in it."""

    def __init__(self, per_s: int) -> None:
        self.per_s = per_s
        # Who called last is at the end.
        self._buckets: dict[Holder, _Bucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, holder: Holder, now_s: float) -> float:
        """Take a token for a call. Return 0, or in how many seconds there is one for it, at most 1.

        Of several that are refused each is given a time of its own: they do not all come again for one token.
        """
        bucket = self._buckets.pop(holder, None) or _Bucket(self.per_s, now_s, now_s)
        self._buckets[holder] = bucket
        bucket.tokens = min(self.per_s, bucket.tokens + (now_s - bucket.called_s) * self.per_s)
        bucket.called_s = now_s
        self._forget_full(now_s)
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return 0.0
        next_s = now_s + (1 - bucket.tokens) / self.per_s
        bucket.due_s = min(max(next_s, bucket.due_s + 1 / self.per_s), now_s + _WAIT_MAX_S)
        return bucket.due_s - now_s

    def _forget_full(self, now_s: float) -> None:
        """Forget who has not called for so long that their buckets are full, and nobody's time is ahead."""
        for holder, bucket in list(itertools.islice(self._buckets.items(), _LOOKED_AT)):
            if bucket.called_s <= now_s - max(1.0, _WAIT_MAX_S):
                del self._buckets[holder]
