"""Reading items: by recency, by a query, page by page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from memory_service.clock import now_us
from memory_service.domain.checks import Checks
from memory_service.domain.embedding import Degradation, TextEmbedding
from memory_service.domain.filter_language import FilterLanguage
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.ranking import Ranked, ScoreWeights, Shares, merged, rank
from memory_service.errors import FailedPrecondition, InvalidArgument, Unsupported
from memory_service.predicates import Predicate
from memory_service.records import (
    CONVERSATION_KINDS,
    Hits,
    Item,
    ItemFilter,
    ItemKind,
    NamespaceInfo,
    RetrieveMode,
    SearchQuery,
    Vector,
)
from memory_service.stores.base import Store

DEFAULT_LIMIT = 10
_CANDIDATES_MIN = 64
_CANDIDATES_PER_RESULT = 4
# Words bring most of what vectors find: on conversations, more than these never changed an answer.
_NEAREST_MIN = 16
_NEAREST_PER_RESULT = 2


class Selection(msgspec.Struct):
    """Which items are wanted, as a caller says it."""

    session_id: str = ""
    labels: dict[str, str] = {}
    start_us: int | None = None
    end_us: int | None = None
    filter: str = ""
    kinds: frozenset[ItemKind] = CONVERSATION_KINDS
    tags: tuple[tuple[str, str], ...] = ()
    any_tag: tuple[tuple[str, str], ...] = ()
    """Tags of which an item has one at least; empty: any item. Only with a query."""
    predicate: Predicate | None = None
    """What `filter` says, once it was checked."""

    def scope(self) -> tuple[object, ...]:
        """What a page token is good for."""
        return (
            self.session_id, sorted(self.labels.items()), self.start_us, self.end_us, sorted(self.kinds),
            self.tags, self.any_tag, self.filter,
        )  # fmt: skip

    def one_by_one(self) -> list[ItemFilter]:
        """Return filters that together let through what is wanted, one for each of `any_tag`."""
        return [msgspec.structs.replace(self, tags=(*self.tags, tag)).to_filter() for tag in self.any_tag]

    def to_filter(self, min_position: int = 0, max_position: int | None = None) -> ItemFilter:
        """Return the filter for a store."""
        return ItemFilter(
            now_us(), self.session_id, tuple(self.labels.items()), self.start_us, self.end_us,
            min_position, max_position, self.kinds, self.tags, self.predicate,
        )  # fmt: skip


class RetrieveOptions(msgspec.Struct):
    """What is wanted, as in the proto."""

    selection: Selection
    limit: int | None = None
    query_text: str = ""
    query_embedding: Vector | None = None
    min_score: float | None = None
    mode: RetrieveMode = RetrieveMode.UNSPECIFIED
    context_window: int = 0
    explain: bool = False
    include_embedding: bool = False
    page_size: int = 0
    page_token: str = ""
    now_us: int | None = None
    """What times in the query are relative to; None: now."""
    weights: ScoreWeights | None = None
    max_tokens: int | None = None
    rerank: bool = False
    record_usage: bool = False


class Page(msgspec.Struct):
    """One page of results.

    By a query, each item has its score, and `shares` where an explanation was asked for. By recency
    these lists are empty.
    """

    items: list[Item]
    revision: int
    next_page_token: str = ""
    degraded: Sequence[Degradation] = ()
    scores: list[float] = []
    shares: list[Shares] = []


class Retrieval:
    """Finds items. Reads only. `item_bytes` tells how many bytes an item takes in an answer."""

    def __init__(
        self,
        store: Store,
        embedding: TextEmbedding,
        checks: Checks,
        tokens: PageTokens,
        item_bytes: Callable[[Item], int],
    ) -> None:
        self._item_bytes = item_bytes
        self._store = store
        self._embedding = embedding
        self._checks = checks
        self._tokens = tokens
        self._filters = FilterLanguage(checks.limits)

    async def retrieve(self, namespace: str, options: RetrieveOptions) -> Page:
        """Return the newest items, or the best for a query."""
        self._check(namespace, options)
        limit = DEFAULT_LIMIT if options.limit is None else options.limit
        if options.query_text or options.query_embedding is not None:
            return await self._best(namespace, options, limit)
        return await self._newest(namespace, options, limit)

    def _check(self, namespace: str, options: RetrieveOptions) -> None:
        checks = self._checks
        checks.namespace(namespace)
        if options.limit is not None and options.limit < -1:
            raise InvalidArgument("options.limit", "must be -1 (no limit), 0 or more")
        self.check_selection(options.selection, "options.")
        checks.text("options.query_text", options.query_text)
        if options.query_embedding is not None:
            checks.vector("options.query_embedding", options.query_embedding)
        checks.count("options.context_window", options.context_window)
        if options.context_window:
            raise Unsupported("context_window", "options.context_window is not offered by this version")
        checks.count("options.page_size", options.page_size)
        if options.min_score is not None and options.min_score != options.min_score:
            raise InvalidArgument("options.min_score", "is not a number")

    def check_selection(self, selection: Selection, prefix: str = "") -> None:
        """Check what a caller asks for, and read its filter."""
        self._checks.session_id(selection.session_id, f"{prefix}session_id")
        if selection.labels:
            self._checks.labels(f"{prefix}labels", selection.labels)
        if selection.filter:
            selection.predicate = self._filters.parse(f"{prefix}filter", selection.filter)
        start, end = selection.start_us, selection.end_us
        if start is not None and end is not None and end < start:
            raise InvalidArgument(f"{prefix}end_time", "lies before start_time")

    # --- by recency ---------------------------------------------------------------------------

    async def _newest(self, namespace: str, options: RetrieveOptions, limit: int) -> Page:
        scope = ("newest", namespace, limit, options.include_embedding, *options.selection.scope())
        page_size = self._page_size(options.page_size)
        place = self._place(scope, options.page_token) if options.page_token else None
        info = await self._store.namespace(namespace)
        if info is None or limit == 0:
            return Page([], info.revision if info else 0)
        if place is not None:
            first, last = place
            wanted = options.selection.to_filter(first, last)
            positions = await self._store.scan(namespace, wanted, page_size + 1, newest=False)
        else:
            last = info.revision
            wanted = options.selection.to_filter(max_position=last)
            positions = await self._store.scan(namespace, wanted, limit, newest=True)
        page, rest = await self.load_page(namespace, positions, page_size, options.include_embedding)
        token = self._tokens.make(scope, [rest, last]) if rest is not None else ""
        return Page(page, info.revision, token)

    def _place(self, scope: tuple[object, ...], token: str) -> tuple[int, int]:
        first, last = self._tokens.read(scope, token, "options.page_token")
        return int(first), int(last)

    def _page_size(self, asked: int) -> int:
        return min(asked or self._checks.limits.page_items_max, self._checks.limits.page_items_max)

    async def load_page(
        self, namespace: str, positions: Sequence[int], page_size: int, with_embedding: bool
    ) -> tuple[list[Item], int | None]:
        """Load as many items as a page takes; return them and the position that the next begins at."""
        page: list[Item] = []
        nbytes = 0
        for at in range(0, len(positions), _LOADED_AT_ONCE):
            chunk = positions[at : min(at + _LOADED_AT_ONCE, len(positions))]
            items = await self._store.load_items(namespace, chunk, with_embedding=with_embedding)
            for position, item in zip(chunk, items, strict=True):
                if item is None:
                    continue
                size = self._item_bytes(item)
                if len(page) >= page_size or (page and nbytes + size > self._checks.limits.page_bytes_max):
                    return page, position
                page.append(item)
                nbytes += size
        return page, None

    # --- by a query ---------------------------------------------------------------------------

    async def _best(self, namespace: str, options: RetrieveOptions, limit: int) -> Page:
        first = self._first_of_page(namespace, options, limit) if options.page_token else 0
        info = await self._store.namespace(namespace)
        vector, text, mode, degraded = await self._channels(info, options)
        if info is None or limit == 0:
            return Page([], info.revision if info else 0, degraded=degraded)
        if vector is not None and info.dimension and len(vector) != info.dimension:
            raise InvalidArgument.dimension("options.query_embedding", info.dimension, len(vector))
        if vector is None and text is None:
            return Page([], info.revision, degraded=degraded)
        ranked = await self._ranked(namespace, info, options, limit, vector, text, mode)
        page = await self._cut(namespace, options, limit, ranked, first)
        page.revision, page.degraded = info.revision, degraded
        return page

    async def _channels(
        self, info: NamespaceInfo | None, options: RetrieveOptions
    ) -> tuple[Vector | None, str | None, RetrieveMode, Sequence[Degradation]]:
        """Return what to search by: a vector, a text or both, and the mode that comes of it."""
        mode, vector = options.mode, options.query_embedding
        if mode in (RetrieveMode.LEXICAL, RetrieveMode.HYBRID) and not options.query_text:
            raise InvalidArgument("options.query_text", f"is required by mode {mode.name}")
        if mode is RetrieveMode.LEXICAL:
            return None, options.query_text, mode, ()
        if vector is None:
            vector, trouble = await self._embed_query(info, options.query_text)
            if trouble is not None and mode is RetrieveMode.VECTOR:
                raise FailedPrecondition.embedder_required(
                    f"mode VECTOR needs a vector, but {trouble.message}"
                )
            if trouble is not None:
                return None, options.query_text, RetrieveMode.LEXICAL, (trouble,)
        if mode is RetrieveMode.VECTOR or not options.query_text:
            return vector, None, RetrieveMode.VECTOR, ()
        return vector, options.query_text, RetrieveMode.HYBRID, ()

    async def _embed_query(
        self, info: NamespaceInfo | None, text: str
    ) -> tuple[Vector | None, Degradation | None]:
        obstacle = self._embedding.obstacle(info)
        return (None, obstacle) if obstacle is not None else await self._embedding.query(text)

    async def _ranked(
        self,
        namespace: str,
        info: NamespaceInfo,
        options: RetrieveOptions,
        limit: int,
        vector: Vector | None,
        text: str | None,
        mode: RetrieveMode,
    ) -> Ranked:
        """Return the best `limit` of all pages, in order."""
        if limit < 0 or limit > info.item_count:
            limit = max(info.item_count, 1)
        # The same candidates for every page, or pages would not fit together.
        candidates = nearest = limit
        if mode is RetrieveMode.HYBRID:
            candidates = max(_CANDIDATES_MIN, _CANDIDATES_PER_RESULT * limit)
            nearest = max(_NEAREST_MIN, _NEAREST_PER_RESULT * limit)
        candidates = min(candidates, max(info.item_count, 1))
        nearest = min(nearest, candidates)
        selection = options.selection
        if selection.any_tag:
            queries = [
                SearchQuery(wanted, candidates, vector, text, nearest) for wanted in selection.one_by_one()
            ]
            hits = await self._search(namespace, queries)
        else:
            query = SearchQuery(selection.to_filter(), candidates, vector, text, nearest)
            hits = await self._store.search(namespace, query)
        ranked = rank(hits, mode, explain=options.explain)
        if options.min_score is not None:
            least = options.min_score
            ranked.order = [pair for pair in ranked.order if pair[0] >= least]
        del ranked.order[limit:]
        return ranked

    async def _search(self, namespace: str, queries: Sequence[SearchQuery]) -> Hits:
        """Return what any of the queries finds, each item once."""
        found = await asyncio.gather(*(self._store.search(namespace, query) for query in queries))
        return merged(found)

    async def _cut(
        self, namespace: str, options: RetrieveOptions, limit: int, ranked: Ranked, first: int
    ) -> Page:
        """Load the page that is asked for, and make the token of the next. Its revision is not set."""
        wanted = ranked.order
        page_size = self._page_size(options.page_size)
        if first or len(wanted) > page_size:
            wanted = wanted[first : first + page_size]
        loaded = await self._store.load_items(
            namespace, [position for _, position in wanted], with_embedding=options.include_embedding
        )
        taken, items = self._fitting(loaded, options.include_embedding)
        if len(items) < len(wanted):
            wanted = [place for place, item in zip(wanted[:taken], loaded, strict=False) if item is not None]
        token = ""
        if first + taken < len(ranked.order):
            token = self._tokens.make(self._query_scope(namespace, options, limit), [first + taken])
        return Page(
            items,
            0,
            token,
            scores=[score for score, _ in wanted],
            shares=[ranked.shares[position] for _, position in wanted] if options.explain else [],
        )

    def _fitting(self, loaded: list[Item | None], with_embedding: bool) -> tuple[int, list[Item]]:
        """Return how many of what was loaded fit into a page, and those of them that exist."""
        items = [item for item in loaded if item is not None]
        bytes_max = self._checks.limits.page_bytes_max
        if not with_embedding:
            # What was sent before tells its size: most pages need no other look.
            sizes = [len(item.framed) for item in items if item.framed is not None]
            if len(sizes) == len(items) and sum(sizes) <= bytes_max:
                return len(loaded), items
        items, nbytes = [], 0
        for at, item in enumerate(loaded):
            if item is not None:
                nbytes += self._item_bytes(item)
                if nbytes > bytes_max and items:
                    return at, items
                items.append(item)
        return len(loaded), items

    def _first_of_page(self, namespace: str, options: RetrieveOptions, limit: int) -> int:
        scope = self._query_scope(namespace, options, limit)
        return int(self._tokens.read(scope, options.page_token, "options.page_token")[0])

    @staticmethod
    def _query_scope(namespace: str, options: RetrieveOptions, limit: int) -> tuple[object, ...]:
        embedding = options.query_embedding
        return (
            "best", namespace, limit, options.query_text, None if embedding is None else embedding.tobytes(),
            options.min_score, int(options.mode), options.include_embedding, *options.selection.scope(),
        )  # fmt: skip


_LOADED_AT_ONCE = 100
