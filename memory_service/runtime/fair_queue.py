"""What waits, in the queue of whose it is. The queues take turns: who asks for much waits for itself.

Callers take turns, and so do the namespaces of each: one caller may speak for many, as a gateway does for
its tenants, and gets no more turns for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Namespace = TypeVar("Namespace", bound=Hashable)
T = TypeVar("T")


class FairQueue(Generic[Namespace, T]):
    """A queue for each owner, who is a caller ("" where callers have no names) and a namespace.

    What waits longest in its queue is taken when the turn of its caller comes, and of its namespace there.
    """

    def __init__(self) -> None:
        # The caller whose turn it is comes first.
        self._callers: dict[str, _Namespaces[Namespace, T]] = {}
        self._count = 0
        self._owners = 0

    def __len__(self) -> int:
        return self._count

    @property
    def owners(self) -> int:
        """How many owners have something here."""
        return self._owners

    @property
    def callers(self) -> int:
        """How many callers have something here."""
        return len(self._callers)

    def has_of(self, caller: str) -> bool:
        """Whether this caller has something here."""
        return caller in self._callers

    def put(self, owner: tuple[str, Namespace], waiting: T) -> None:
        """Add something at the end of its owner's queue."""
        caller, namespace = owner
        if (namespaces := self._callers.get(caller)) is None:
            namespaces = self._callers[caller] = _Namespaces()
        self._owners += namespaces.put(namespace, waiting)
        self._count += 1

    def take(self, may_start: Callable[[str, Namespace], bool] | None = None) -> T | None:
        """Remove and return what is next, of an owner who may start something; None: there is nothing."""
        for caller, namespaces in self._callers.items():
            for namespace in namespaces.queues:
                if may_start is None or may_start(caller, namespace):
                    # The loops end here, so the dictionaries may change.
                    return self._take_of(caller, namespace)
        return None

    def _take_of(self, caller: str, namespace: Namespace) -> T:
        namespaces = self._callers[caller]
        waiting, emptied = namespaces.take(namespace)
        self._count -= 1
        self._owners -= emptied
        if not namespaces.count:
            del self._callers[caller]
        elif len(self._callers) > 1:
            self._callers[caller] = self._callers.pop(caller)
        return waiting

    def ahead_of(self, owner: tuple[str, Namespace]) -> int:
        """Return how much is taken before what this owner would put now."""
        caller, namespace = owner
        own = self._callers.get(caller)
        ahead = 0 if own is None else own.ahead_of(namespace)
        others = len(self._callers) - (own is not None)
        return min(self._count, ahead + (ahead + 1) * others)

    def push_out_for(self, owner: tuple[str, Namespace]) -> T | None:
        """Remove and return the last of the longest queue, of the caller with most here.

        Only where more is left there than this caller, or in its own queues this namespace, has; else None.
        """
        caller, namespace = owner
        own = self._callers.get(caller)
        longest = self._longest()
        if longest is not None and longest is not own and longest.count > (own.count if own else 0) + 1:
            pushed_out, emptied = longest.push_out()
        elif own is not None and own.has_longer(namespace):
            pushed_out, emptied = own.push_out()
        else:
            return None
        self._count -= 1
        self._owners -= emptied
        return pushed_out

    def _longest(self) -> _Namespaces[Namespace, T] | None:
        # Where each has about one it is not worth a look at all of them.
        if 2 * len(self._callers) > self._count:
            return None
        return max(self._callers.values(), key=lambda namespaces: namespaces.count)

    def keep(self, wanted: Callable[[T], bool]) -> None:
        """Remove what is not wanted any more."""
        for namespaces in self._callers.values():
            namespaces.keep(wanted)
        self._callers = {caller: kept for caller, kept in self._callers.items() if kept.count}
        self._count = sum(kept.count for kept in self._callers.values())
        self._owners = sum(len(kept.queues) for kept in self._callers.values())


class _Namespaces(Generic[Namespace, T]):
    """What waits of one caller: a queue for each of its namespaces, none of them empty."""

    __slots__ = ("count", "queues")

    def __init__(self) -> None:
        # The namespace whose turn it is comes first.
        self.queues: dict[Namespace, deque[T]] = {}
        self.count = 0

    def put(self, namespace: Namespace, waiting: T) -> bool:
        """Add something, and return whether its namespace had nothing here."""
        self.count += 1
        if (queue := self.queues.get(namespace)) is not None:
            queue.append(waiting)
            return False
        self.queues[namespace] = deque((waiting,))
        return True

    def take(self, namespace: Namespace) -> tuple[T, bool]:
        """Remove and return the first of a namespace, and whether it has nothing here now."""
        self.count -= 1
        queue = self.queues.pop(namespace)
        waiting = queue.popleft()
        if queue:
            self.queues[namespace] = queue
        return waiting, not queue

    def ahead_of(self, namespace: Namespace) -> int:
        own = len(self.queues.get(namespace, ()))
        return min(self.count, (own + 1) * len(self.queues))

    def has_longer(self, namespace: Namespace) -> bool:
        """Whether another queue would still be longer than that of this namespace without its last."""
        if self._all_short:
            return False
        longest = max(map(len, self.queues.values()))
        return longest > len(self.queues.get(namespace, ())) + 1

    def push_out(self) -> tuple[T, bool]:
        """Remove and return the last of the longest queue, and whether its namespace has nothing here now."""
        # Where each has about one, it is that whose turn comes last.
        namespace = (
            next(reversed(self.queues))
            if self._all_short
            else max(self.queues, key=lambda n: len(self.queues[n]))
        )
        self.count -= 1
        queue = self.queues[namespace]
        pushed_out = queue.pop()
        if not queue:
            del self.queues[namespace]
        return pushed_out, not queue

    @property
    def _all_short(self) -> bool:
        return 2 * len(self.queues) > self.count

    def keep(self, wanted: Callable[[T], bool]) -> None:
        kept = {namespace: deque(filter(wanted, queue)) for namespace, queue in self.queues.items()}
        self.queues = {namespace: queue for namespace, queue in kept.items() if queue}
        self.count = sum(map(len, self.queues.values()))
