"""Fair queues: callers take turns, so a caller with many requests delays only itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

Namespace = TypeVar("Namespace", bound=Hashable)
T = TypeVar("T")


class FairQueue(Generic[Namespace, T]):
    """Round robin over callers ("" if they are anonymous), and over the namespaces of each caller."""

    def __init__(self) -> None:
        # In order of turns. Only callers and namespaces with waiting entries.
        self._callers: dict[str, dict[Namespace, deque[T]]] = {}
        self._counts: dict[str, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        """Yield all waiting entries, in no particular order."""
        return (
            waiting for queues in self._callers.values() for queue in queues.values() for waiting in queue
        )

    def put(self, owner: tuple[str, Namespace], waiting: T, *, first: bool = False) -> None:
        """Add an entry at the end of its owner's queue, or at the beginning if `first`."""
        caller, namespace = owner
        queue = self._callers.setdefault(caller, {}).setdefault(namespace, deque())
        (queue.appendleft if first else queue.append)(waiting)
        self._counts[caller] = self._counts.get(caller, 0) + 1
        self._count += 1

    def take(self, may_start: Callable[[str, Namespace], bool] | None = None) -> T | None:
        """Remove and return the next entry of an owner that may start one; None: there is none."""
        for caller, queues in self._callers.items():
            for namespace in queues:
                if may_start is None or may_start(caller, namespace):
                    # The loops end here, so the dictionaries may change.
                    return self._take_of(caller, namespace)
        return None

    def _take_of(self, caller: str, namespace: Namespace) -> T:
        queues = self._callers[caller] = self._callers.pop(caller)
        queue = queues[namespace] = queues.pop(namespace)
        waiting = queue.popleft()
        self._removed(caller, namespace)
        return waiting

    def _removed(self, caller: str, namespace: Namespace) -> None:
        """Update the counts after a removal, and drop empty queues."""
        self._count -= 1
        self._counts[caller] -= 1
        queues = self._callers[caller]
        if not queues[namespace]:
            del queues[namespace]
        if not queues:
            del self._callers[caller], self._counts[caller]

    def remove(self, owner: tuple[str, Namespace], waiting: T) -> None:
        """Remove an entry, if it is in the queue."""
        queue = self._callers.get(owner[0], {}).get(owner[1])
        if queue is not None and waiting in queue:
            queue.remove(waiting)
            self._removed(*owner)

    def ahead_of(self, owner: tuple[str, Namespace]) -> int:
        """Return how many entries would be taken before a new one of this owner."""
        caller, namespace = owner
        own = self._callers.get(caller, {})
        ahead = min(self._counts.get(caller, 0), (len(own.get(namespace, ())) + 1) * len(own))
        others = len(self._callers) - bool(own)
        return min(self._count, ahead + (ahead + 1) * others)

    def push_out_for(self, owner: tuple[str, Namespace]) -> T | None:
        """Remove and return another entry, to make room for one of this owner; None: there is none to remove.

        The caller with the most entries loses one, if it keeps more than this caller has. Otherwise this
        caller does, if the queue keeps more than that of this namespace. It is the newest entry of the
        caller's longest queue.
        """
        caller, namespace = owner
        longest = max(self._counts, key=self._counts.__getitem__, default=caller)
        if self._counts.get(longest, 0) <= self._counts.get(caller, 0) + 1:
            longest = caller
        queues = self._callers.get(longest, {})
        if not queues:
            return None
        # Of equally long queues, take the last one in turn order.
        fullest = max(reversed(queues), key=lambda each: len(queues[each]))
        if longest == caller and len(queues[fullest]) <= len(queues.get(namespace, ())) + 1:
            return None
        pushed_out = queues[fullest].pop()
        self._removed(longest, fullest)
        return pushed_out
