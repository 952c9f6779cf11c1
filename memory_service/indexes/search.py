"""Finds the items of a view that match a query best, by words and by vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_service.data_model import Hits, SearchQuery
from memory_service.errors import InvalidArgument
from memory_service.indexes.exact_vectors import Found as Nearest
from memory_service.indexes.inner_products import unit_rows
from memory_service.indexes.selection import row_mask
from memory_service.indexes.view import BoolArray, NamespaceView, RowArray
from memory_service.indexes.word_scoring import Lookup, Scratch

# The number of queries answered together changes the last bits of a sum, which must not decide between two
# equal vectors.
_SCORE_DIGITS = 6
_NOTHING: Nearest = np.empty(0, np.int64), np.empty(0, np.float32)
Terms = tuple[list[int], list[int]]
"""The terms of a text, and those of speakers that it may name."""
UnitVector = NDArray[np.float32]
"""The vector of a query at length 1."""
# Scores are handed to the neighbours of the best documents by words: at least this many, and this many per
# candidate. Then the words of the neighbours are counted for this many rows per candidate.
_SPREAD_DOCS_MIN = 128
_SPREAD_PER_CANDIDATE = 2
_COUNTED_PER_CANDIDATE = 1.5
# A word is significant if at most this many documents, or this fraction of all, have it.
_TELLING_DOCS_MIN = 1024
_TELLING_SHARE = 16
# The cost of a candidate by words, including its neighbours, and of a compared vector, in postings. They
# really cost four times as much: but a search with many of them has many results, so its call is long anyway,
# and changing threads for it costs an overloaded server a third of its throughput.
_POSTINGS_PER_CANDIDATE = 10
_POSTINGS_PER_VECTOR = 2


@dataclass
class LongSearch:
    """A long search, which may be finished in another thread."""

    view: NamespaceView
    query: SearchQuery
    words: Lookup | None
    rows: BoolArray | None
    vector: UnitVector | None

    @property
    def views(self) -> list[NamespaceView]:
        """The view that it reads."""
        return [self.view]

    def finish(self, scratch: Scratch) -> Hits:
        """Return the hits. Another thread needs a separate scratch, and must hold the view's `searched`."""
        if self.words is not None:
            self.words.use(scratch)
        near = nearest(self.view, self.query, self.rows, self.vector)
        hits = _hits(self.view, self.query, self.words, self.rows, self.vector, near)
        if self.query.described:
            describe(self.view, hits)
        return hits


@dataclass(frozen=True)
class Long:
    """The answer to a search that was not done because it takes long, with the terms of its text."""

    terms: Terms | None


Found = Hits | InvalidArgument | Long


def search(view: NamespaceView, query: SearchQuery) -> Hits:
    """Return the best items of every requested channel, with all their scores."""
    found = search_all(view, [query])[0]
    if isinstance(found, Exception):
        raise found
    assert isinstance(found, Hits)
    return found


def search_all(
    view: NamespaceView, queries: Sequence[SearchQuery], long_postings: int | None = None
) -> list[Found]:
    """Answer several queries, each with its hits or its error.

    The vectors of unfiltered queries are compared together. A query that costs more than `long_postings` is
    not executed: see `begin_long`.
    """
    view.index_pending()
    answers: list[Found] = [Hits()] * len(queries)
    masks = [row_mask(view, query.filter) for query in queries]
    terms = [None if query.text is None else view.analyzer.query_terms(query.text) for query in queries]
    lookups = [
        None if of is None else Lookup(view.tables(query.neighbour_weight), *of)
        for query, of in zip(queries, terms, strict=True)
    ]
    together: dict[int, list[int]] = {}
    for at, (query, rows, words) in enumerate(zip(queries, masks, lookups, strict=True)):
        if (error := dimension_error(view, query)) is not None:
            answers[at] = error
        elif long_postings is not None and work_of(view, query, rows, words) > long_postings:
            answers[at] = Long(terms[at])
        elif query.vector is not None and view.vectors is not None and rows is None:
            together.setdefault(nearest_wanted(query), []).append(at)
        else:
            vector = unit(query.vector)
            answers[at] = _hits(view, query, words, rows, vector, nearest(view, query, rows, vector))
    for count, places in together.items():
        assert view.vectors is not None
        units = unit_rows(np.array([queries[at].vector for at in places], np.float32))
        found = view.vectors.search(units, count)
        if all(queries[at].text is None for at in places):
            for at, hits in zip(places, _hits_of_all(view, found), strict=True):
                answers[at] = hits
            continue
        for at, vector, near in zip(places, units, found, strict=True):
            answers[at] = _hits(view, queries[at], lookups[at], None, vector, near)
    for query, answer in zip(queries, answers, strict=True):
        if query.described and isinstance(answer, Hits):
            describe(view, answer)
    return answers


def begin_long(view: NamespaceView, query: SearchQuery, long: Long) -> LongSearch:
    """Begin a long search, as reported by `search_all`; raises InvalidArgument."""
    view.index_pending()
    if (error := dimension_error(view, query)) is not None:
        raise error
    words = None if long.terms is None else Lookup(view.tables(query.neighbour_weight), *long.terms)
    return LongSearch(view, query, words, row_mask(view, query.filter), unit(query.vector))


def unit(vector: UnitVector | None) -> UnitVector | None:
    """Return a vector at length 1."""
    return None if vector is None else unit_rows(np.array([vector], np.float32))[0]


def work_of(view: NamespaceView, query: SearchQuery, rows: BoolArray | None, words: Lookup | None) -> int:
    """Return the approximate cost of a search, in postings."""
    work = 0
    if words is not None:
        postings = words.posting_count(rows is None, widths(query.candidates))
        work += postings + _POSTINGS_PER_CANDIDATE * min(query.candidates, postings)
    if query.vector is not None and view.vectors is not None:
        allowed_count = None if rows is None else int(np.count_nonzero(rows))
        work += _POSTINGS_PER_VECTOR * view.vectors.work(nearest_wanted(query), allowed_count)
    return work


def dimension_error(view: NamespaceView, query: SearchQuery) -> InvalidArgument | None:
    """Return the error of a query whose vector does not have the dimension of the view; None if it has."""
    if query.vector is None or view.vectors is None or len(query.vector) == view.vectors.dimension:
        return None
    return InvalidArgument.dimension("query_embedding", view.vectors.dimension, len(query.vector))


def describe(view: NamespaceView, hits: Hits) -> None:
    """Fill the columns with properties of the items."""
    rows = np.searchsorted(view.positions.view, np.array(hits.positions, np.int64))
    hits.create_us = view.create_us.view[rows].tolist()
    hits.importances = view.importances.view[rows].tolist()
    hits.use_counts = view.use_counts.view[rows].tolist()


def nearest_wanted(query: SearchQuery) -> int:
    """Return how many of the nearest vectors a query wants."""
    return query.candidates if query.text is None else query.nearest or query.candidates


def nearest(
    view: NamespaceView, query: SearchQuery, rows: BoolArray | None, vector: UnitVector | None
) -> Nearest:
    """Return the vectors nearest to a query's, among some rows or all; none if there are no vectors."""
    if vector is None or view.vectors is None:
        return _NOTHING
    if rows is None:
        return view.vectors.search(vector[None], nearest_wanted(query))[0]
    return view.vectors.search_among(vector, nearest_wanted(query), rows[view.slot_row.view])


def _hits(
    view: NamespaceView,
    query: SearchQuery,
    words: Lookup | None,
    rows: BoolArray | None,
    vector: UnitVector | None,
    found: Nearest,
) -> Hits:
    """Return the hits of a query, given the nearest vectors."""
    slots, scores = found
    near = view.slot_row.view[slots]
    if words is not None:
        return _finish_text(view, query, words, rows, near, vector)
    return Hits(view.positions.view[near].tolist(), scores.round(_SCORE_DIGITS).tolist())


def _hits_of_all(view: NamespaceView, found: Sequence[Nearest]) -> list[Hits]:
    """Return the hits of several vectors, looked up for all at once."""
    ends = np.cumsum([len(slots) for slots, _ in found]).tolist()
    slots = np.concatenate([slots for slots, _ in found])
    scores = np.concatenate([scores for _, scores in found]).round(_SCORE_DIGITS).tolist()
    positions = view.positions.view[view.slot_row.view[slots]].tolist()
    return [Hits(positions[a:b], scores[a:b]) for a, b in zip([0, *ends], ends, strict=False)]


def _finish_text(
    view: NamespaceView,
    query: SearchQuery,
    words: Lookup,
    rows: BoolArray | None,
    near: RowArray,
    vector: UnitVector | None,
) -> Hits:
    """Add the best by words to the nearest, and look up the scores of each channel for all."""
    rows = indexed_rows(view, rows)
    allowed = None if rows is None else rows.view(np.uint8)
    found, scores, shares = words.search(allowed, near, query.candidates, widths(query.candidates))
    return Hits(
        view.positions.view[found].tolist(),
        None if vector is None else vector_scores(view, found, vector),
        scores.tolist(),
        words.named_in(found),
        word_shares=shares.tolist() if words.term_count else None,
    )


def indexed_rows(view: NamespaceView, rows: BoolArray | None) -> BoolArray | None:
    """Return some rows, or all, without those that no search may find."""
    if not view.unindexed:
        return rows
    rows = np.ones(len(view.positions), np.bool_) if rows is None else rows.copy()
    rows[np.fromiter(view.unindexed, np.int64)] = False
    return rows


def widths(count: int) -> tuple[int, int, int, int]:
    """Return how far the search by words looks, for `Lookup.search`.

    A first pass scores each document alone and hands its score to its neighbours; for the best rows of that,
    the words of the neighbours are counted.
    """
    spread = max(_SPREAD_DOCS_MIN, _SPREAD_PER_CANDIDATE * count)
    return spread, int(_COUNTED_PER_CANDIDATE * count), _TELLING_DOCS_MIN, _TELLING_SHARE


def vector_scores(view: NamespaceView, rows: RowArray, vector: UnitVector) -> list[float | None]:
    """Return the similarity of each row; None for one without a vector."""
    if view.vectors is None:
        return [None] * len(rows)
    return view.vectors.scores_of_rows(rows, view.row_slot.view, vector)
