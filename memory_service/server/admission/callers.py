"""The owner of a call, and rate limits per caller."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from memory_service.namespaces import NAME_BYTES_MAX
from memory_service.runtime.caller import Caller, Holder, Owner

_LOOKED_AT = 2
"""Buckets checked per call: one more than a call can add, so that idle ones are removed.

Doubled: a call costs slightly more.
"""
_WAIT_MAX_S = 1.0
"""Doubled: more of many refused calls get distinct retry times, and callers wait for up to 2 s."""


def owner_of(raw: bytes, caller: Caller) -> Owner:
    """Return the owner of a request by its first bytes, without decoding it: it may be refused.

    The namespace is the first field of every request that has one. Requests of a client that writes fields in
    another order share one queue per caller.
    """
    if len(raw) < 2 or raw[0] != 0x0A:
        return Owner(caller.name, b"")
    # The length is a varint; of two bytes above 127.
    if raw[1] < 128:
        return Owner(caller.name, raw[2 : 2 + raw[1]])
    length = raw[1] - 128 + 128 * raw[2] if len(raw) > 2 else 0
    # No namespace is longer.
    return Owner(caller.name, raw[3 : 3 + length] if length <= NAME_BYTES_MAX else b"")


@dataclass(slots=True)
class _Bucket:
    tokens: float
    called_s: float
    due_s: float
    """When the last refused call may be retried."""


class CallRates:
    """A token bucket per holder: `per_s` tokens are added per second, and as many fit."""

    def __init__(self, per_s: int) -> None:
        self.per_s = per_s
        # Latest caller last.
        self._buckets: dict[Holder, _Bucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, holder: Holder, now_s: float) -> float:
        """Take a token for a call. Return 0, or the seconds until there is one for it, at most 1.

        Several refused calls get different times, so that they do not all retry for one token.
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
        """Remove callers whose buckets are full again and that have no reserved retry times."""
        for holder, bucket in list(itertools.islice(self._buckets.items(), _LOOKED_AT)):
            if bucket.called_s <= now_s - max(1.0, _WAIT_MAX_S):
                del self._buckets[holder]
