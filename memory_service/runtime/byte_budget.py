"""The memory that callers make the server hold: requests, what is made of them, answers until they are sent.

One budget for all of it. A caller may hold as much as is left over: one that takes all it can get holds half
of the budget, two hold a third each, and the next caller always finds as much as each of them has. So nothing
has to be set per caller, and one that is alone is not held to a small share. With small things it may go on
to three quarters: its ordinary calls are answered beside its large ones. These are the dynamic thresholds of
Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998, with an alpha
of 1 and of 3.

It belongs to the event loop, and is not for several threads.
"""

from __future__ import annotations

from memory_service.errors import Overloaded
from memory_service.limits import KIB

LIMIT_NAME = "held_bytes_max"
_SMALL_BYTES = 256 * KIB
"""An ordinary request or answer. Doubled, a caller can add twice as large ones to its used up share."""
_SMALL_SHARE = 3
"""Of what is left over, for small ones. Doubled, a caller with many of them holds six sevenths of it all."""


class ByteBudget:
    """The bytes that all calls of one server hold."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.used = 0
        # Only of callers that hold something.
        self._held_by: dict[str, int] = {}

    def open(self, caller: str) -> Held:
        """Return what a call of a caller holds: nothing yet."""
        return Held(self, caller)

    def held_by(self, caller: str) -> int:
        """Return how many bytes all calls of a caller hold."""
        return self._held_by.get(caller, 0)

    def has_room(self, caller: str, size: int) -> bool:
        """Return whether a caller may hold more."""
        share = _SMALL_SHARE if size <= _SMALL_BYTES else 1
        return self._held_by.get(caller, 0) + size <= share * (self.bytes_max - self.used - size)

    def add(self, caller: str, size: int) -> None:
        """Count what a caller holds from now on; less, where it is negative."""
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
        """Hold more; return False, and hold no more than before, where there is no room."""
        if not self._budget.has_room(self.caller, size):
            return False
        self.take_anyway(size)
        return True

    def take(self, size: int) -> None:
        """Hold more. Raises Overloaded, and holds no more than before, where there is no room."""
        if not self.try_take(size):
            raise self.overloaded()

    def take_anyway(self, size: int) -> None:
        """Hold more, whatever others hold: for what cannot be refused any more."""
        self.size += size
        self._budget.add(self.caller, size)

    def give(self, size: int) -> None:
        """Hold less."""
        self.take_anyway(-size)

    def close(self) -> None:
        """Hold nothing any more: the call has ended. Once more changes nothing."""
        self.give(self.size)

    def overloaded(self) -> Overloaded:
        """Return the error of a call for which there is no room."""
        return Overloaded(LIMIT_NAME, self._budget.bytes_max)
