"""Reads items: by recency, by a query, page by page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from memory_service.data_model import (
    Item,
    NamespaceInfo,
    RetrieveMode,
    SearchQuery,
    Vector,
)
from memory_service.domain.boosting import boosted
from memory_service.domain.checks import Checks
from memory_service.domain.embedding import Degradation, TextEmbedding, pending_items
from memory_service.domain.exchanges import incomplete
from memory_service.domain.filter_language import FilterLanguage
from memory_service.domain.fusing import fused
from memory_service.domain.joint_reading import JointReading, positions_by_name
from memory_service.domain.ordered_pages import OrderedPages
from memory_service.domain.ordering import to_ordering
from memory_service.domain.packing import MISSES_MAX
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.query_understanding import NOTHING, QueryReader
from memory_service.domain.ranking import DEFAULT_WEIGHTS, Ranked, Scoring, rank
from memory_service.domain.refreshing import refresh_all
from memory_service.domain.relevance import Relevance
from memory_service.domain.reranking import RERANKED_MAX, Reranking, Scored, reorder
from memory_service.domain.result_pages import PageShape, Place, ResultPages
from memory_service.domain.retrieve_options import Page, RetrieveOptions, Selection, with_trust
from memory_service.errors import FailedPrecondition, InvalidArgument
from memory_service.reading import Reading, SearchReading
from memory_service.runtime.caller import present_caller
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import give_way
from memory_service.store import Store

DEFAULT_LIMIT = 10
_CANDIDATES_MIN = 64
_CANDIDATES_PER_RESULT = 4
# Words find most of what vectors find: on conversations, a larger number hardly changed an answer.
_NEAREST_MIN = 10
# If properties of items count, the best items may rank low by words and vectors.
_WEIGHED_CANDIDATES_MIN = 256
_WEIGHED_CANDIDATES_PER_RESULT = 16


Cut = tuple[Page, list[tuple[float, int]], Place | None]
"""A page, the scores and positions of its results, and where the next begins."""
Asked = tuple[Vector | None, str | None, RetrieveMode]
"""The vector, the text or both to search by, and the mode that results."""


class Retrieval:
    """Finds items. The only write is the use count, on request.

    `item_bytes` returns the size of an item in a response; `reranking` is set if callers may request it.
    """

    def __init__(
        self,
        store: Store,
        embedding: TextEmbedding,
        checks: Checks,
        filters: FilterLanguage,
        tokens: PageTokens,
        item_bytes: Callable[[Item], int],
        reranking: Reranking | None = None,
    ) -> None:
        self._item_bytes = item_bytes
        self._reranking = reranking
        self.pages = ResultPages(item_bytes, checks.limits.page_bytes_max)
        self.ordered = OrderedPages(tokens, self.pages)
        self._store = store
        self._embedding = embedding
        self._checks = checks
        self._tokens = tokens
        self._filters = filters
        self._reader = QueryReader()

    async def retrieve(self, namespace: str, options: RetrieveOptions) -> Page:
        """Return the newest items, or the best for a query."""
        self._check(namespace, options)
        limit = DEFAULT_LIMIT if options.limit is None else options.limit
        if options.has_query:
            page = await self._best(namespace, options, limit)
        elif options.order_by:
            page = await self._in_order(namespace, options, limit)
        else:
            page = await self._newest(namespace, options, limit)
        if options.record_usage and page.items:
            names = page.namespaces or [namespace] * len(page.items)
            for name, positions in positions_by_name(names, page.items).items():
                await self._store.record_uses(name, positions, by=present_caller())
        if options.beyond.refresh_ttl and page.items:
            names = page.namespaces or [namespace] * len(page.items)
            await refresh_all(self._store, names, page.items)
        return page

    def _check(self, namespace: str, options: RetrieveOptions) -> None:
        checks = self._checks
        options.beyond.check(namespace, checks, with_query=options.has_query)
        if options.limit is not None and options.limit < -1:
            raise InvalidArgument("options.limit", "must be -1 (no limit), 0 or more")
        self.check_selection(options.selection, "options.")
        if options.query_text:
            checks.text("options.query_text", options.query_text)
        if options.query_embedding is not None:
            checks.vector("options.query_embedding", options.query_embedding)
        if options.context_window:
            checks.count("options.context_window", options.context_window)
            checks.size("options.context_window", options.context_window, "context_window_items_max")
        if options.max_tokens is not None and options.max_tokens < 1:
            raise InvalidArgument("options.max_tokens", "must be positive")
        if options.page_size:
            checks.count("options.page_size", options.page_size)
        if options.min_score is not None and options.min_score != options.min_score:
            raise InvalidArgument("options.min_score", "is not a number")
        checks.count("options.skip", options.skip)
        if not options.has_query:
            self._check_no_query(options)
        elif options.order_by or options.skip:
            name = "order_by" if options.order_by else "skip"
            raise InvalidArgument(f"options.{name}", "cannot be given together with a query")
        elif options.rerank and not options.query_text:
            raise InvalidArgument("options.rerank", "needs a query_text")

        if options.weights is not None:
            options.weights.check("options.weights")

    @staticmethod
    def _check_no_query(options: RetrieveOptions) -> None:
        """Reject options that have no effect without a query, which was probably forgotten."""
        for name, given in (
            ("min_score", options.min_score is not None),
            ("mode", options.mode is not RetrieveMode.UNSPECIFIED),
            ("weights", options.weights is not None),
            ("rerank", options.rerank),
        ):
            if given:
                raise InvalidArgument(f"options.{name}", "needs a query")
        if options.order_by and options.max_tokens is not None:
            raise InvalidArgument("options.max_tokens", "cannot be given together with order_by")
        if options.order_by and options.beyond.whole_exchanges:
            raise InvalidArgument("options.whole_exchanges", "cannot be given together with order_by")

    def check_selection(self, selection: Selection, prefix: str = "") -> None:
        """Check the conditions, and parse the filter."""
        if selection.session_id:
            self._checks.session_id(selection.session_id, f"{prefix}session_id")
        if selection.labels:
            self._checks.labels(f"{prefix}labels", selection.labels)
        # Again even if it was checked before: an answer may take several retrievals.
        selection.predicate = (
            self._filters.parse(f"{prefix}filter", selection.filter) if selection.filter else None
        )
        if selection.min_trust is not None and not 0 <= selection.min_trust <= 1:
            raise InvalidArgument(f"{prefix}min_trust", "must be a number from 0 to 1")
        if selection.min_trust is not None or selection.sources is not None:
            selection.predicate = with_trust(selection)
        start, end = selection.start_us, selection.end_us
        if start is not None and end is not None and end < start:
            raise InvalidArgument(f"{prefix}end_time", "is before start_time")

    # --- by recency ---------------------------------------------------------------------------

    async def _newest(self, namespace: str, options: RetrieveOptions, limit: int) -> Page:
        scope = (
            "newest", namespace, limit, options.include_embedding, options.context_window, options.max_tokens,
            options.skip, *options.selection.scope(), *options.beyond.scope(),
        )  # fmt: skip
        shape, left = self._shape(options), set[int]()
        place = (
            self._tokens.read(scope, options.page_token, "options.page_token") if options.page_token else ()
        )
        reading = await self._store.read(namespace)
        info = reading.info
        if info is None or limit == 0:
            return Page([], info.revision if info else 0)
        if place:
            begin, first, last = map(int, place)
            if options.beyond.whole_exchanges:
                left = await incomplete(reading, options.selection.to_filter(begin, last))
            wanted = options.selection.to_filter(first, last)
            positions = await reading.scan(wanted, shape.size + 1 + len(left), newest=False)
        else:
            last = info.revision
            wanted = options.selection.to_filter(max_position=last)
            positions = await reading.scan(wanted, limit if limit < 0 else limit + options.skip, newest=True)
            if options.skip:
                positions = positions[: -options.skip]
                last = positions[-1] if positions else last
            if options.max_tokens is not None:
                fitting = await self.pages.first_that_fits(reading, positions, shape, options.max_tokens)
                positions = positions[fitting:]
            begin = first = positions[0] if positions else last
            if options.beyond.whole_exchanges:
                left = await incomplete(reading, options.selection.to_filter(begin, last))
        if left:
            positions = [position for position in positions if position not in left]
        if options.fills_pages:
            page, rest = await self._surrounded(reading, positions, options, begin, first)
        else:
            items, rest = await self.pages.load_page(reading, positions, shape.size, shape.with_embedding)
            page = Page(items, 0)
        page.revision = info.revision
        page.next_page_token = self._tokens.make(scope, [begin, rest, last]) if rest is not None else ""
        return page

    async def _in_order(self, namespace: str, options: RetrieveOptions, limit: int) -> Page:
        """Return the first items in the order of a field."""
        ordering = to_ordering("options.order_by", options.order_by, self._checks)
        scope = (
            "ordered", namespace, limit, options.include_embedding, options.context_window, options.order_by,
            options.skip, *options.selection.scope(),
        )  # fmt: skip
        place = self.ordered.place(scope, options.page_token, "options.page_token", limit)
        reading = await self._store.read(namespace)
        info = reading.info
        if info is None or limit == 0:
            return Page([], info.revision if info else 0)
        wanted, shape = options.selection.to_filter(), self._shape(options)
        page = await self.ordered.load(reading, wanted, ordering, options.skip, place, shape, scope)
        return Page(page.items, info.revision, page.next_page_token, windows=page.windows)

    async def _surrounded(
        self, reading: Reading, positions: list[int], options: RetrieveOptions, begin: int, first: int
    ) -> tuple[Page, int | None]:
        """Load a page of results with their neighbours; return it and where the next begins.

        All of them fit into the budget. Pages from `begin` to before `first` are not counted again.
        """
        shape, budget = self._shape(options), None
        if options.max_tokens is not None:
            wanted = options.selection.to_filter(begin, first - 1)
            passed = await reading.scan(wanted, -1, newest=False) if first > begin else []
            budget = await self.pages.budget(reading, passed, shape, None)
        filled = await self.pages.fill(reading, positions, shape, budget)
        page = Page(filled.items, 0, windows=filled.windows, token_count=filled.token_count)
        return page, positions[filled.rest.first] if filled.rest else None

    def _shape(self, options: RetrieveOptions) -> PageShape:
        size = min(
            options.page_size or self._checks.limits.page_items_max, self._checks.limits.page_items_max
        )
        return PageShape(size, options.context_window, options.selection.trusts, options.include_embedding)

    # --- by a query ---------------------------------------------------------------------------

    async def _best(self, namespace: str, options: RetrieveOptions, limit: int) -> Page:
        place = self._place(namespace, options, limit)
        reading = await self._open(namespace, options)
        info = reading.info
        asked, degraded = await self._asked(info, options)
        if info is None or limit == 0:
            return Page([], info.revision if info else 0, degraded=degraded)
        vectors = [vector for vector, _, _ in asked if vector is not None]
        for vector in vectors:
            if info.dimension and len(vector) != info.dimension:
                raise InvalidArgument.dimension("options.query_embedding", info.dimension, len(vector))
        if not asked:
            return Page([], info.revision, degraded=degraded)
        if vectors and info.pending_count:
            degraded = (*degraded, pending_items(info.pending_count))
        if vectors and isinstance(reading, JointReading) and reading.has_foreign:
            degraded = (*degraded, self._embedding.foreign)
        if options.rerank:
            unbounded = msgspec.structs.replace(options, min_score=None)
            depth = _depth(limit, options.max_tokens, RERANKED_MAX)
            ranked = await self._ranked(reading, info, unbounded, depth, asked, place.now_us)
            place, degraded = await self._reranked(reading, options, ranked, place, degraded)
            if (wanted := _depth(limit, options.max_tokens)) >= 0:
                del ranked.order[wanted:]
        else:
            depth = _depth(limit, options.max_tokens)
            ranked = await self._ranked(reading, info, options, depth, asked, place.now_us)
        page = await self._cut(namespace, reading, options, limit, ranked, place)
        page.revision, page.degraded = info.revision, degraded
        if isinstance(reading, JointReading):
            page.namespaces = reading.names_of(page.items)
        return page

    async def _open(self, namespace: str, options: RetrieveOptions) -> SearchReading:
        names = options.beyond.names(namespace)
        if not names:
            return await self._store.read(namespace)
        return await JointReading.open(self._store, names, self._embedding.model, options.query_embedding)

    async def _reranked(
        self,
        reading: SearchReading,
        options: RetrieveOptions,
        ranked: Ranked,
        place: Place,
        degraded: Sequence[Degradation],
    ) -> tuple[Place, Sequence[Degradation]]:
        """Reorder the best by the reranker; return the place with its scores, and degradations.

        Later pages use the scores of the first, or they would not fit together.
        """
        assert self._reranking is not None
        scored: Scored | None = place.reranked or None
        if not options.page_token:
            scored = await self._reranking.score(reading, options.query_text, ranked)
        if scored is None:
            degraded = (*degraded, self._reranking.degradation)
        else:
            reorder(ranked, scored, explain=options.explain)
        ranked.keep(options.min_score, None)
        return msgspec.structs.replace(place, reranked=scored or []), degraded

    async def _asked(
        self, info: NamespaceInfo | None, options: RetrieveOptions
    ) -> tuple[list[Asked], Sequence[Degradation]]:
        """Return what to search for, and degradations; nothing if no text can be searched for."""
        if not options.beyond.queries:
            vector, text, mode, degraded = await self._channels(info, options)
            return ([] if vector is None and text is None else [(vector, text, mode)]), degraded
        texts = [
            msgspec.structs.replace(options, query_text=q, query_embedding=None)
            for q in options.beyond.queries
        ]
        every = [options, *texts] if options.query_text or options.query_embedding is not None else texts
        found = await asyncio.gather(*(self._channels(info, each) for each in every))
        degraded = tuple(dict.fromkeys(its for *_, all_ in found for its in all_))
        return [(vector, text, mode) for vector, text, mode, _ in found], degraded

    async def _channels(
        self, info: NamespaceInfo | None, options: RetrieveOptions
    ) -> tuple[Vector | None, str | None, RetrieveMode, Sequence[Degradation]]:
        """Return the vector, the text or both to search by, and the resulting mode."""
        mode, vector = options.mode, options.query_embedding
        if mode in (RetrieveMode.LEXICAL, RetrieveMode.HYBRID) and not options.query_text:
            raise InvalidArgument("options.query_text", f"is required by mode {mode.name}")
        if mode is RetrieveMode.LEXICAL:
            return None, options.query_text, mode, ()
        if vector is None:
            vector, trouble = await self._embedding.query(info, options.query_text)
            if trouble is not None and mode is RetrieveMode.VECTOR:
                raise FailedPrecondition.embedder_required(
                    f"mode VECTOR needs a vector, but {trouble.message}"
                )
            if trouble is not None:
                return None, options.query_text, RetrieveMode.LEXICAL, (trouble,)
        if mode is RetrieveMode.VECTOR or not options.query_text:
            return vector, None, RetrieveMode.VECTOR, ()
        return vector, options.query_text, RetrieveMode.HYBRID, ()

    async def _ranked(
        self,
        reading: SearchReading,
        info: NamespaceInfo,
        options: RetrieveOptions,
        limit: int,
        asked: Sequence[Asked],
        now_us: int,
    ) -> Ranked:
        """Return the best `limit` results of all pages, in order."""
        queries = options.beyond.queries
        found: list[Ranked] = []
        for vector, text, mode in asked:
            if found:
                await give_way()
            scoring = Scoring(mode, options.weights or DEFAULT_WEIGHTS, now_us)
            found.append(await self._ranked_by(reading, info, options, limit, vector, text, scoring))
        ranked = found[0]
        if queries:
            ranked = fused(found, len(queries) - len(asked), limit, explain=options.explain)
        ranked.keep(options.min_score, options.beyond.min_relevance)
        return ranked

    async def _ranked_by(
        self,
        reading: SearchReading,
        info: NamespaceInfo,
        options: RetrieveOptions,
        limit: int,
        vector: Vector | None,
        text: str | None,
        scoring: Scoring,
    ) -> Ranked:
        """Return the best `limit` results of one query."""
        if limit < 0 or limit > info.item_count:
            limit = max(info.item_count, 1)
        asked = NOTHING
        if text is not None:
            time_zone = options.beyond.time_zone or info.settings.time_zone
            asked = await self._reader.read(text, scoring.now_us, time_zone)
        weighed = scoring.weights.weigh_items
        described = weighed or bool(asked.spans)
        # The same candidates for every page, or pages would not fit together.
        candidates = nearest = limit
        if weighed:
            candidates = max(_WEIGHED_CANDIDATES_MIN, _WEIGHED_CANDIDATES_PER_RESULT * limit)
            nearest = candidates
        elif scoring.mode is RetrieveMode.HYBRID or asked is not NOTHING:
            candidates = max(_CANDIDATES_MIN, _CANDIDATES_PER_RESULT * limit)
            nearest = max(_NEAREST_MIN, limit)
        candidates = min(candidates, max(info.item_count, 1))
        nearest = min(nearest, candidates)
        wanted, weight = options.selection.to_filter(), options.beyond.neighbours_weigh
        hits = await reading.search(SearchQuery(wanted, candidates, vector, text, nearest, described, weight))
        boosts = await boosted(reading, hits, scoring, asked) if asked is not NOTHING else None
        ranked = rank(hits, scoring, boosts, limit, explain=options.explain)
        ranked.relevance = Relevance(hits, self._embedding.scale(info))
        return ranked

    async def _cut(
        self,
        namespace: str,
        reading: SearchReading,
        options: RetrieveOptions,
        limit: int,
        ranked: Ranked,
        place: Place,
    ) -> Page:
        """Load the requested page, and make the token of the next. Its revision is not set."""
        if options.fills_pages:
            page, wanted, rest = await self._filled(reading, options, limit, ranked, place)
        else:
            page, wanted, rest = await self._loaded(reading, options, ranked, place)
        if rest is not None:
            page.next_page_token = self._tokens.make(self._scope(namespace, options, limit), [rest.text])
        page.scores = [score for score, _ in wanted]
        positions = [position for _, position in wanted]
        if ranked.relevance is not None:
            page.relevances = ranked.relevance.of(positions)
        if options.beyond.queries:
            page.matched = [ranked.matched[position] for position in positions]
        if options.explain:
            page.shares = [ranked.shares[position] for _, position in wanted]
        return page

    async def _loaded(
        self, reading: SearchReading, options: RetrieveOptions, ranked: Ranked, place: Place
    ) -> Cut:
        """Load results in order."""
        shape, first, wanted = self._shape(options), place.first, ranked.order
        if first or len(wanted) > shape.size:
            wanted = wanted[first : first + shape.size]
        positions = [position for _, position in wanted]
        loaded = await reading.load_items(positions, with_embedding=shape.with_embedding)
        taken, items = self.pages.fitting(loaded, shape.with_embedding)
        if len(items) < len(wanted):
            wanted = [each for each, item in zip(wanted[:taken], loaded, strict=False) if item is not None]
        more = first + taken < len(ranked.order)
        return Page(items, 0), wanted, msgspec.structs.replace(place, first=first + taken) if more else None

    async def _filled(
        self, reading: SearchReading, options: RetrieveOptions, limit: int, ranked: Ranked, place: Place
    ) -> Cut:
        """Load the results that fit into the budget, with their neighbours."""
        shape, budget = self._shape(options), None
        positions = [position for _, position in ranked.order]
        if options.max_tokens is not None:
            passed = [
                position for at, position in enumerate(positions[: place.first]) if at not in place.missed
            ]
            budget = await self.pages.budget(reading, passed, shape, options.max_tokens, place.tokens)
        filled = await self.pages.fill(
            reading, positions, shape, budget, place=place, results_max=limit if limit >= 0 else None
        )
        page = Page(filled.items, 0, windows=filled.windows, token_count=filled.token_count)
        return page, [ranked.order[at] for at in filled.places], filled.rest

    def _place(self, namespace: str, options: RetrieveOptions, limit: int) -> Place:
        if not options.page_token:
            return Place(now_us=now_us() if options.now_us is None else options.now_us)
        scope = self._scope(namespace, options, limit)
        return Place.parse(str(self._tokens.read(scope, options.page_token, "options.page_token")[0]))

    def _scope(self, namespace: str, options: RetrieveOptions, limit: int) -> tuple[object, ...]:
        """Return the part of a request that a page token is bound to."""
        pages = (options.context_window, options.max_tokens, options.rerank)
        return (*self._query_scope(namespace, options, limit), *pages)

    @staticmethod
    def _query_scope(namespace: str, options: RetrieveOptions, limit: int) -> tuple[object, ...]:
        embedding = options.query_embedding
        return (
            "best", namespace, limit, options.query_text, None if embedding is None else embedding.tobytes(),
            options.min_score, int(options.mode), options.include_embedding, options.now_us, options.weights,
            *options.selection.scope(), *options.beyond.scope(),
        )  # fmt: skip


def _depth(limit: int, max_tokens: int | None, at_least: int = 0) -> int:
    """Return how many of the best must be known to find `limit` results that fit; -1: all."""
    if max_tokens is not None:
        # Each result takes at least one token.
        limit = (max_tokens if limit < 0 else min(limit, max_tokens)) + MISSES_MAX
    return limit if limit < 0 else max(limit, at_least)
