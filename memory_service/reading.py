"""Consistent reads of a namespace. Each MUST have a case in `tests/contract/`, which every store runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from memory_service.data_model import (
    Around,
    Hits,
    Item,
    ItemFilter,
    NamespaceInfo,
    SearchQuery,
    SessionCounts,
    SessionQuery,
)
from memory_service.ordering import Ordering, SortKey


class SearchReading(ABC):
    """What a search needs of a namespace, or of several that it searches as one (`joint_reading.py`)."""

    info: NamespaceInfo | None
    """Statistics of the namespace at that check; None if nothing was ever written to it."""

    @abstractmethod
    async def load_items(
        self, positions: Sequence[int], *, with_embedding: bool = False, with_content: bool = True
    ) -> list[Item | None]:
        """Return the items at these positions, in their order; None for a removed item.

        Items are shared: a caller MUST NOT change them, except `wire`. Without `with_content`, contents
        MUST NOT be read from the records, and a caller MUST NOT use them; `with_embedding` is then False.
        """

    @abstractmethod
    async def search(self, query: SearchQuery) -> Hits:
        """Find the items that fit best, in no particular order.

        With a vector, MUST return the `candidates` matching items of the highest cosine similarity, or
        `nearest` of them if there is also a text (approximate: recall of at least 0.99 against exact search,
        however few or many items match). With a text, MUST return the `candidates` matching items of the
        highest BM25 score above 0, with the statistics of this namespace alone; items that match only common
        words of the text may be omitted. For an item of a session, its neighbours there MUST also count,
        with the weights of indexes/turns.py times `neighbour_weight`: those of CONVERSATION_KINDS that are
        stored now, in the order of the namespace, even if the filter excludes them. The date of an item of
        these kinds counts as words of its text. An item whose `index` is empty MUST NOT be found, not even
        by its neighbours' words. `word_shares` MUST be the share of the text's words in it and its
        neighbours. `named` MUST say whether a word of the text is a word of `ItemWrite.speaker`. Each item
        MUST have its score in every channel of the query, even if only one of them found it. With
        `described`, MUST fill the columns that describe the items. A vector whose dimension is not the
        namespace's MUST raise InvalidArgument.dimension("query_embedding", ...).
        """

    @abstractmethod
    async def neighbours(self, positions: Sequence[int], count: int, *, now_us: int) -> list[Around]:
        """Return, for each of these positions, the neighbours of its item in its session.

        These MUST be the `count` items right before it and the `count` right after it, or as many as there
        are, in the order of the namespace, out of those of CONVERSATION_KINDS that have its session and are
        not expired at `now_us`. An item without a session, one of another kind, and a position without an
        item MUST have none.
        """


class Reading(SearchReading):
    """A namespace as of one check of its records; every answer is at least as new.

    Answers may be newer than `info` and than each other; each of them MUST reflect one revision. A namespace
    that does not exist has no items.
    """

    @abstractmethod
    async def scan(self, item_filter: ItemFilter, limit: int, *, newest: bool) -> list[int]:
        """Return positions of matching items in ascending order.

        Returns the first `limit` or, with `newest`, the last `limit`. A negative limit returns all. An item
        matches if all of the filter holds for it; predicates.py defines the predicate.
        """

    @abstractmethod
    async def ordered(
        self,
        item_filter: ItemFilter,
        ordering: Ordering,
        limit: int,
        *,
        skip: int = 0,
        begin: SortKey | None = None,
    ) -> list[tuple[int, SortKey]]:
        """Return the positions of matching items in an order, each with its place in it.

        Leaves out items before the place `begin`, whether or not an item is there; then the first `skip`;
        then returns the first `limit`, or all if it is negative. `ordering.py` defines the order.
        """

    @abstractmethod
    async def label_values(
        self, key: str, prefix: str, after: str | None, limit: int, *, now_us: int
    ) -> list[tuple[str, int]]:
        """Return the distinct values of a label that begin with `prefix`, each with its number of items.

        Counts the items of CONVERSATION_KINDS that are not expired at `now_us`; a value that none of them
        has MUST be left out. Returns the first `limit` values above `after` (None: all) in ascending order
        of their code points.
        """

    @abstractmethod
    async def search_together(self, others: Sequence[Reading], queries: Sequence[SearchQuery]) -> list[Hits]:
        """Find the items that fit best in this namespace and others, and return the hits of each.

        `others` are readings of existing namespaces of the same store; the queries, one for each namespace,
        differ only in the vector, which may be missing. The hits MUST be those that `search` would find if
        one namespace had all items, and have the same scores: with the statistics of all namespaces together,
        and each number of candidates that of all together. Items in sessions of the same name in different
        namespaces are no neighbours.
        """

    @abstractmethod
    async def sessions(self, query: SessionQuery) -> list[SessionCounts]:
        """Return the sessions that match, at most `limit`, the one with the greatest `place` first.

        A session exists if an item of CONVERSATION_KINDS, or one of kind SESSION, names it and has not
        expired. Only the former MUST be counted, and only they MUST give it its times and its place, if there
        are any. `last_position` MUST be that of the last item among those of the latest create_us.
        """


class _Nothing(Reading):
    """A reading of a namespace that does not exist."""

    info = None

    async def load_items(
        self, positions: Sequence[int], *, with_embedding: bool = False, with_content: bool = True
    ) -> list[Item | None]:
        return [None] * len(positions)

    async def scan(self, item_filter: ItemFilter, limit: int, *, newest: bool) -> list[int]:
        return []

    async def ordered(
        self,
        item_filter: ItemFilter,
        ordering: Ordering,
        limit: int,
        *,
        skip: int = 0,
        begin: SortKey | None = None,
    ) -> list[tuple[int, SortKey]]:
        return []

    async def label_values(
        self, key: str, prefix: str, after: str | None, limit: int, *, now_us: int
    ) -> list[tuple[str, int]]:
        return []

    async def search(self, query: SearchQuery) -> Hits:
        return Hits()

    async def search_together(self, others: Sequence[Reading], queries: Sequence[SearchQuery]) -> list[Hits]:
        raise AssertionError("only for existing namespaces")

    async def neighbours(self, positions: Sequence[int], count: int, *, now_us: int) -> list[Around]:
        return [Around()] * len(positions)

    async def sessions(self, query: SessionQuery) -> list[SessionCounts]:
        return []


NOTHING = _Nothing()
"""The one instance."""
