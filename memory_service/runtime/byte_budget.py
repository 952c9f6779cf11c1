"""One budget for the memory of all calls: requests, data derived from them, and unsent responses.

A caller may hold as much as remains free: one greedy caller holds half of the budget, two hold a third each,
and the next caller always finds as much as each of them has. So there is no setting per caller, and a lone
caller is not confined to a small share. With small calls it may hold up to three quarters, so that its
ordinary calls are answered beside its large ones. These are the dynamic thresholds of Choudhury and Hahne,
"Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998, with an alpha of 1 and of 3.

Not thread-safe: it belongs to the event loop.
"""

from __future__ import annotations

from memory_service.errors import Overloaded
from memory_service.limits import KIB

LIMIT_NAME = "held_bytes_max"
_SMALL_BYTES = 256 * KIB
"""Size of an ordinary request or response.

Doubled: a caller that has used its share may add requests twice as large.
"""
_SMALL_SHARE = 3
"""Multiple of the free bytes that small calls may hold. Doubled: one caller may hold six sevenths."""


class ByteBudget:
    """The bytes that all calls of one server hold."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.used = 0
        # Has only callers that hold something.
        self._held_by: dict[str, int] = {}

    def open(self, caller: str) -> Held:
        """Return the account of a new call of a caller, which holds nothing yet."""
        return Held(self, caller)

    def held_by(self, caller: str) -> int:
        """Return how many bytes all calls of a caller hold."""
        return self._held_by.get(caller, 0)

    def has_room(self, caller: str, size: int) -> bool:
        """Return whether a caller may hold `size` bytes more."""
        share = _SMALL_SHARE if size <= _SMALL_BYTES else 1
        return self._held_by.get(caller, 0) + size <= share * (self.bytes_max - self.used - size)

    def add(self, caller: str, size: int) -> None:
        """Add to the bytes that a caller holds; a negative size reduces them."""
        self.used += size
        if held := self._held_by.get(caller, 0) + size:
            self._held_by[caller] = held
        else:
            self._held_by.pop(caller, None)


class Held:
    """The bytes that one call holds."""

    __slots__ = ("_budget", "caller", "size")

    def __init__(self, budget: ByteBudget, caller: str) -> None:
        self._budget, self.caller, self.size = budget, caller, 0

    def try_take(self, size: int) -> bool:
        """Hold more, or return False and change nothing if there is no room."""
        if not self._budget.has_room(self.caller, size):
            return False
        self.take_anyway(size)
        return True

    def take(self, size: int) -> None:
        """Hold more. Raises Overloaded, and changes nothing, if there is no room."""
        if not self.try_take(size):
            raise self.overloaded()

    def take_anyway(self, size: int) -> None:
        """Hold more, even without room: for data that can no longer be rejected."""
        self.size += size
        self._budget.add(self.caller, size)

    def give(self, size: int) -> None:
        """Hold less."""
        self.take_anyway(-size)

    def close(self) -> None:
        """Release everything when the call ends. Idempotent."""
        self.give(self.size)

    def overloaded(self) -> Overloaded:
        """Return the error for a call without room."""
        return Overloaded(LIMIT_NAME, self._budget.bytes_max)
