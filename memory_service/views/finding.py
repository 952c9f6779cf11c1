"""Provides readings of namespaces, through their views."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from memory_service.data_model import (
    Around,
    Hits,
    IndexInfo,
    Item,
    ItemFilter,
    NamespaceInfo,
    SearchQuery,
    SessionCounts,
    SessionQuery,
)
from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.label_values import label_values
from memory_service.indexes.neighbours import neighbours
from memory_service.indexes.ordered_rows import ordered
from memory_service.indexes.selection import scan
from memory_service.indexes.session_listing import list_sessions
from memory_service.indexes.settings import IndexSettings
from memory_service.indexes.view import NamespaceView
from memory_service.ordering import Ordering, SortKey
from memory_service.predicates import column_fields
from memory_service.reading import NOTHING, Reading
from memory_service.records.effects import Effect
from memory_service.records.row_source import FollowedSource, Follower
from memory_service.views.cache import ViewCache
from memory_service.views.search_queue import SearchQueue
from memory_service.views.snapshots import Snapshots


class Views(Follower):
    """The views of all namespaces of a row source, which it follows. For the event loop."""

    def __init__(
        self, source: FollowedSource, settings: IndexSettings, snapshots: Snapshots, waiting_searches_max: int
    ) -> None:
        self.source = source
        self.cache = ViewCache(settings, snapshots, Analyzer(), source)
        self.searches = SearchQueue(waiting_searches_max)
        self._snapshots = snapshots
        source.follow(self)

    async def open(self) -> None:
        """Remove files left behind by a crash. Raises OSError and Unavailable."""
        self._snapshots.sweep(await self.source.manifests())

    def read(self, namespace: str, info: NamespaceInfo | None) -> Reading:
        """Return a reading of a namespace whose records have `info`."""
        return NOTHING if info is None else _ViewReading(self, namespace, info)

    def index_info(self, namespace: str) -> IndexInfo:
        """Return how the vectors of a namespace are searched at present."""
        view = self.cache.peek(namespace)
        return view.index_info() if view else IndexInfo()

    def begin(self, info: NamespaceInfo, *, emptied: bool) -> None:
        self.cache.begin(info)
        if emptied:
            self._snapshots.remove(info.uid)

    def end(self, namespace: str, uid: int) -> None:
        self.cache.drop(namespace)
        self._snapshots.remove(uid)

    def publish(self, namespace: str, effect: Effect) -> None:
        if effect.moved:
            self._snapshots.remove(effect.uid)
        self.cache.publish(namespace, effect)

    async def absorb(self, namespace: str) -> None:
        await self.cache.index_added(namespace)

    async def save_again(self, uids: set[int]) -> set[int]:
        return await self.cache.save_again(uids)

    def remove_files(self, uids: set[int]) -> None:
        for uid in uids:
            self._snapshots.remove(uid)

    async def settle(self) -> None:
        """Link all outstanding vectors into their graphs, and save all snapshots."""
        await self.cache.settle()

    async def close(self) -> None:
        """Save the graphs that have grown, and stop."""
        await self.cache.close()
        self.searches.close()


class _ViewReading(Reading):
    """A reading of an existing namespace. Its view follows each commit, so nothing has to be checked
    first.
    """

    info: NamespaceInfo

    def __init__(self, views: Views, namespace: str, info: NamespaceInfo) -> None:
        self._views, self._namespace, self.info = views, namespace, info

    async def load_items(
        self, positions: Sequence[int], *, with_embedding: bool = False, with_content: bool = True
    ) -> list[Item | None]:
        return await self._views.source.load_items(
            self.info, positions, with_embedding=with_embedding, with_content=with_content
        )

    async def scan(self, item_filter: ItemFilter, limit: int, *, newest: bool) -> list[int]:
        view = await self._views.cache.get(self._namespace, column_fields(item_filter.predicate))
        return [] if view is None else scan(view, item_filter, limit, newest=newest)

    async def ordered(
        self,
        item_filter: ItemFilter,
        ordering: Ordering,
        limit: int,
        *,
        skip: int = 0,
        begin: SortKey | None = None,
    ) -> list[tuple[int, SortKey]]:
        fields = [*column_fields(item_filter.predicate), *ordering.columns]
        view = await self._views.cache.get(self._namespace, fields)
        if view is None:
            return []
        return ordered(view, item_filter, ordering, limit, skip=skip, begin=begin)

    async def label_values(
        self, key: str, prefix: str, after: str | None, limit: int, *, now_us: int
    ) -> list[tuple[str, int]]:
        view = await self._views.cache.get(self._namespace)
        return [] if view is None else label_values(view, key, prefix, after, limit, now_us)

    async def search(self, query: SearchQuery) -> Hits:
        views, namespace = self._views, self._namespace
        if query.filter.predicate is None:
            view = views.cache.get_loaded(namespace) or await views.cache.get(namespace)
            return Hits() if view is None else await views.searches.search(view, query)
        fields = column_fields(query.filter.predicate)
        view = await views.cache.get(namespace, fields)
        if view is None:
            return Hits()
        with view.columns.used(fields):
            return await views.searches.search(view, query)

    async def search_together(self, others: Sequence[Reading], queries: Sequence[SearchQuery]) -> list[Hits]:
        cache, fields = self._views.cache, column_fields(queries[0].filter.predicate)
        found: list[NamespaceView | None] = []
        with ExitStack() as used:
            for each in (self, *others):
                assert isinstance(each, _ViewReading)
                view = await cache.get(each._namespace, fields)
                if view is not None:
                    used.enter_context(view.columns.used(fields))
                found.append(view)
            there = [(view, query) for view, query in zip(found, queries, strict=True) if view is not None]
            hits = iter(
                await self._views.searches.search_together(*zip(*there, strict=True)) if there else ()
            )
        return [Hits() if view is None else next(hits) for view in found]

    async def neighbours(self, positions: Sequence[int], count: int, *, now_us: int) -> list[Around]:
        view = await self._views.cache.get(self._namespace)
        return [Around()] * len(positions) if view is None else neighbours(view, positions, count, now_us)

    async def sessions(self, query: SessionQuery) -> list[SessionCounts]:
        view = await self._views.cache.get(self._namespace)
        return [] if view is None else list_sessions(view, query)
