"""Loads the results of a page, with their neighbours, within a budget."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from memory_service.data_model import Item
from memory_service.domain.neighbours import Window, windows, with_neighbours
from memory_service.domain.packing import MISSES_MAX, Budget, texts_of
from memory_service.reading import SearchReading
from memory_service.runtime.yielding import Part

_LOADED_AT_ONCE = 100


class Place(msgspec.Struct, array_like=True, frozen=True):
    """Where a page begins among the results of a query, and what the previous pages determined."""

    first: int = 0
    tokens: int = 0
    """Tokens of the budget that the previous pages used."""
    missed: list[int] = []
    """Results before `first` that did not fit."""
    reranked: list[tuple[int, float]] = []
    """Positions and the reranker's scores of them."""
    now_us: int = 0
    """The time from which ages count: scores must not change from page to page."""

    @classmethod
    def parse(cls, text: str) -> Place:
        """Parse the output of `text`."""
        return msgspec.json.decode(text, type=cls)

    @property
    def text(self) -> str:
        """The place in a page token."""
        return msgspec.json.encode(self).decode()


BEGINNING = Place()


@dataclass(slots=True)
class Filled:
    """The results of a page: the place of each, its item and its window; `rest` is where the next begins."""

    places: list[int] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    token_count: int = 0
    rest: Place | None = None


@dataclass(slots=True, frozen=True)
class PageShape:
    """The limits of a page, and what comes with each result."""

    size: int
    neighbours: int
    trusts: Callable[[Item], bool]
    """Whether to include a neighbour."""
    with_embedding: bool


class ResultPages:
    """Loads results in order until a page is full. `item_bytes` is the size of an item in an answer."""

    def __init__(self, item_bytes: Callable[[Item], int], page_bytes_max: int) -> None:
        self._item_bytes = item_bytes
        self._page_bytes_max = page_bytes_max

    async def load_page(
        self, reading: SearchReading, positions: Sequence[int], size: int, with_embedding: bool
    ) -> tuple[list[Item], int | None]:
        """Load as many items as fit into a page; return them and the position at which the next begins."""
        page: list[Item] = []
        nbytes, part = 0, Part()
        for at in range(0, len(positions), _LOADED_AT_ONCE):
            chunk = positions[at : min(at + _LOADED_AT_ONCE, len(positions))]
            items = await reading.load_items(chunk, with_embedding=with_embedding)
            for position, item in zip(chunk, items, strict=True):
                if item is None:
                    continue
                nbytes += self._item_bytes(item)
                if len(page) >= size or (page and nbytes > self._page_bytes_max):
                    return page, position
                page.append(item)
                await part.give_way_if_long()
        return page, None

    def fitting(self, loaded: list[Item | None], with_embedding: bool) -> tuple[int, list[Item]]:
        """Return how many of the loaded entries fit into a page, and the items among them that exist."""
        items = [item for item in loaded if item is not None]
        if not with_embedding:
            # Items sent before have a known size: most pages need no other check.
            sizes = [len(item.framed) for item in items if item.framed is not None]
            if len(sizes) == len(items) and sum(sizes) <= self._page_bytes_max:
                return len(loaded), items
        items, nbytes = [], 0
        for at, item in enumerate(loaded):
            if item is not None:
                nbytes += self._item_bytes(item)
                if nbytes > self._page_bytes_max and items:
                    return at, items
                items.append(item)
        return len(loaded), items

    # --- result by result ---------------------------------------------------------------------

    async def fill(
        self,
        reading: SearchReading,
        positions: Sequence[int],
        shape: PageShape,
        budget: Budget | None = None,
        *,
        place: Place = BEGINNING,
        results_max: int | None = None,
    ) -> Filled:
        """Return the page at a place, with at most `results_max` results on all pages.

        Results that do not fit into the budget are skipped, and later ones may still fit.
        """
        missed, page, nbytes, part = list(place.missed), Filled(), 0, Part()
        async for at, item, window in self._load(reading, positions, place.first, shape):
            if results_max is not None and at - len(missed) >= results_max:
                break
            together = [item, *window.items]
            texts = texts_of(together) if budget else []
            if budget and not budget.fits(texts):
                missed.append(at)
                if len(missed) >= MISSES_MAX:
                    break
                continue
            nbytes += sum(map(self._item_bytes, together))
            if page.items and (len(page.items) >= shape.size or nbytes > self._page_bytes_max):
                tokens = budget.used if budget else 0
                page.rest = msgspec.structs.replace(place, first=at, tokens=tokens, missed=missed)
                break
            if budget:
                budget.take(texts)
            page.places.append(at)
            page.items.append(item)
            page.windows.append(window)
            await part.give_way_if_long()
        page.token_count = budget.used - place.tokens if budget else 0
        return page

    async def budget(
        self,
        reading: SearchReading,
        passed: Sequence[int],
        shape: PageShape,
        tokens_max: int | None,
        used: int = 0,
    ) -> Budget:
        """Return a budget, reduced by what results on the previous pages used."""
        if not passed:
            return Budget(tokens_max)
        return Budget(tokens_max, used, await with_neighbours(reading, passed, shape.neighbours))

    async def first_that_fits(
        self, reading: SearchReading, positions: Sequence[int], shape: PageShape, tokens_max: int
    ) -> int:
        """Return the index from which on all remaining positions fit into a budget together."""
        budget = Budget(tokens_max)
        async for at, item, window in self._load(reading, positions[::-1], 0, shape):
            texts = texts_of([item, *window.items])
            if not budget.fits(texts):
                return len(positions) - at
            budget.take(texts)
        return 0

    async def _load(
        self, reading: SearchReading, positions: Sequence[int], first: int, shape: PageShape
    ) -> AsyncIterator[tuple[int, Item, Window]]:
        """Yield each item that still exists with its window, and its index among the positions."""
        step = max(_LOADED_AT_ONCE // (1 + 2 * shape.neighbours), 1)
        for start in range(first, len(positions), step):
            chunk = positions[start : start + step]
            items = await reading.load_items(chunk, with_embedding=shape.with_embedding)
            around = await windows(reading, chunk, shape.neighbours, shape.trusts)
            for at, (item, window) in enumerate(zip(items, around, strict=True), start):
                if item is not None:
                    yield at, item, self._sendable(item, window)

    def _sendable(self, item: Item, window: Window) -> Window:
        """Return the part of a window that fits into one response with its item: the nearest neighbours."""
        room = self._page_bytes_max - self._item_bytes(item)
        if sum(map(self._item_bytes, window.items)) <= room:
            return window
        sides: list[list[Item]] = [[], []]
        farthest = max(len(window.before), len(window.after))
        for distance in range(1, farthest + 1):
            for side, kept, at in (
                (window.before, sides[0], -distance),
                (window.after, sides[1], distance - 1),
            ):
                if distance > len(side):
                    continue
                room -= self._item_bytes(side[at])
                if room < 0:
                    return Window(sides[0][::-1], sides[1])
                kept.append(side[at])
        return Window(sides[0][::-1], sides[1])
