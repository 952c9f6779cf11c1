"""Finding the items of a view that fit a query best, by words and by vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory_service.errors import InvalidArgument
from memory_service.indexes.lexical import Postings, sum_by_number
from memory_service.indexes.selection import row_mask
from memory_service.indexes.turns import WEIGHTS
from memory_service.indexes.vectors import unit, unit_rows
from memory_service.indexes.view import BoolArray, NamespaceView, RowArray
from memory_service.records import Hits, SearchQuery

_NONE = -1
# Of so many documents with the best words, the neighbours are looked at; then of so many rows per
# candidate that is wanted, the words of the neighbours are counted.
_SPREAD_DOCS_MIN = 256
_SPREAD_PER_CANDIDATE = 4
_COUNTED_PER_CANDIDATE = 2


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
    terms, names = list(view.analyzer.terms(text)), view.analyzer.speaker_terms(text)
    found_terms = view.lexical.postings([*terms, *names])
    postings = [p for p in found_terms[: len(terms)] if p is not None]
    speakers = [p for p in found_terms[len(terms) :] if p is not None]
    found = _likely(view, postings, rows, query.candidates)
    near, nearness = np.empty(0, np.int32), np.empty(0, np.float32)
    unit_query = None if vector is None else unit(vector)
    if unit_query is not None and view.vectors is not None:
        if rows is None:
            slots, nearness = view.vectors.search(unit_query[None], query.candidates)[0]
        else:
            among = rows[view.slot_row.view]
            slots, nearness = view.vectors.search_among(unit_query, query.candidates, among)
        near = view.slot_row.view[slots]
        found = np.union1d(found, near)
    scores = _score_words(view, found, postings)
    if len(found) > query.candidates:
        best = np.isin(found, near)
        best[np.argpartition(-scores, query.candidates)[: query.candidates]] = True
        found, scores = found[best], scores[best]
    return Hits(
        view.positions.view[found].tolist(),
        None if unit_query is None else _vector_scores(view, found, unit_query, near, nearness),
        scores.tolist(),
        view.lexical.having(speakers, view.row_doc.view[found]).tolist() if speakers else None,
    )


def _likely(
    view: NamespaceView, postings: Sequence[Postings], rows: BoolArray | None, count: int
) -> RowArray:
    """Return the rows that are the best by words, theirs and their neighbours', more than `count`.

    A first look: each document is scored alone, and its score is handed to its neighbours.
    """
    docs, scores = view.lexical.score_telling(postings)
    widest = max(_SPREAD_DOCS_MIN, _SPREAD_PER_CANDIDATE * count)
    if rows is None and len(docs) > widest:
        best = np.argpartition(-scores, widest)[:widest]
        docs, scores = docs[best], scores[best]
    found: RowArray = view.doc_row.view[docs]
    if len(view.turns):
        found, scores = sum_by_number(*view.turns.spread(found, scores), len(view.positions))
    if rows is not None:
        let = rows[found]
        found, scores = found[let], scores[let]
    enough = _COUNTED_PER_CANDIDATE * count
    return found if len(found) <= enough else found[np.argpartition(-scores, enough)[:enough]]


def _score_words(view: NamespaceView, rows: RowArray, postings: Sequence[Postings]) -> NDArray[np.float64]:
    """Return the BM25 scores of rows together with their neighbours."""
    windows = view.turns.windows(rows) if len(view.turns) else rows[:, None]
    weights = WEIGHTS[: windows.shape[1]]
    docs = np.where(windows >= 0, view.row_doc.view[windows], _NONE)
    mean = view.turns.mean_window(max(view.live_count, 1))
    return view.lexical.score_windows(postings, docs, weights, mean)


def _vector_scores(
    view: NamespaceView,
    rows: RowArray,
    query: NDArray[np.float32],
    near: RowArray,
    nearness: NDArray[np.float32],
) -> list[float | None]:
    """Return the scores of rows; those that the search for vectors gave are not computed again.

    To fetch a vector out of the graph costs more than to find it there.
    """
    known: dict[int, float] = dict(zip(near.tolist(), nearness.round(6).tolist(), strict=True))
    scores = [known.get(row) for row in rows.tolist()]
    if view.vectors is None:
        return scores
    slots = view.row_slot.view[rows]
    lacking = [at for at, slot in enumerate(slots.tolist()) if scores[at] is None and slot != _NONE]
    found = view.vectors.scores(slots[lacking].astype(np.int64), query).round(6)
    for at, score in zip(lacking, found.tolist(), strict=True):
        scores[at] = score
    return scores
