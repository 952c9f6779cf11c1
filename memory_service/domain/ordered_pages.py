"""Pages of items in the order of a field."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec

from memory_service.data_model import Item, ItemFilter
from memory_service.domain.neighbours import Window
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.result_pages import PageShape, ResultPages
from memory_service.ordering import Ordering, SortKey
from memory_service.reading import Reading


class OrderedPlace(msgspec.Struct, array_like=True, frozen=True):
    """Where a page begins, None: at the first item; and how many items are left, -1: all."""

    begin: SortKey | None
    left: int

    def fitting(self, size: int) -> int:
        """Return the size of the page."""
        return size if self.left < 0 else min(size, self.left)


@dataclass(slots=True)
class OrderedPage:
    """The items of a page, with their windows if neighbours were requested."""

    items: list[Item]
    windows: list[Window] = field(default_factory=list)
    next_page_token: str = ""


class OrderedPages:
    """Loads items in the order of a field, page by page."""

    def __init__(self, tokens: PageTokens, pages: ResultPages) -> None:
        self._tokens = tokens
        self._pages = pages

    def place(self, scope: tuple[object, ...], page_token: str, field: str, limit: int = -1) -> OrderedPlace:
        """Return the place in a page token, or the beginning. Raises InvalidArgument, of `field`."""
        if not page_token:
            return OrderedPlace(None, limit)
        return msgspec.json.decode(str(self._tokens.read(scope, page_token, field)[0]), type=OrderedPlace)

    async def load(
        self,
        reading: Reading,
        item_filter: ItemFilter,
        ordering: Ordering,
        skip: int,
        place: OrderedPlace,
        shape: PageShape,
        scope: tuple[object, ...],
    ) -> OrderedPage:
        """Load the page at a place. Its token has the place of the next item, not the item's number, so that
        other items may come and go.
        """
        size = place.fitting(shape.size)
        skip = skip if place.begin is None else 0
        found = await reading.ordered(item_filter, ordering, size + 1, skip=skip, begin=place.begin)
        positions = [position for position, _ in found]
        if shape.neighbours:
            filled = await self._pages.fill(reading, positions, replace(shape, size=size))
            page = OrderedPage(filled.items, filled.windows)
            rest = None if filled.rest is None else filled.rest.first
        else:
            items, at = await self._pages.load_page(reading, positions, size, shape.with_embedding)
            page, rest = OrderedPage(items), None if at is None else positions.index(at)
        begin = None if rest is None else found[rest][1]
        page.next_page_token = self.token(scope, place, begin, len(page.items))
        return page

    def token(self, scope: tuple[object, ...], place: OrderedPlace, begin: SortKey | None, count: int) -> str:
        """Return the token of the page after one of `count` items, empty if there is none."""
        left = place.left if place.left < 0 else place.left - count
        if begin is None or not left:
            return ""
        return self._tokens.make(scope, [msgspec.json.encode(OrderedPlace(begin, left)).decode()])
