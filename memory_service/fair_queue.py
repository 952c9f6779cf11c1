"""What waits, in the queue of whose it is. The queues take turns: who asks for much waits for itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Owner = TypeVar("Owner", bound=Hashable)
T = TypeVar("T")


class FairQueue(Generic[Owner, T]):
    """A queue for each owner. What waits longest in its own queue is taken when its owner's turn comes."""

    def __init__(self) -> None:
        # The owner whose turn it is comes first.
        self._queues: dict[Owner, deque[T]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def owners(self) -> int:
        """How many owners have something here."""
        return len(self._queues)

    def put(self, owner: Owner, waiting: T) -> None:
        """Add something at the end of its owner's queue."""
        self._queues.setdefault(owner, deque()).append(waiting)
        self._count += 1

    def take(self, may_start: Callable[[Owner], bool] | None = None) -> T | None:
        """Remove and return what is next, of an owner who may start something; None: there is nothing."""
        for owner in self._queues:
            if may_start is not None and not may_start(owner):
                continue
            # The loop ends here, so the dictionary may change.
            queue = self._queues.pop(owner)
            waiting = queue.popleft()
            if queue:
                self._queues[owner] = queue
            self._count -= 1
            return waiting
        return None

    def ahead_of(self, owner: Owner) -> int:
        """Return how much is taken before what this owner would put now."""
        own = len(self._queues.get(owner, ()))
        return min(self._count, (own + 1) * len(self._queues))

    def push_out_for(self, owner: Owner) -> T | None:
        """Remove and return the last of the longest queue, if that leaves it longer than the owner's."""
        if 2 * len(self._queues) > self._count:
            return None
        longest = max(self._queues.values(), key=len)
        if len(longest) <= len(self._queues.get(owner, ())) + 1:
            return None
        self._count -= 1
        return longest.pop()

    def keep(self, wanted: Callable[[T], bool]) -> None:
        """Remove what is not wanted any more."""
        kept = {owner: deque(filter(wanted, queue)) for owner, queue in self._queues.items()}
        self._queues = {owner: queue for owner, queue in kept.items() if queue}
        self._count = sum(map(len, self._queues.values()))
