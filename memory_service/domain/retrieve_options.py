"""What callers ask of a retrieval, and a page of its results."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory_service.data_model import (
    CONVERSATION_KINDS,
    Item,
    ItemFilter,
    ItemKind,
    RetrieveMode,
    SourceKind,
    Vector,
)
from memory_service.domain.embedding import Degradation
from memory_service.domain.neighbours import Window
from memory_service.domain.query_options import NO_OPTIONS, QueryOptions
from memory_service.domain.ranking import ScoreWeights, Shares
from memory_service.predicates import And, Comparison, Field, FieldName, Operator, Or, Predicate
from memory_service.runtime.clock import now_us


class Selection(msgspec.Struct):
    """The conditions on items, as the caller sent them."""

    session_id: str = ""
    labels: dict[str, str] = {}
    start_us: int | None = None
    end_us: int | None = None
    filter: str = ""
    kinds: frozenset[ItemKind] = CONVERSATION_KINDS
    tags: tuple[tuple[str, str], ...] = ()
    any_tag: tuple[tuple[str, str], ...] = ()
    """Tags of which an item must have one at least; empty: any item."""
    min_trust: float | None = None
    sources: frozenset[SourceKind] | None = None
    """None: any."""
    predicate: Predicate | None = None
    """The parsed `filter`, `min_trust` and `sources`, once they were checked."""

    def scope(self) -> tuple[object, ...]:
        """The part of a request that a page token is bound to."""
        return (
            self.session_id, sorted(self.labels.items()), self.start_us, self.end_us, sorted(self.kinds),
            self.tags, self.any_tag, self.filter, self.min_trust,
            None if self.sources is None else sorted(self.sources),
        )  # fmt: skip

    def trusts(self, item: Item) -> bool:
        """Return whether an item satisfies `min_trust` and `sources`."""
        return (self.min_trust is None or item.trust >= self.min_trust) and (
            self.sources is None or item.source in self.sources
        )

    def to_filter(self, min_position: int = 0, max_position: int | None = None) -> ItemFilter:
        """Return the filter for a store."""
        return ItemFilter(
            now_us(), self.session_id, tuple(self.labels.items()), self.start_us, self.end_us,
            min_position, max_position, self.kinds, self.tags, self.predicate, self.any_tag,
        )  # fmt: skip


def with_trust(selection: Selection) -> Predicate | None:
    """Return a predicate of all conditions except kinds, labels and times."""
    parts = [] if selection.predicate is None else [selection.predicate]
    if selection.min_trust is not None:
        parts.append(Comparison(Field(FieldName.TRUST), Operator.GREATER_EQUAL, selection.min_trust))
    if selection.sources is not None:
        names = sorted(source.name.lower() for source in selection.sources)
        source = Field(FieldName.SOURCE)
        parts.append(Or(tuple(Comparison(source, Operator.EQUAL, name) for name in names)))
    return And(tuple(parts)) if len(parts) > 1 else next(iter(parts), None)


class RetrieveOptions(msgspec.Struct):
    """The options of a request, as in the proto."""

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
    """The time to which times in the query are relative; None: now."""
    weights: ScoreWeights | None = None
    max_tokens: int | None = None
    rerank: bool = False
    record_usage: bool = False
    order_by: str = ""
    skip: int = 0
    beyond: QueryOptions = NO_OPTIONS

    @property
    def has_query(self) -> bool:
        """Return whether to return the best items for a query, not the newest."""
        return bool(self.query_text) or self.query_embedding is not None or bool(self.beyond.queries)

    @property
    def fills_pages(self) -> bool:
        """Return whether a page is filled result by result."""
        return bool(self.context_window) or self.max_tokens is not None


class Page(msgspec.Struct):
    """One page of results.

    For a query, each item has its score and its relevance, and `shares` if an explanation was requested. By
    recency these lists are empty. `matched` are the queries that found each item, if there were several;
    `namespaces` has that of each, if there were several. `windows` are the neighbours of each item, empty if
    none were requested; `token_count` is that of the texts, 0 without a budget.
    """

    items: list[Item]
    revision: int
    next_page_token: str = ""
    degraded: Sequence[Degradation] = ()
    scores: list[float] = []
    shares: list[Shares] = []
    windows: list[Window] = []
    token_count: int = 0
    relevances: list[float] = []
    matched: list[list[int]] = []
    namespaces: list[str] = []
