"""Reads of the in-memory store, answered by each namespace's view."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from memory_service.data_model import (
    Around,
    Hits,
    Item,
    ItemFilter,
    SearchQuery,
    SessionCounts,
    SessionQuery,
)
from memory_service.indexes.joint_search import search_views
from memory_service.indexes.label_values import label_values
from memory_service.indexes.neighbours import neighbours
from memory_service.indexes.ordered_rows import ordered
from memory_service.indexes.search import search
from memory_service.indexes.selection import scan
from memory_service.indexes.session_listing import list_sessions
from memory_service.indexes.value_columns import new_column, reader
from memory_service.ordering import Ordering, SortKey
from memory_service.predicates import Field, column_fields
from memory_service.reading import Reading
from memory_service.records.in_memory.namespace import Namespace


class InMemoryReading(Reading):
    def __init__(self, found: Namespace) -> None:
        self._found, self.info = found, found.info()

    async def load_items(
        self, positions: Sequence[int], *, with_embedding: bool = False, with_content: bool = True
    ) -> list[Item | None]:
        ids = [self._found.ids.get(position) for position in positions]
        return [None if i is None else self._found.read(i, with_embedding) for i in ids]

    async def scan(self, item_filter: ItemFilter, limit: int, *, newest: bool) -> list[int]:
        self._make_columns(column_fields(item_filter.predicate))
        return scan(self._found.view, item_filter, limit, newest=newest)

    async def ordered(
        self,
        item_filter: ItemFilter,
        ordering: Ordering,
        limit: int,
        *,
        skip: int = 0,
        begin: SortKey | None = None,
    ) -> list[tuple[int, SortKey]]:
        self._make_columns([*column_fields(item_filter.predicate), *ordering.columns])
        return ordered(self._found.view, item_filter, ordering, limit, skip=skip, begin=begin)

    async def label_values(
        self, key: str, prefix: str, after: str | None, limit: int, *, now_us: int
    ) -> list[tuple[str, int]]:
        return label_values(self._found.view, key, prefix, after, limit, now_us)

    async def search(self, query: SearchQuery) -> Hits:
        self._make_columns(column_fields(query.filter.predicate))
        return search(self._found.view, query)

    async def search_together(self, others: Sequence[Reading], queries: Sequence[SearchQuery]) -> list[Hits]:
        views = []
        for each in (self, *others):
            assert isinstance(each, InMemoryReading)
            each._make_columns(column_fields(queries[0].filter.predicate))
            views.append(each._found.view)
        return search_views(views, queries)

    def _make_columns(self, fields: Sequence[Field]) -> None:
        """Add the columns of some fields to the view."""
        found = self._found
        columns = found.view.columns
        for wanted in columns.lacking(fields):
            found.view.index_pending()
            read, column = reader(wanted), new_column(wanted)
            ids = [found.ids.get(position) for position in found.view.positions.view.tolist()]
            column.extend(UNSET if item_id is None else read(found.items[item_id]) for item_id in ids)
            columns.take({wanted: column})
        columns.trim(fields)

    async def neighbours(self, positions: Sequence[int], count: int, *, now_us: int) -> list[Around]:
        return neighbours(self._found.view, positions, count, now_us)

    async def sessions(self, query: SessionQuery) -> list[SessionCounts]:
        return list_sessions(self._found.view, query)
