"""Results with the items right before and right after each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from memory_service.data_model import Item
from memory_service.reading import SearchReading
from memory_service.runtime.clock import now_us


class Window(msgspec.Struct, frozen=True):
    """The items around an item in its session, in the order of the namespace."""

    before: Sequence[Item] = ()
    after: Sequence[Item] = ()

    @property
    def items(self) -> list[Item]:
        """All items of the window."""
        return [*self.before, *self.after]


async def windows(
    reading: SearchReading, positions: Sequence[int], count: int, trusts: Callable[[Item], bool]
) -> list[Window]:
    """Return the windows of the items at these positions, with at most `count` items each way.

    They come without vectors. Untrusted items are left out, and not replaced by more distant ones.
    """
    if not count:
        return [Window()] * len(positions)
    found = await reading.neighbours(positions, count, now_us=now_us())
    wanted = sorted({place for around in found for place in (*around.before, *around.after)})
    items = dict(zip(wanted, await reading.load_items(wanted), strict=True))

    def there(side: Sequence[int]) -> list[Item]:
        # Skip items deleted since their position was found.
        return [item for place in side if (item := items[place]) is not None and trusts(item)]

    return [Window(there(around.before), there(around.after)) for around in found]


async def with_neighbours(reading: SearchReading, positions: Sequence[int], count: int) -> set[int]:
    """Return these positions and those of all their neighbours."""
    found = await reading.neighbours(positions, count, now_us=now_us()) if count else ()
    return {*positions, *(place for around in found for place in (*around.before, *around.after))}
