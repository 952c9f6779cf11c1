"""Items kept in memory, ready to send."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory_service.data_model import Item, TextPart

# What an item takes beside its encoded form, measured on chat messages.
_OVERHEAD_BYTES = 1200


class ItemCache:
    """Items by key, up to a number of bytes. Items here are shared and must not be changed.

    There are two generations. What is put or used is in the young one; when that has half of the
    bytes, the old one is forgotten and the young one grows old. So what was not used for long goes,
    as by least recent use, and yet most hits write nothing.
    """

    def __init__(self, bytes_max: int) -> None:
        self._generation_bytes_max = bytes_max // 2
        self._young: dict[int, Item] = {}
        self._old: dict[int, Item] = {}
        self._young_bytes = 0

    def get_all(self, keys: Sequence[int]) -> list[Item | None]:
        """Return items, as used just now; None for those that are not kept."""
        found = list(map(self._young.get, keys))
        if not all(found) and self._old:
            for at, key in enumerate(keys):
                if found[at] is None and (item := self._old.get(key)) is not None:
                    self.put(key, item)
                    found[at] = item
        return found

    def put(self, key: int, item: Item) -> None:
        """Keep an item."""
        self._old.pop(key, None)
        # Its content, and its encoded form that the API adds.
        nbytes = 2 * _content_bytes(item) + _OVERHEAD_BYTES
        if nbytes > self._generation_bytes_max // 4:
            self._young.pop(key, None)
            return
        self._young[key] = item
        # What is replaced or discarded stays counted: the generation ends a little sooner.
        self._young_bytes += nbytes
        if self._young_bytes > self._generation_bytes_max:
            self._old, self._young = self._young, {}
            self._young_bytes = 0

    def put_written(self, key: int, item: Item) -> None:
        """Keep an item that was just committed, without its vector."""
        item.embedded = item.embedded or item.embedding is not None
        item.embedding = None
        self.put(key, item)

    def discard(self, key: int) -> None:
        """Forget an item that was changed or removed."""
        self._young.pop(key, None)
        self._old.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._young.clear()
        self._old.clear()
        self._young_bytes = 0


def _content_bytes(item: Item) -> int:
    """Return about how much an item's content takes."""
    content = item.content
    if isinstance(content, TextPart):
        return len(content.text) + 64 * len(item.labels)
    return len(msgspec.json.encode(content)) + 64 * len(item.labels)
