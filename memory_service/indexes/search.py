"""Finding the items of a view that fit a query best, by words and by vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory_service.errors import InvalidArgument
from memory_service.indexes.selection import row_mask
from memory_service.indexes.vectors import VectorIndex, unit, unit_rows
from memory_service.indexes.view import BoolArray, NamespaceView, RowArray
from memory_service.indexes.word_scoring import Lookup
from memory_service.records import Hits, SearchQuery

_NONE = -1
# Of so many documents with the best words, the neighbours are looked at; then of so many rows per
# candidate that is wanted, the words of the neighbours are counted.
_SPREAD_DOCS_MIN = 256
_SPREAD_PER_CANDIDATE = 4
_COUNTED_PER_CANDIDATE = 2
# A word tells something if at most so many documents have it, or so small a part of all.
_TELLING_DOCS_MIN = 1024
_TELLING_SHARE = 16


def search(view: NamespaceView, query: SearchQuery) -> Hits:
    """Return the best items of every channel that is asked, with all their scores."""
    found = search_all(view, [query])[0]
    if isinstance(found, Exception):
        raise found
    return found


def search_all(view: NamespaceView, queries: Sequence[SearchQuery]) -> list[Hits | InvalidArgument]:
    """Answer several queries, each with what is found or with the error it gets.

    Those by a vector alone, without a filter, are compared with the vectors together.
    """
    view.index_pending()
    answers: list[Hits | InvalidArgument] = [Hits()] * len(queries)
    together: dict[int, list[int]] = {}
    for at, query in enumerate(queries):
        try:
            vector = None if query.vector is None else _checked(view, query.vector)
        except InvalidArgument as error:
            answers[at] = error
            continue
        rows = row_mask(view, query.filter)
        if query.text is None and vector is not None and rows is None:
            together.setdefault(query.candidates, []).append(at)
        else:
            answers[at] = _search_alone(view, query, vector, rows)
    for count, places in together.items():
        vectors = np.array([queries[at].vector for at in places])
        for at, found in zip(places, _search_vectors(view, vectors, count), strict=True):
            answers[at] = found
    return answers


def _checked(view: NamespaceView, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    if view.vectors is not None and len(vector) != view.vectors.dimension:
        raise InvalidArgument.dimension("query_embedding", view.vectors.dimension, len(vector))
    return vector


def _search_vectors(view: NamespaceView, vectors: NDArray[np.float32], count: int) -> list[Hits]:
    if view.vectors is None:
        return [Hits() for _ in vectors]
    found = view.vectors.search(unit_rows(vectors), count)
    # Looked up together: most of the work is per call and not per entry.
    whole = _hits(view, np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found]))
    hits, end = [], 0
    for slots, _ in found:
        start, end = end, end + len(slots)
        hits.append(Hits(whole.positions[start:end], (whole.vector_scores or [])[start:end]))
    return hits


def _hits(view: NamespaceView, slots: NDArray[np.int64], scores: NDArray[np.float32]) -> Hits:
    # How many queries are answered together changes the last bits of a sum, and must not change
    # which of two equal vectors comes first.
    return Hits(view.positions.view[view.slot_row.view[slots]].tolist(), scores.round(6).tolist())


def _search_alone(
    view: NamespaceView, query: SearchQuery, vector: NDArray[np.float32] | None, rows: BoolArray | None
) -> Hits:
    if query.text is not None:
        return _search_both(view, query, vector, rows)
    if vector is None or view.vectors is None or rows is None:
        return Hits()
    allowed = rows[view.slot_row.view]
    return _hits(view, *view.vectors.search_among(unit(vector), query.candidates, allowed))


def _search_both(
    view: NamespaceView, query: SearchQuery, vector: NDArray[np.float32] | None, rows: BoolArray | None
) -> Hits:
    """Take the best of each channel, and look the other channel's scores up."""
    text = query.text or ""
    near = np.empty(0, np.int32)
    unit_query = None if vector is None else unit(vector)
    if unit_query is not None and view.vectors is not None:
        near = _nearest(view, view.vectors, unit_query, query.nearest or query.candidates, rows)
    words = Lookup(view.tables(), *view.analyzer.query_terms(text))
    allowed = None if rows is None else rows.view(np.uint8)
    found, scores = words.search(allowed, near, query.candidates, _widths(query.candidates))
    return Hits(
        view.positions.view[found].tolist(),
        None if unit_query is None else _vector_scores(view, found, unit_query),
        scores.tolist(),
        words.named_in(found),
    )


def _widths(count: int) -> tuple[int, int, int, int]:
    """Return how far the search by words looks: for `Lookup.search`.

    A first look scores each document alone and hands its score to its neighbours; the words of the
    neighbours are counted for the best rows of that.
    """
    spread = max(_SPREAD_DOCS_MIN, _SPREAD_PER_CANDIDATE * count)
    return spread, _COUNTED_PER_CANDIDATE * count, _TELLING_DOCS_MIN, _TELLING_SHARE


def _nearest(
    view: NamespaceView,
    vectors: VectorIndex,
    query: NDArray[np.float32],
    count: int,
    rows: BoolArray | None,
) -> RowArray:
    """Return the rows of the nearest vectors."""
    if rows is None:
        slots, _ = vectors.search(query[None], count)[0]
    else:
        slots, _ = vectors.search_among(query, count, rows[view.slot_row.view])
    nearest: RowArray = view.slot_row.view[slots]
    return nearest


def _vector_scores(view: NamespaceView, rows: RowArray, query: NDArray[np.float32]) -> list[float | None]:
    slots = view.row_slot.view[rows]
    if view.vectors is None:
        return [None] * len(slots)
    with_vector = slots != _NONE
    if with_vector.all():
        scores: list[float | None] = view.vectors.scores(slots, query).round(6).tolist()
        return scores
    found = iter(view.vectors.scores(slots[with_vector], query).round(6).tolist())
    return [next(found) if there else None for there in with_vector.tolist()]
