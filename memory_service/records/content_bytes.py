"""How many bytes callers have put into a namespace, and the rule of how many there may be.

Counted is what callers send, as it is stored: of items their ids, sessions, labels, metadata, contents and
where they come from, of states their keys, values and descriptions. Not counted is what the store makes of
it, such as vectors and words, nor what was replaced and waits for an undo, nor what is in quarantine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from memory_service.data_model import Item, StateEntry
from memory_service.errors import LimitExceeded

T = TypeVar("T")
_json = msgspec.json.Encoder().encode


def check_room(held: int, limit: int) -> None:
    """Refuse to put more into a namespace that is full. Raises LimitExceeded.

    What comes is not measured: the last write that is let in may lead over the limit, and no other one does.
    """
    if held >= limit:
        raise LimitExceeded("namespace", "namespace_bytes_max", limit, held)


def item_bytes(item: Item) -> int:
    """Return how many bytes of an item are counted."""
    optional = (item.labels or None, item.metadata, item.facet, item.provenance)
    return (
        len(item.id.encode())
        + len(item.session_id.encode())
        + len(_json(item.content))
        + sum(len(_json(each)) for each in optional if each is not None)
    )


def state_bytes(entry: StateEntry) -> int:
    """Return how many bytes of a state are counted."""
    provenance = b"" if entry.provenance is None else _json(entry.provenance)
    texts = len(entry.key.encode()) + len(entry.description.encode())
    return texts + len(entry.value_json) + len(provenance)


class Measured(dict[str, T]):
    """A dictionary that knows how many bytes its values have; `measure` None: it does not count them.

    Values come and go by assignment, `del` and `take` alone: those are counted.
    """

    def __init__(self, measure: Callable[[T], int] | None) -> None:
        super().__init__()
        self._measure = measure
        self.bytes = 0

    def __setitem__(self, key: str, value: T) -> None:
        if self._measure is not None:
            self.bytes += self._measure(value) - (self._measure(self[key]) if key in self else 0)
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self.take(key)

    def take(self, key: str) -> T:
        """Remove a value and return it."""
        value = super().pop(key)
        if self._measure is not None:
            self.bytes -= self._measure(value)
        return value
