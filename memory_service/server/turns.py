"""Calls that wait, each in the queue of whose it is; the queues take turns."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable

from memory_service.caller import Caller

Owner = bytes
"""Whose a call is: its caller, or where all callers are alike its namespace."""


class Ticket:
    """A call from its arrival to its answer. `gate` is what it awaits before it starts; None: nothing."""

    __slots__ = ("caller", "gate", "let_in", "raw", "until")

    def __init__(
        self, raw: bytes, caller: Caller, gate: asyncio.Future[None] | None, until: float | None
    ) -> None:
        self.raw = raw
        self.caller = caller
        self.gate = gate
        self.until = until
        """The time of the event loop at which its caller stops waiting; None: never."""
        self.let_in = gate is None

    def owner(self) -> Owner:
        """Return whose it is.

        The namespace is the first field of every request that has one. It is read off the bytes, for a
        call that may be refused is not worth decoding: a client that writes its fields in another order
        waits in the queue of all those that do.
        """
        if self.caller.name:
            return self.caller.name.encode()
        raw = self.raw
        if len(raw) < 2 or raw[0] != 0x0A or raw[1] > 127:
            return b""
        return raw[2 : 2 + raw[1]]


class Turns:
    """A queue for each owner. Who waits longest in its own queue is taken when its owner's turn comes."""

    def __init__(self) -> None:
        # The owner whose turn it is comes first.
        self._queues: dict[Owner, deque[Ticket]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def owners(self) -> int:
        """How many owners have calls here."""
        return len(self._queues)

    def put(self, ticket: Ticket) -> None:
        """Add a call at the end of its owner's queue."""
        self._queues.setdefault(ticket.owner(), deque()).append(ticket)
        self._count += 1

    def take(self, may_start: Callable[[Owner], bool]) -> Ticket | None:
        """Remove and return the next call whose owner may start one; None: there is none."""
        for owner in self._queues:
            if not may_start(owner):
                continue
            # The loop ends here, so the dictionary may change.
            queue = self._queues.pop(owner)
            ticket = queue.popleft()
            if queue:
                self._queues[owner] = queue
            self._count -= 1
            return ticket
        return None

    def ahead_of(self, owner: Owner) -> int:
        """Return how many calls are taken before one of this owner that comes now."""
        own = len(self._queues.get(owner, ()))
        return min(self._count, (own + 1) * len(self._queues))

    def push_out_for(self, owner: Owner) -> Ticket | None:
        """Remove and return the last call of the longest queue, if that leaves it longer than the owner's."""
        if 2 * len(self._queues) > self._count:
            return None
        longest = max(self._queues.values(), key=len)
        if len(longest) <= len(self._queues.get(owner, ())) + 1:
            return None
        ticket = longest.pop()
        self._count -= 1
        return ticket

    def drop_gone(self) -> None:
        """Remove the calls whose callers do not wait any more."""
        waiting = [t for queue in self._queues.values() for t in queue if t.gate and not t.gate.done()]
        self._queues, self._count = {}, 0
        for ticket in waiting:
            self.put(ticket)


def counted(tickets: set[Ticket]) -> Counter[Owner]:
    """Return how many calls each owner has."""
    return Counter(ticket.owner() for ticket in tickets)
