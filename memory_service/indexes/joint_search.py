"""Finds the items of several views that match a query best, as if all were in one view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory_service.data_model import Hits, SearchQuery
from memory_service.indexes.exact_vectors import Found as Nearest
from memory_service.indexes.search import (
    Terms,
    UnitVector,
    describe,
    dimension_error,
    indexed_rows,
    nearest,
    nearest_wanted,
    unit,
    vector_scores,
    widths,
    work_of,
)
from memory_service.indexes.selection import row_mask
from memory_service.indexes.view import BoolArray, NamespaceView, RowArray
from memory_service.indexes.word_scoring import Lookup, Scratch, search_together

_SCORE_DIGITS = 6


@dataclass
class Part:
    """The search of one view: its query, the allowed rows, and the words to look up."""

    view: NamespaceView
    query: SearchQuery
    rows: BoolArray | None
    words: Lookup | None
    vector: UnitVector | None


@dataclass
class JointSearch:
    """A search of several views. Their queries differ only in the vector, which one may lack."""

    parts: Sequence[Part]
    terms: Terms | None

    @property
    def views(self) -> list[NamespaceView]:
        """The views that it reads."""
        return [part.view for part in self.parts]

    @property
    def work(self) -> int:
        """The approximate cost, in postings."""
        return sum(work_of(part.view, part.query, part.rows, part.words) for part in self.parts)

    def finish(self, scratch: Scratch | None = None) -> list[Hits]:
        """Return the hits of each view. As LongSearch.finish; None: on the views' own thread."""
        near = _nearest_of_all(self.parts)
        words = [part.words for part in self.parts if part.words is not None]
        if not words:
            found = [
                Hits(_positions(p, rows), scores) for p, (rows, scores) in zip(self.parts, near, strict=True)
            ]
        else:
            if scratch is not None:
                for lookup in words:
                    lookup.use(scratch)
            found = _by_words(self.parts, words, [rows for rows, _ in near])
        for part, hits in zip(self.parts, found, strict=True):
            if part.query.described:
                describe(part.view, hits)
        return found


def begin(
    views: Sequence[NamespaceView], queries: Sequence[SearchQuery], terms: Terms | None = None
) -> JointSearch:
    """Begin a joint search; raises InvalidArgument if a vector has the wrong dimension.

    `terms` are those of the text, if they are known: all views would find the same.
    """
    text = queries[0].text
    if terms is None and text is not None:
        terms = views[0].analyzer.query_terms(text)
    parts = []
    for view, query in zip(views, queries, strict=True):
        view.index_pending()
        if (error := dimension_error(view, query)) is not None:
            raise error
        words = None if terms is None else Lookup(view.tables(query.neighbour_weight), *terms)
        parts.append(Part(view, query, row_mask(view, query.filter), words, unit(query.vector)))
    return JointSearch(parts, terms)


def _positions(part: Part, rows: RowArray) -> list[int]:
    return part.view.positions.view[rows].tolist()  # type: ignore[no-any-return]


def _nearest_of_all(parts: Sequence[Part]) -> list[tuple[RowArray, list[float]]]:
    """Return the rows of the nearest vectors of all views together, with their similarities."""
    found: list[Nearest] = [nearest(part.view, part.query, part.rows, part.vector) for part in parts]
    wanted = nearest_wanted(parts[0].query)
    scores = np.concatenate([its for _, its in found])
    least = (
        -np.inf if len(scores) <= wanted else np.partition(scores, len(scores) - wanted)[len(scores) - wanted]
    )
    kept = []
    for part, (slots, its) in zip(parts, found, strict=True):
        best = its >= least
        kept.append((part.view.slot_row.view[slots[best]], its[best].round(_SCORE_DIGITS).tolist()))
    return kept


def _by_words(parts: Sequence[Part], words: list[Lookup], near: list[RowArray]) -> list[Hits]:
    masks = [indexed_rows(part.view, part.rows) for part in parts]
    allowed = [None if mask is None else mask.view(np.uint8) for mask in masks]
    times = [part.view.create_us.view for part in parts]
    count = parts[0].query.candidates
    found = []
    for part, (rows, scores, shares) in zip(
        parts, search_together(words, allowed, near, times, count, widths(count)), strict=True
    ):
        assert part.words is not None
        similar = None if part.vector is None else vector_scores(part.view, rows, part.vector)
        named = part.words.named_in(rows)
        portions = shares.tolist() if part.words.term_count else None
        found.append(Hits(_positions(part, rows), similar, scores.tolist(), named, word_shares=portions))
    return found


def search_views(views: Sequence[NamespaceView], queries: Sequence[SearchQuery]) -> list[Hits]:
    """Return the hits of each view."""
    return begin(views, queries).finish()
