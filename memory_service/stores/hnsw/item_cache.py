"""Items kept in memory, ready to send: the least recently used go first."""

from __future__ import annotations

from collections import OrderedDict

from memory_service.records import Item

# What an item takes beside its encoded form, measured on chat messages.
_OVERHEAD_BYTES = 1200


class ItemCache:
    """Items by key, up to a number of bytes. Items here are shared and must not be changed."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._items: OrderedDict[int, tuple[Item, int]] = OrderedDict()
        self._nbytes = 0

    def get(self, key: int) -> Item | None:
        """Return an item, as used just now."""
        found = self._items.get(key)
        if found is None:
            return None
        self._items.move_to_end(key)
        return found[0]

    def put(self, key: int, item: Item, content_bytes: int) -> None:
        """Keep an item."""
        self.discard(key)
        # Its content, and its encoded form that the API adds.
        nbytes = 2 * content_bytes + _OVERHEAD_BYTES
        if nbytes > self._bytes_max // 8:
            return
        self._items[key] = (item, nbytes)
        self._nbytes += nbytes
        while self._nbytes > self._bytes_max:
            self._nbytes -= self._items.popitem(last=False)[1][1]

    def discard(self, key: int) -> None:
        """Forget an item that was changed or removed."""
        found = self._items.pop(key, None)
        if found is not None:
            self._nbytes -= found[1]

    def clear(self) -> None:
        """Forget everything."""
        self._items.clear()
        self._nbytes = 0
