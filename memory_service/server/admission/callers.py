"""Whose a call is, how many calls a second each caller makes, and which of them are too many."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from memory_service.runtime.caller import Caller, Holder, Owner

_LOOKED_AT = 2
"""Buckets for each call: one more than it may add, so idle ones go. Doubled, a call costs a little more."""
_WAIT_MAX_S = 1.0
"""Doubled, of many refused calls more have a time of their own, and callers wait for up to 2 s."""
# As a varint: the only length of a namespace that takes two bytes.
_LENGTH_128 = b"\x80\x01"


def owner_of(raw: bytes, caller: Caller) -> Owner:
    """Return whose a request is, by its first bytes: one that may be refused is not worth decoding.

    The namespace is the first field of every request that has one. A client that writes its fields in
    another order waits in the queue of all those of its caller that do.
    """
    if len(raw) < 2 or raw[0] != 0x0A:
        return Owner(caller.name, b"")
    if raw[1:3] == _LENGTH_128:
        return Owner(caller.name, raw[3 : 3 + 128])  # No namespace is longer.
    return Owner(caller.name, raw[2 : 2 + raw[1]] if raw[1] < 128 else b"")


@dataclass(slots=True)
class _Bucket:
    tokens: float
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
