"""Words: an inverted index with BM25, kept in memory for one namespace.

Scoring is BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
with the idf of Lucene, ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative. N, n and the average
length count only the live documents of this index, at the time of the query. A document may be scored
together with its neighbours, whose words count less: their counts and lengths are added by weight before the
formula, as BM25F does with fields (section 3.6 there). Scoring is compiled: `word_scoring.pyx`.

Postings live in segments: sorted, immutable arrays. New documents gather in a small open segment, which is
sealed when it is full; segments of similar size are merged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_service.indexes.analysis import unpack_terms
from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.jobs import Job
from memory_service.indexes.word_scoring import Scratch, Tables
from memory_service.indexes.word_scoring import Segment as CompiledSegment

K1 = 0.45
B = 0.5
_OPEN_POSTINGS_MAX = 4096
_MERGE_FAN_IN = 8
# A larger merge takes longer than others should wait.
_MERGE_AT_ONCE_MAX = 16 * _OPEN_POSTINGS_MAX

_MERGE_PART_POSTINGS = 1 << 18
"""Postings sorted at a time. Doubled, a merge takes 13 MiB more besides its result."""

IntArray = NDArray[np.int32]


@dataclass(frozen=True)
class Segment:
    """Postings sorted by term: those of terms[i] are at starts[i]:starts[i + 1]."""

    terms: NDArray[np.uint32]
    starts: NDArray[np.int64]
    docs: IntArray
    counts: NDArray[np.uint16]

    @cached_property
    def compiled(self) -> CompiledSegment:
        """The same for `Lookup`."""
        return CompiledSegment(self.terms, self.starts, self.docs, self.counts)

    @classmethod
    def build(cls, terms: NDArray[np.uint32], docs: IntArray, counts: NDArray[np.uint16]) -> Segment:
        """Build a segment from postings in any order."""
        # Sorted as integers: several times faster than a stable argsort, and in the same order.
        numbers = np.arange(len(terms), dtype=np.uint64)
        keys = terms.astype(np.uint64) << np.uint64(32) | numbers
        keys.sort()
        ordered = (keys >> np.uint64(32)).astype(np.uint32)
        order = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
        first = np.flatnonzero(np.diff(ordered, prepend=~ordered[:1]))
        return cls(ordered[first], np.append(first, len(ordered)), docs[order], counts[order])

    @classmethod
    def merge(cls, segments: list[Segment]) -> Segment:
        """Merge segments. Takes no lock: segments do not change.

        In parts, by ranges of terms: sorting everything at once takes five times the memory of the result.
        """
        count = sum(len(segment.docs) for segment in segments)
        # Terms are hashes, so each part has about as many postings.
        bounds = np.linspace(0, 1 << 32, 2 + count // _MERGE_PART_POSTINGS).astype(np.uint64).tolist()
        docs, counts = np.empty(count, np.int32), np.empty(count, np.uint16)
        terms, starts, end = [], [], 0
        for low, high in pairwise(bounds):
            part = cls.build(
                *map(np.concatenate, zip(*(s._postings(low, high) for s in segments), strict=True))
            )
            terms.append(part.terms)
            starts.append(part.starts[:-1] + end)
            begin, end = end, end + len(part.docs)
            docs[begin:end], counts[begin:end] = part.docs, part.counts
        return cls(np.concatenate(terms), np.append(np.concatenate(starts), end), docs, counts)

    def _postings(self, low: int, high: int) -> tuple[NDArray[np.uint32], IntArray, NDArray[np.uint16]]:
        """Return the postings of terms from `low` to below `high`: terms, documents, counts."""
        first, last = np.searchsorted(self.terms, [low, high])
        begin, end = self.starts[first], self.starts[last]
        terms = np.repeat(self.terms[first:last], np.diff(self.starts[first : last + 1]))
        return terms, self.docs[begin:end], self.counts[begin:end]

    def kept(self, wanted: NDArray[np.bool_], numbers: IntArray) -> Segment:
        """Return a segment with the wanted documents only, renumbered in the same order."""
        keep = wanted[self.docs]
        if keep.all():
            return Segment(self.terms, self.starts, numbers[self.docs], self.counts)
        before = np.concatenate(([0], np.cumsum(keep)))[self.starts]
        filled = np.flatnonzero(np.diff(before))
        starts = np.append(before[filled], before[-1])
        return Segment(self.terms[filled], starts, numbers[self.docs[keep]], self.counts[keep])

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self.terms.nbytes + self.starts.nbytes + self.docs.nbytes + self.counts.nbytes


@dataclass(frozen=True)
class Words:
    """The documents of an index at one moment, in immutable arrays."""

    segments: list[Segment]
    lengths: IntArray
    live: NDArray[np.bool_]

    def live_alone(self) -> Words:
        """Return the same without dead documents; live ones are renumbered in the same order."""
        if self.live.all():
            return self
        numbers = (np.cumsum(self.live) - 1).astype(np.int32)
        segments = [segment.kept(self.live, numbers) for segment in self.segments]
        lengths = self.lengths[self.live]
        return Words([s for s in segments if len(s.docs)], lengths, np.ones(len(lengths), np.bool_))

    def followed_by(
        self, terms: NDArray[np.uint32], docs: IntArray, counts: NDArray[np.uint16], doc_count: int
    ) -> Words:
        """Return these documents followed by others, whose postings count from 0."""
        lengths = np.bincount(docs, weights=counts, minlength=doc_count).astype(np.int32)
        more = [Segment.build(terms, docs + np.int32(len(self.lengths)), counts)] if len(terms) else []
        return Words(
            [*self.segments, *more],
            np.concatenate([self.lengths, lengths]),
            np.concatenate([self.live, np.ones(doc_count, np.bool_)]),
        )


@dataclass
class LexicalIndex:
    """Documents by their words. A document is a number, counted up from 0 in the order of `add_all`."""

    _segments: list[Segment] = field(default_factory=list)
    _open_terms: GrowingArray = field(default_factory=lambda: GrowingArray(np.uint32))
    _open_docs: GrowingArray = field(default_factory=lambda: GrowingArray(np.int32))
    _open_counts: GrowingArray = field(default_factory=lambda: GrowingArray(np.uint16))
    _lengths: GrowingArray = field(default_factory=lambda: GrowingArray(np.int32))
    _live: GrowingArray = field(default_factory=lambda: GrowingArray(np.bool_))
    _live_count: int = 0
    _live_length: int = 0
    _scratch: Scratch = field(default_factory=Scratch)
    _merging: list[Segment] = field(default_factory=list)

    @classmethod
    def of(cls, words: Words) -> LexicalIndex:
        """Return an index of these documents; their arrays are not copied."""
        index = cls(
            _segments=list(words.segments),
            _lengths=GrowingArray.of(words.lengths),
            _live=GrowingArray.of(words.live),
        )
        index._live_count = int(words.live.sum())
        index._live_length = int(words.lengths[words.live].sum())
        return index

    def words(self) -> Words:
        """Return the documents there are now."""
        segments = list(self._segments)
        if len(self._open_terms):
            segments.append(
                Segment.build(self._open_terms.view, self._open_docs.view, self._open_counts.view)
            )
        return Words(segments, self._lengths.view.copy(), self._live.view.copy())

    def __len__(self) -> int:
        return len(self._lengths)

    def add_all(self, packed: Sequence[bytes]) -> IntArray:
        """Add documents with terms packed by `pack_terms`, and return their numbers."""
        terms, counts, sizes = unpack_terms(packed)
        docs = np.arange(len(self), len(self) + len(packed), dtype=np.int32)
        ends, totals = np.cumsum(sizes), np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=totals[1:])
        self._open_terms.extend(terms)
        self._open_docs.extend(np.repeat(docs, sizes))
        self._open_counts.extend(counts)
        self._lengths.extend(totals[ends] - totals[ends - sizes])
        self._live.extend(np.ones(len(packed), np.bool_))
        self._live_count += len(packed)
        self._live_length += int(totals[-1])
        if len(self._open_terms) >= _OPEN_POSTINGS_MAX:
            self._seal()
        return docs

    def lacking_words(self, docs: IntArray) -> NDArray[np.bool_]:
        """Return which of these documents have no words."""
        lacking: NDArray[np.bool_] = self._lengths.view[docs] == 0
        return lacking

    def remove(self, doc: int) -> None:
        """Remove a document from results and statistics."""
        self._live.view[doc] = False
        self._live_count -= 1
        self._live_length -= int(self._lengths.view[doc])

    def remove_all(self, docs: IntArray) -> None:
        """Remove several live documents from results and statistics."""
        self._live.view[docs] = False
        self._live_count -= len(docs)
        self._live_length -= int(self._lengths.view[docs].sum())

    def tables(
        self,
        rows: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], float],
        weights: tuple[NDArray[np.float64], NDArray[np.float64]],
    ) -> Tables:
        """Return the tables to look up words in, valid until the index or the rows change.

        `rows` are the row of each document, the document of each row, the links of `Turns`, and the mean
        length of a row's window in average documents; `weights` are those of the rows before and after a row.
        """
        return Tables(
            [segment.compiled for segment in self._segments],
            (self._open_terms.view, self._open_docs.view, self._open_counts.view),
            (self._lengths.view, self._live.view.view(np.uint8), self._live_count, self._live_length),
            rows,
            weights,
            self._scratch,
            K1,
            B,
        )

    def _seal(self) -> None:
        columns = self._open_terms, self._open_docs, self._open_counts
        self._segments.append(Segment.build(*(column.view for column in columns)))
        for column in columns:
            column.clear()

    def merge_few(self) -> None:
        """Merge the newest segments of similar size, if there are several and it does not take long."""
        if segments := self._mergeable(_MERGE_AT_ONCE_MAX):
            self._replace(segments, Segment.merge(segments))

    def plan(self) -> Job | None:
        """Return the merge to do now in another thread. None if there is none, or one is running."""
        if self._merging or not (segments := self._mergeable()):
            return None
        self._merging = segments

        def finish(merged: object) -> None:
            assert isinstance(merged, Segment)
            self._replace(segments, merged)
            self._merging = []

        def fail() -> None:
            self._merging = []

        return Job(lambda: Segment.merge(segments), finish, fail)

    def _mergeable(self, postings_max: float = math.inf) -> list[Segment]:
        """Return the segments to merge: the newest of similar size. Empty if there are none."""
        # Segments being merged come before newer ones.
        first = self._place_of(self._merging[-1]) + 1 if self._merging else 0
        if len(self._segments) - first < _MERGE_FAN_IN:
            return []
        chosen = self._segments[-_MERGE_FAN_IN:]
        total = sum(len(segment.docs) for segment in chosen)
        for segment in reversed(self._segments[first:-_MERGE_FAN_IN]):
            if len(segment.docs) > total or total + len(segment.docs) > postings_max:
                break
            chosen.insert(0, segment)
            total += len(segment.docs)
        return chosen if total <= postings_max else []

    def _replace(self, merged: list[Segment], by: Segment) -> None:
        """Replace the merged segments by the result."""
        at = self._place_of(merged[0])
        self._segments[at : at + len(merged)] = [by]

    def _place_of(self, segment: Segment) -> int:
        return next(i for i, each in enumerate(self._segments) if each is segment)

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated."""
        columns = (
            self._open_terms, self._open_docs, self._open_counts, self._lengths, self._live, self._scratch,
        )  # fmt: skip
        return sum(s.nbytes for s in self._segments) + sum(column.nbytes for column in columns)
