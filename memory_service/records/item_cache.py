"""Items kept in memory, ready to send."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory_service.data_model import Item, TextPart

# Memory per item beyond its encoded form, measured on chat messages.
_OVERHEAD_BYTES = 1200


class ItemCache:
    """A cache of items by key, limited in bytes. The items are shared and must not be changed.

    It has two generations. Items that are put or used go to the young one; when that reaches half of the
    bytes, the old one is dropped and the young one becomes old. This evicts items that have long been unused,
    much like LRU, but most hits change nothing.
    """

    def __init__(self, bytes_max: int) -> None:
        self._generation_bytes_max = bytes_max // 2
        self._young: dict[int, Item] = {}
        self._old: dict[int, Item] = {}
        self._young_bytes = 0

    def get_all(self, keys: Sequence[int]) -> list[Item | None]:
        """Return items, marking them as used; None for items that are not cached."""
        found = list(map(self._young.get, keys))
        if not all(found) and self._old:
            for at, key in enumerate(keys):
                if found[at] is None and (item := self._old.get(key)) is not None:
                    self.put(key, item)
                    found[at] = item
        return found

    def put(self, key: int, item: Item) -> None:
        """Cache an item."""
        self._old.pop(key, None)
        # The content, plus the encoded form that the API adds.
        nbytes = 2 * _content_bytes(item) + _OVERHEAD_BYTES
        if nbytes > self._generation_bytes_max // 4:
            self._young.pop(key, None)
            return
        self._young[key] = item
        # Replaced and discarded items remain counted, so the generation ends a little sooner.
        self._young_bytes += nbytes
        if self._young_bytes > self._generation_bytes_max:
            self._old, self._young = self._young, {}
            self._young_bytes = 0

    def put_written(self, key: int, item: Item) -> None:
        """Cache an item that was just committed, without its vector."""
        item.embedded = item.embedded or item.embedding is not None
        item.embedding = None
        self.put(key, item)

    def discard(self, key: int) -> None:
        """Remove an item that was changed or removed."""
        self._young.pop(key, None)
        self._old.pop(key, None)

    def clear(self) -> None:
        """Remove everything."""
        self._young.clear()
        self._old.clear()
        self._young_bytes = 0


def _content_bytes(item: Item) -> int:
    """Return the approximate size of an item's content."""
    content = item.content
    if isinstance(content, TextPart):
        return len(content.text) + 64 * len(item.labels)
    return len(msgspec.json.encode(content)) + 64 * len(item.labels)
