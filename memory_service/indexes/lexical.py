"""Words: an inverted index with BM25, kept in memory for one namespace.

Scoring is BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
Beyond" (2009), with the idf of Lucene, ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.
N, n and the average length count the live documents of this index alone, at the time of the query.
A document may be scored together with its neighbours, as one whose words count less: their counts
and lengths are added by weight before the formula, as BM25F does with fields (section 3.6 there).

Postings live in segments: sorted arrays that never change. New documents gather in a small open
segment, which is sealed when it is full; segments of similar size are merged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_service.indexes.analysis import COUNT_MAX, unpack_terms
from memory_service.indexes.arrays import GrowingArray

K1 = 0.45
B = 0.75
_OPEN_POSTINGS_MAX = 4096
# A term tells something if at most so many documents have it, or so small a part of all.
_TELLING_DOCS_MIN = 1024
_TELLING_SHARE = 16
_MERGE_FAN_IN = 8

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Segment:
    """Postings sorted by term: those of terms[i] stand at starts[i]:starts[i + 1]."""

    terms: NDArray[np.uint32]
    starts: NDArray[np.int64]
    docs: IntArray
    counts: NDArray[np.uint16]

    @classmethod
    def build(cls, terms: NDArray[np.uint32], docs: IntArray, counts: NDArray[np.uint16]) -> Segment:
        """Build one from postings in any order."""
        order = np.argsort(terms, kind="stable")
        ordered = terms[order]
        unique, first = np.unique(ordered, return_index=True)
        return cls(unique, np.append(first, len(ordered)), docs[order], counts[order])

    @classmethod
    def merge(cls, segments: list[Segment]) -> Segment:
        """Build one that holds the postings of several. Takes no lock: segments do not change."""
        return cls.build(
            np.concatenate([np.repeat(s.terms, np.diff(s.starts)) for s in segments]),
            np.concatenate([s.docs for s in segments]),
            np.concatenate([s.counts for s in segments]),
        )

    def spans(self, terms: NDArray[np.uint32]) -> list[tuple[int, slice]]:
        """Return which of some terms are here, by their place in `terms`, and where their postings stand."""
        at = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        here = np.flatnonzero(self.terms[at] == terms)
        starts, ends = self.starts[at[here]].tolist(), self.starts[at[here] + 1].tolist()
        return [
            (place, slice(start, end)) for place, start, end in zip(here.tolist(), starts, ends, strict=True)
        ]

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self.terms.nbytes + self.starts.nbytes + self.docs.nbytes + self.counts.nbytes


Part = tuple[IntArray, NDArray[np.uint16]]
"""Documents and how often each has a term."""


class Postings(NamedTuple):
    """The live documents that have a term, how many they are, and what the term is worth.

    In parts, for it would cost more to join them than to go through them.
    """

    parts: list[Part]
    doc_count: int
    idf: float


@dataclass
class LexicalIndex:
    """Documents by their words. A document is a number, counted up from 0 in the order of `add`."""

    _segments: list[Segment] = field(default_factory=list)
    _open_terms: GrowingArray = field(default_factory=lambda: GrowingArray(np.uint32))
    _open_docs: GrowingArray = field(default_factory=lambda: GrowingArray(np.int32))
    _open_counts: GrowingArray = field(default_factory=lambda: GrowingArray(np.uint16))
    _lengths: GrowingArray = field(default_factory=lambda: GrowingArray(np.int32))
    _live: GrowingArray = field(default_factory=lambda: GrowingArray(np.bool_))
    _live_count: int = 0
    _live_length: int = 0
    _scratch: NDArray[np.float32] = field(default_factory=lambda: np.zeros(16, np.float32))

    @classmethod
    def build(
        cls, terms: NDArray[np.uint32], docs: IntArray, counts: NDArray[np.uint16], doc_count: int
    ) -> LexicalIndex:
        """Build an index of many documents at once from their postings."""
        lengths = np.bincount(docs, weights=counts, minlength=doc_count).astype(np.int32)
        index = cls(
            _segments=[Segment.build(terms, docs, counts)] if len(terms) else [],
            _lengths=GrowingArray.of(lengths),
            _live=GrowingArray.of(np.ones(doc_count, np.bool_)),
        )
        index._live_count = doc_count
        index._live_length = int(lengths.sum())
        return index

    def __len__(self) -> int:
        return len(self._lengths)

    def add_all(self, documents: Sequence[dict[int, int]]) -> IntArray:
        """Add documents and return their numbers."""
        docs = np.arange(len(self), len(self) + len(documents), dtype=np.int32)
        sizes = list(map(len, documents))
        lengths = [sum(terms.values()) for terms in documents]
        counts = list(chain.from_iterable(terms.values() for terms in documents))
        self._open_terms.extend(list(chain.from_iterable(documents)))
        self._open_docs.extend(np.repeat(docs, sizes))
        self._open_counts.extend(np.minimum(counts, COUNT_MAX))
        self._lengths.extend(lengths)
        self._live.extend(np.ones(len(documents), np.bool_))
        self._live_count += len(documents)
        self._live_length += sum(lengths)
        if len(self._open_terms) >= _OPEN_POSTINGS_MAX:
            self._seal()
        return docs

    def remove(self, doc: int) -> None:
        """Take a document out of results and statistics."""
        self._live.view[doc] = False
        self._live_count -= 1
        self._live_length -= int(self._lengths.view[doc])

    def postings(self, terms: Sequence[int]) -> list[Postings | None]:
        """Return where each term is among the live documents; None for one that is nowhere.

        All terms are looked up together: most of the work is per call and not per term.
        """
        if not terms:
            return []
        wanted = np.array(terms, np.uint32)
        found: list[list[Part]] = [[] for _ in terms]
        for segment in self._segments:
            for place, span in segment.spans(wanted):
                found[place].append((segment.docs[span], segment.counts[span]))
        places, fresh = np.nonzero(wanted[:, None] == self._open_terms.view)
        for place in set(places.tolist()):
            of_term = fresh[places == place]
            found[place].append((self._open_docs.view[of_term], self._open_counts.view[of_term]))
        return [self._live_postings(parts) if parts else None for parts in found]

    def score_telling(self, postings: Sequence[Postings]) -> tuple[IntArray, FloatArray]:
        """Return documents, ascending, and the BM25 scores of each alone, by the terms that tell most.

        Terms that many of many documents have are left out, unless there are no others: they cost the
        most, and what they add to a score hardly ever decides who is among the best.
        """
        most = max(_TELLING_DOCS_MIN, self._live_count // _TELLING_SHARE)
        telling = [p for p in postings if p.doc_count <= most] or postings
        if not telling:
            return np.empty(0, np.int32), np.empty(0)
        docs = np.concatenate([docs for p in telling for docs, _ in p.parts])
        frequency = np.concatenate([counts for p in telling for _, counts in p.parts]).astype(np.float64)
        idf = np.repeat([p.idf for p in telling], [p.doc_count for p in telling])
        norm = self._norm(self._lengths.view[docs], 1.0)
        return sum_by_number(docs, idf * (K1 + 1) * frequency / (frequency + norm), len(self))

    def score_windows(
        self, postings: Sequence[Postings], windows: IntArray, weights: FloatArray, mean_window: float
    ) -> FloatArray:
        """Return the BM25 score of each window: documents whose words count by weight.

        `windows`, of shape (n, len(weights)), holds documents, -1 for none. `mean_window` is how many
        average documents a window of the index holds on average.
        """
        if not postings:
            return np.zeros(len(windows))
        scratch = self._blank()
        frequency = np.empty((len(postings), len(windows)))
        for at, found in enumerate(postings):
            for docs, counts in found.parts:
                scratch[docs] = counts
            # -1 is the last entry, which is of no document and always 0.
            frequency[at] = scratch[windows] @ weights
            for docs, _ in found.parts:
                scratch[docs] = 0
        lengths = np.where(windows >= 0, self._lengths.view[windows], 0) @ weights
        idf = np.array([found.idf for found in postings])
        scores: FloatArray = idf @ ((K1 + 1) * frequency / (frequency + self._norm(lengths, mean_window)))
        return scores

    def having(self, postings: Sequence[Postings], docs: IntArray) -> BoolArray:
        """Return which of some documents have any of the terms."""
        scratch = self._blank()
        having = [part for found in postings for part, _ in found.parts]
        for part in having:
            scratch[part] = 1
        marked: BoolArray = scratch[docs] > 0
        for part in having:
            scratch[part] = 0
        return marked

    def _blank(self) -> NDArray[np.float32]:
        """Return an array with an entry for each document and one for none, all 0; leave it so."""
        if len(self._scratch) <= len(self):
            self._scratch = np.zeros(2 * len(self) + 1, np.float32)
        return self._scratch

    def _norm(self, lengths: NDArray[Any], mean_window: float) -> FloatArray:
        mean = max(self._live_length / self._live_count, 1e-9) * mean_window
        norm: FloatArray = K1 * (1 - B + B / mean * lengths)
        return norm

    def _live_postings(self, parts: list[Part]) -> Postings | None:
        if self._live_count < len(self):
            live = self._live.view
            kept = [(docs, counts, live[docs]) for docs, counts in parts]
            parts = [(docs[alive], counts[alive]) for docs, counts, alive in kept]
        doc_count = sum(len(docs) for docs, _ in parts)
        if not doc_count:
            return None
        idf = math.log(1 + (self._live_count - doc_count + 0.5) / (doc_count + 0.5))
        return Postings(parts, doc_count, idf)

    def _seal(self) -> None:
        columns = self._open_terms, self._open_docs, self._open_counts
        self._segments.append(Segment.build(*(column.view for column in columns)))
        for column in columns:
            column.clear()

    def mergeable(self) -> list[Segment]:
        """Return segments that should become one: the newest of similar size. Empty: none."""
        if len(self._segments) < _MERGE_FAN_IN:
            return []
        chosen = self._segments[-_MERGE_FAN_IN:]
        total = sum(len(s.docs) for s in chosen)
        for segment in reversed(self._segments[:-_MERGE_FAN_IN]):
            if len(segment.docs) > total:
                break
            chosen.insert(0, segment)
            total += len(segment.docs)
        return chosen

    def replace(self, merged: list[Segment], by: Segment) -> None:
        """Put one segment in the place of those it was merged from."""
        at = next(i for i, segment in enumerate(self._segments) if segment is merged[0])
        self._segments[at : at + len(merged)] = [by]

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated."""
        columns = (
            self._open_terms, self._open_docs, self._open_counts, self._lengths, self._live, self._scratch,
        )  # fmt: skip
        return sum(s.nbytes for s in self._segments) + sum(column.nbytes for column in columns)


def sum_by_number(docs: IntArray, weights: FloatArray, doc_count: int) -> tuple[IntArray, FloatArray]:
    """Return the different numbers, ascending and below `doc_count`, and the sum of each one's weights."""
    # A dense sum costs by the size of the index, a sort by the number of postings.
    if len(docs) * 8 > doc_count:
        sums = np.bincount(docs, weights=weights, minlength=doc_count)
        found = np.flatnonzero(sums).astype(np.int32)
        return found, sums[found].astype(np.float64)
    unique, inverse = np.unique(docs, return_inverse=True)
    sums = np.bincount(inverse, weights=weights)
    return unique, sums.astype(np.float64)


def posting_arrays(packed: list[bytes]) -> tuple[NDArray[Any], IntArray, NDArray[Any]]:
    """Return terms, documents and counts of documents packed by `pack_terms`; document i is packed[i]."""
    terms, counts, sizes = unpack_terms(packed)
    return terms, np.repeat(np.arange(len(packed), dtype=np.int32), sizes), counts
