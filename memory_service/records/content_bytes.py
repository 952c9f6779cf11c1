"""The bytes that callers have stored in a namespace, and the limit on them.

Counted, as stored: ids, sessions, labels, metadata, contents and sources of items; keys, values and
descriptions of states. Not counted: derived data such as vectors and words, replaced versions kept for undo,
and writes in quarantine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from memory_service.data_model import Item, StateEntry
from memory_service.errors import LimitExceeded
from memory_service.records.contents import encode_content

T = TypeVar("T")
_json = msgspec.json.Encoder().encode


def check_room(held: int, limit: int) -> None:
    """Reject a write that adds to a full namespace. Raises LimitExceeded.

    The size of the write itself is not checked: the last accepted write may exceed the limit, later ones are
    rejected.
    """
    if held >= limit:
        raise LimitExceeded("namespace", "namespace_bytes_max", limit, held)


def item_bytes(item: Item) -> int:
    """Return the counted bytes of an item."""
    optional = (item.labels or None, item.metadata, item.facet, item.provenance)
    return (
        len(item.id.encode())
        + len(item.session_id.encode())
        + len(encode_content(item))
        + sum(len(_json(each)) for each in optional if each is not None)
    )


def state_bytes(entry: StateEntry) -> int:
    """Return the counted bytes of a state."""
    provenance = b"" if entry.provenance is None else _json(entry.provenance)
    texts = len(entry.key.encode()) + len(entry.description.encode())
    return texts + len(entry.value_json) + len(provenance)


class Measured(dict[str, T]):
    """A dictionary that tracks the total bytes of its values; with `measure` None it does not count.

    Change it only through assignment, `del` and `take`, which keep the count right.
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
