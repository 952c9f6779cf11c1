"""Words: an inverted index with BM25, kept in memory for one namespace.

Scoring is BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
Beyond" (2009), with the idf of Lucene, ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.
N, n and the average length count the live documents of this index alone, at the time of the query.

Postings live in segments: sorted arrays that never change. New documents gather in a small open
segment, which is sealed when it is full; segments of similar size are merged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_service.indexes.analysis import COUNT_MAX, unpack_terms
from memory_service.indexes.arrays import GrowingArray

K1 = 1.2
B = 0.75
_OPEN_POSTINGS_MAX = 4096
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

    def postings(self, term: int) -> tuple[IntArray, NDArray[np.uint16]] | None:
        """Return documents and counts of a term."""
        at = int(np.searchsorted(self.terms, np.uint32(term)))
        if at == len(self.terms) or self.terms[at] != term:
            return None
        span = slice(int(self.starts[at]), int(self.starts[at + 1]))
        return self.docs[span], self.counts[span]

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self.terms.nbytes + self.starts.nbytes + self.docs.nbytes + self.counts.nbytes


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

    def score(self, terms: Iterable[int], allowed: BoolArray | None = None) -> tuple[IntArray, FloatArray]:
        """Return the live documents with any of the terms, ascending, and their BM25 scores.

        `allowed`, of shape (len(self),), leaves documents out of the result, not of the statistics.
        """
        parts = [part for term in terms if (part := self._weigh(term)) is not None]
        if not parts:
            return np.empty(0, np.int32), np.empty(0)
        docs = np.concatenate([docs for docs, _ in parts])
        weights = np.concatenate([weights for _, weights in parts])
        if allowed is not None:
            kept = allowed[docs]
            docs, weights = docs[kept], weights[kept]
        return _sum_by_doc(docs, weights, len(self))

    def _weigh(self, term: int) -> tuple[IntArray, FloatArray] | None:
        """Return the live documents of one term and what it adds to their scores."""
        found = [posting for s in self._segments if (posting := s.postings(term)) is not None]
        fresh = np.flatnonzero(self._open_terms.view == np.uint32(term))
        if len(fresh):
            found.append((self._open_docs.view[fresh], self._open_counts.view[fresh]))
        if not found:
            return None
        docs = np.concatenate([docs for docs, _ in found])
        counts = np.concatenate([counts for _, counts in found])
        if self._live_count < len(self):
            live = self._live.view[docs]
            docs, counts = docs[live], counts[live]
        if not len(docs):
            return None
        idf = math.log(1 + (self._live_count - len(docs) + 0.5) / (len(docs) + 0.5))
        mean_length = max(self._live_length / self._live_count, 1e-9)
        norm = K1 * (1 - B + B / mean_length * self._lengths.view[docs])
        frequency = counts.astype(np.float64)
        return docs, idf * (K1 + 1) * frequency / (frequency + norm)

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
        columns = self._open_terms, self._open_docs, self._open_counts, self._lengths, self._live
        return sum(s.nbytes for s in self._segments) + sum(column.nbytes for column in columns)


def _sum_by_doc(docs: IntArray, weights: FloatArray, doc_count: int) -> tuple[IntArray, FloatArray]:
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
