"""The view of one namespace: everything that finding its items needs, in memory.

A row stands for an item; rows are in the order of positions, and a row is never moved. Vectors and
documents (for words) have numbers of their own, so that a changed item gets new ones while its row
stays. A view is derived from records: it can be dropped and built again at any time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_service.errors import InvalidArgument
from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.lexical import LexicalIndex, Postings, sum_by_number
from memory_service.indexes.settings import IndexSettings
from memory_service.indexes.turns import WEIGHTS, Turns
from memory_service.indexes.vectors import VectorIndex, unit, unit_rows
from memory_service.records import (
    CONVERSATION_KINDS,
    Hits,
    IndexInfo,
    ItemFilter,
    ItemKind,
    LabelKey,
    SearchQuery,
)

NEVER_US = np.iinfo(np.int64).max
_NONE = -1
_PENDING_MAX = 64
_UNLISTED_MAX = 64
# Of so many documents with the best words, the neighbours are looked at; then of so many rows per
# candidate that is wanted, the words of the neighbours are counted.
_SPREAD_DOCS_MIN = 256
_SPREAD_PER_CANDIDATE = 4
_COUNTED_PER_CANDIDATE = 2
_IS_TURN = np.array([kind in CONVERSATION_KINDS for kind in ItemKind])

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
RowArray = NDArray[np.int32]


@dataclass(slots=True)
class Entry:
    """What a view has to know of an item. vector None: it has none."""

    position: int
    revision: int
    session_id: str
    create_us: int
    expire_us: int | None
    labels: dict[LabelKey, str]
    kind: ItemKind
    terms: dict[int, int]
    vector: NDArray[np.float32] | None


class NamespaceView:
    """Rows, words and vectors of one namespace. For use by one thread."""

    def __init__(self, analyzer: Analyzer, settings: IndexSettings) -> None:
        self._analyzer = analyzer
        self._settings = settings
        self.positions = GrowingArray(np.int64)
        self.live = GrowingArray(np.bool_)
        self.sessions = GrowingArray(np.int32)
        self.kinds = GrowingArray(np.int8)
        self.kind_counts = [0] * len(ItemKind)
        self.create_us = GrowingArray(np.int64)
        self.expire_us = GrowingArray(np.int64)
        self.row_doc = GrowingArray(np.int32)
        self.row_slot = GrowingArray(np.int32)
        self.doc_row = GrowingArray(np.int32)
        self.slot_row = GrowingArray(np.int32)
        # The revision at which the vector of a slot was written: its name in snapshots.
        self.slot_keys = GrowingArray(np.int64)
        self.saved_slot_count = 0
        self.session_codes: dict[str, int] = {"": 0}
        # The rows of a label, ascending: all that have it, and perhaps dead ones that had it.
        self.label_rows: dict[tuple[LabelKey, str], array[int]] = {}
        self.row_labels: dict[int, dict[LabelKey, str]] = {}
        # The rows of a kind, dead ones too, among the first so many; made when first asked for.
        self._kind_rows: dict[ItemKind, tuple[GrowingArray, int]] = {}
        self.lexical = LexicalIndex()
        self.turns = Turns()
        self.vectors: VectorIndex | None = None
        self.live_count = 0
        self.expiring_count = 0
        self._pending: list[Entry] = []
        self.revision = 0

    # --- changing -----------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """Add an item at the end. Its position is above all others.

        Entries are indexed a batch at a time, before the next read at the latest: most of the work
        is per call and not per entry.
        """
        self._pending.append(entry)
        if len(self._pending) >= _PENDING_MAX:
            self.index_pending()

    def index_pending(self) -> None:
        """Index what was added and is not indexed yet. Everything that reads does this first."""
        if not self._pending:
            return
        entries, self._pending = self._pending, []
        first, count = len(self.positions), len(entries)
        rows = np.arange(first, first + count, dtype=np.int32)
        codes = self.session_codes
        self.positions.extend([e.position for e in entries])
        self.live.extend(np.ones(count, np.bool_))
        sessions = [codes.setdefault(e.session_id, len(codes)) for e in entries]
        self.sessions.extend(sessions)
        self.turns.extend(
            [s if e.kind in CONVERSATION_KINDS else 0 for s, e in zip(sessions, entries, strict=True)]
        )
        self.kinds.extend([e.kind for e in entries])
        self.create_us.extend([e.create_us for e in entries])
        self.expire_us.extend([NEVER_US if e.expire_us is None else e.expire_us for e in entries])
        self.row_doc.extend(self.lexical.add_all([e.terms for e in entries]))
        self.doc_row.extend(rows)
        self.row_slot.extend(np.full(count, _NONE, np.int32))
        self.live_count += count
        for row, entry in zip(rows.tolist(), entries, strict=True):
            self.expiring_count += entry.expire_us is not None
            self.kind_counts[entry.kind] += 1
            if entry.labels:
                self.label_row(row, entry.labels)
            if entry.vector is not None:
                self.index_vector(row, unit(entry.vector), entry.revision)
        self._merge_words()

    def replace(self, entry: Entry, *, keep_vector: bool) -> None:
        """Put an item in the place of the one at its position."""
        self.index_pending()
        row = self.row_of(entry.position)
        self._expiring(row, -1)
        before = self._conversation(row)
        self._fill(row, entry)
        if (after := self._conversation(row)) != before:
            self.turns.remove(row, before)
            self.turns.insert(row, after, self._turns_of(after, row))
        self.lexical.remove(int(self.row_doc.view[row]))
        self.index_words(row, entry.terms)
        if not keep_vector:
            self._drop_vector(row)
            if entry.vector is not None:
                self.index_vector(row, unit(entry.vector), entry.revision)

    def remove(self, position: int) -> None:
        """Take an item out of every result."""
        self.index_pending()
        row = self.row_of(position)
        self.live.view[row] = False
        self.turns.remove(row, self._conversation(row))
        self.live_count -= 1
        self.kind_counts[self.kinds.view[row]] -= 1
        self._expiring(row, -1)
        for pair in self.row_labels.pop(row, {}).items():
            # In a long list a dead row costs less than to move all that are behind it.
            if len(self.label_rows[pair]) <= _UNLISTED_MAX:
                self._unlist(pair, row)
        self.lexical.remove(int(self.row_doc.view[row]))
        self._drop_vector(row)

    def _fill(self, row: int, entry: Entry) -> None:
        code = self.session_codes.setdefault(entry.session_id, len(self.session_codes))
        self.sessions.view[row] = code
        self.kind_counts[self.kinds.view[row]] -= 1
        self.kind_counts[entry.kind] += 1
        if self.kinds.view[row] != entry.kind:
            self._kind_rows.clear()
        self.kinds.view[row] = entry.kind
        self.create_us.view[row] = entry.create_us
        self.expire_us.view[row] = NEVER_US if entry.expire_us is None else entry.expire_us
        self._expiring(row, 1)
        self.label_row(row, entry.labels)

    def _conversation(self, row: int) -> int:
        """Return the number of the conversation that a row is a turn of; 0: of none."""
        return int(self.sessions.view[row]) if _IS_TURN[self.kinds.view[row]] else 0

    def _turns_of(self, conversation: int, but: int) -> RowArray:
        """Return the other rows of a conversation, ascending."""
        in_it = (self.sessions.view == conversation) & self.live.view & _IS_TURN[self.kinds.view]
        in_it[but] = False
        return np.flatnonzero(in_it).astype(np.int32)

    def link_turns(self) -> None:
        """Find out which row follows which, for rows that were filled in all at once."""
        self.turns = Turns.build(np.where(_IS_TURN[self.kinds.view], self.sessions.view, 0))

    def label_row(self, row: int, labels: dict[LabelKey, str]) -> None:
        """Give a row these labels in place of those it has."""
        before = self.row_labels.pop(row, {})
        for pair in before.items():
            if labels.get(pair[0]) != pair[1]:
                self._unlist(pair, row)
        if labels:
            self.row_labels[row] = labels
        for pair in labels.items():
            if before.get(pair[0]) != pair[1]:
                insort(self.label_rows.setdefault(pair, array("i")), row)

    def _unlist(self, pair: tuple[LabelKey, str], row: int) -> None:
        listed = self.label_rows[pair]
        del listed[bisect_left(listed, row)]
        if not listed:
            del self.label_rows[pair]

    def _expiring(self, row: int, step: int) -> None:
        if self.expire_us.view[row] != NEVER_US:
            self.expiring_count += step

    def index_words(self, row: int, terms: dict[int, int]) -> None:
        """Index the words of a row."""
        self.row_doc.view[row] = self.lexical.add_all([terms])[0]
        self.doc_row.append(row)
        self._merge_words()

    def _merge_words(self) -> None:
        if segments := self.lexical.mergeable():
            self.lexical.replace(segments, segments[0].merge(segments))

    def index_vector(self, row: int, vector: NDArray[np.float32], key: int) -> None:
        """Index the unit vector of a row, written at the revision `key`."""
        if self.vectors is None:
            self.vectors = VectorIndex(len(vector), self._settings)
        self.row_slot.view[row] = self.vectors.add(vector)
        self.slot_row.append(row)
        self.slot_keys.append(key)

    def _drop_vector(self, row: int) -> None:
        slot = int(self.row_slot.view[row])
        if slot != _NONE and self.vectors is not None:
            self.vectors.remove(slot)
            self.row_slot.view[row] = _NONE

    def row_of(self, position: int) -> int:
        """Return the row of an item that is in the view."""
        return int(np.searchsorted(self.positions.view, position))

    # --- finding ------------------------------------------------------------------------------

    def scan(self, item_filter: ItemFilter, limit: int, *, newest: bool) -> list[int]:
        """Return positions of matching items, ascending: the first or the last `limit`; all if < 0."""
        self.index_pending()
        first, end = self._row_span(item_filter)
        listed = self._fewest(item_filter)
        if listed is not None:
            listed = listed[_span(listed, first, end)]
        count = end - first if listed is None else len(listed)
        if limit < 0:
            limit = count
        # Most scans want a few rows of one end: look there first, then further and further.
        width = max(4 * limit, 64)
        while True:
            start, stop = (max(count - width, 0), count) if newest else (0, min(width, count))
            rows = slice(first + start, first + stop) if listed is None else listed[start:stop]
            found = np.flatnonzero(self._matches(rows, item_filter))
            if len(found) >= limit or stop - start == count:
                break
            width *= 4
        found = (found[len(found) - limit :] if newest else found[:limit]) if len(found) > limit else found
        positions: list[int] = self.positions.view[rows][found].tolist()
        return positions

    def _fewest(self, item_filter: ItemFilter) -> RowArray | None:
        """Return the shortest list there is that holds every match, ascending; None without a list."""
        lists = [self._labelled(pair) for pair in item_filter.labels]
        lists += [self._labelled(((key,), value)) for key, value in item_filter.tags]
        if item_filter.kinds is not None and len(item_filter.kinds) == 1 and self._has_others(item_filter):
            lists.append(self._of_kind(next(iter(item_filter.kinds))))
        return min(lists, key=len, default=None)

    def _labelled(self, pair: tuple[LabelKey, str]) -> RowArray:
        """Return the rows of a label. Valid until the next change."""
        listed = self.label_rows.get(pair)
        return np.frombuffer(listed, np.int32) if listed else np.empty(0, np.int32)

    def _of_kind(self, kind: ItemKind) -> RowArray:
        """Return the rows of a kind. Looks only at rows that are new since it was asked before."""
        listed, seen = self._kind_rows.get(kind) or (GrowingArray(np.int32), 0)
        if seen < len(self.kinds):
            listed.extend(np.flatnonzero(self.kinds.view[seen:] == kind) + seen)
            self._kind_rows[kind] = listed, len(self.kinds)
        return listed.view

    def _row_span(self, item_filter: ItemFilter) -> tuple[int, int]:
        positions = self.positions.view
        first, end = 0, len(positions)
        if item_filter.min_position:
            first = int(np.searchsorted(positions, item_filter.min_position))
        if item_filter.max_position is not None:
            end = int(np.searchsorted(positions, item_filter.max_position, side="right"))
        return first, max(first, end)

    def _matches(self, rows: slice | RowArray, item_filter: ItemFilter) -> BoolArray:
        """Return which of these rows, ascending, a filter lets through, positions aside."""
        wanted: BoolArray = self.live.view[rows].copy()
        if self.expiring_count:
            wanted &= self.expire_us.view[rows] > item_filter.now_us
        if item_filter.session_id:
            wanted &= self.sessions.view[rows] == self.session_codes.get(item_filter.session_id, _NONE)
        if item_filter.start_us is not None:
            wanted &= self.create_us.view[rows] >= item_filter.start_us
        if item_filter.end_us is not None:
            wanted &= self.create_us.view[rows] < item_filter.end_us
        if self._has_others(item_filter):
            wanted &= np.isin(self.kinds.view[rows], list(item_filter.kinds or ()))
        for pair in item_filter.labels:
            wanted &= _among(rows, self._labelled(pair))
        for key, value in item_filter.tags:
            wanted &= _among(rows, self._labelled(((key,), value)))
        return wanted

    def _has_others(self, item_filter: ItemFilter) -> bool:
        """Whether there are items of kinds that are not wanted."""
        kinds = item_filter.kinds
        if kinds is not None:
            for kind, count in enumerate(self.kind_counts):
                if count and kind not in kinds:
                    return True
        return False

    def _row_mask(self, item_filter: ItemFilter) -> BoolArray | None:
        """Return which rows a filter lets through; None: all that are live."""
        if not item_filter.selects and not self.expiring_count and not self._has_others(item_filter):
            return None
        mask = np.zeros(len(self.positions), np.bool_)
        first, end = self._row_span(item_filter)
        mask[first:end] = self._matches(slice(first, end), item_filter)
        return mask

    def search(self, query: SearchQuery) -> Hits:
        """Return the best items of every channel that is asked, with all their scores."""
        found = self.search_all([query])[0]
        if isinstance(found, Exception):
            raise found
        return found

    def search_all(self, queries: Sequence[SearchQuery]) -> list[Hits | InvalidArgument]:
        """Answer several queries, each with what is found or with the error it gets.

        Those by a vector alone, without a filter, are compared with the vectors together.
        """
        self.index_pending()
        answers: list[Hits | InvalidArgument] = [Hits()] * len(queries)
        together: dict[int, list[int]] = {}
        for at, query in enumerate(queries):
            try:
                vector = None if query.vector is None else self._checked(query.vector)
            except InvalidArgument as error:
                answers[at] = error
                continue
            rows = self._row_mask(query.filter)
            if query.text is None and vector is not None and rows is None:
                together.setdefault(query.candidates, []).append(at)
            else:
                answers[at] = self._search_alone(query, vector, rows)
        for count, places in together.items():
            vectors = np.array([queries[at].vector for at in places])
            for at, found in zip(places, self._search_vectors(vectors, count), strict=True):
                answers[at] = found
        return answers

    def _checked(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.vectors is not None and len(vector) != self.vectors.dimension:
            raise InvalidArgument.dimension("query_embedding", self.vectors.dimension, len(vector))
        return vector

    def _search_vectors(self, vectors: NDArray[np.float32], count: int) -> list[Hits]:
        if self.vectors is None:
            return [Hits() for _ in vectors]
        found = self.vectors.search(unit_rows(vectors), count)
        # Looked up together: most of the work is per call and not per entry.
        whole = self._hits(np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found]))
        hits, end = [], 0
        for slots, _ in found:
            start, end = end, end + len(slots)
            hits.append(Hits(whole.positions[start:end], (whole.vector_scores or [])[start:end]))
        return hits

    def _hits(self, slots: NDArray[np.int64], scores: NDArray[np.float32]) -> Hits:
        # How many queries are answered together changes the last bits of a sum, and must not change
        # which of two equal vectors comes first.
        return Hits(self.positions.view[self.slot_row.view[slots]].tolist(), scores.round(6).tolist())

    def _search_alone(
        self, query: SearchQuery, vector: NDArray[np.float32] | None, rows: BoolArray | None
    ) -> Hits:
        if query.text is not None:
            return self._search_both(query, vector, rows)
        if vector is None or self.vectors is None or rows is None:
            return Hits()
        allowed = rows[self.slot_row.view]
        return self._hits(*self.vectors.search_among(unit(vector), query.candidates, allowed))

    def _search_both(
        self, query: SearchQuery, vector: NDArray[np.float32] | None, rows: BoolArray | None
    ) -> Hits:
        """Take the best of each channel, and look the other channel's scores up."""
        text = query.text or ""
        terms, names = list(self._analyzer.terms(text)), self._analyzer.speaker_terms(text)
        found_terms = self.lexical.postings([*terms, *names])
        postings = [p for p in found_terms[: len(terms)] if p is not None]
        speakers = [p for p in found_terms[len(terms) :] if p is not None]
        found = self._likely(postings, rows, query.candidates)
        near, nearness = np.empty(0, np.int32), np.empty(0, np.float32)
        unit_query = None if vector is None else unit(vector)
        if unit_query is not None and self.vectors is not None:
            if rows is None:
                slots, nearness = self.vectors.search(unit_query[None], query.candidates)[0]
            else:
                among = rows[self.slot_row.view]
                slots, nearness = self.vectors.search_among(unit_query, query.candidates, among)
            near = self.slot_row.view[slots]
            found = np.union1d(found, near)
        scores = self._score_words(found, postings)
        if len(found) > query.candidates:
            best = np.isin(found, near)
            best[np.argpartition(-scores, query.candidates)[: query.candidates]] = True
            found, scores = found[best], scores[best]
        return Hits(
            self.positions.view[found].tolist(),
            None if unit_query is None else self._vector_scores(found, unit_query, near, nearness),
            scores.tolist(),
            self.lexical.having(speakers, self.row_doc.view[found]).tolist() if speakers else None,
        )

    def _likely(self, postings: Sequence[Postings], rows: BoolArray | None, count: int) -> RowArray:
        """Return the rows that are the best by words, theirs and their neighbours', more than `count`.

        A first look: each document is scored alone, and its score is handed to its neighbours.
        """
        docs, scores = self.lexical.score_telling(postings)
        widest = max(_SPREAD_DOCS_MIN, _SPREAD_PER_CANDIDATE * count)
        if rows is None and len(docs) > widest:
            best = np.argpartition(-scores, widest)[:widest]
            docs, scores = docs[best], scores[best]
        found: RowArray = self.doc_row.view[docs]
        if len(self.turns):
            found, scores = sum_by_number(*self.turns.spread(found, scores), len(self.positions))
        if rows is not None:
            let = rows[found]
            found, scores = found[let], scores[let]
        enough = _COUNTED_PER_CANDIDATE * count
        return found if len(found) <= enough else found[np.argpartition(-scores, enough)[:enough]]

    def _score_words(self, rows: RowArray, postings: Sequence[Postings]) -> NDArray[np.float64]:
        """Return the BM25 scores of rows together with their neighbours."""
        windows = self.turns.windows(rows) if len(self.turns) else rows[:, None]
        weights = WEIGHTS[: windows.shape[1]]
        docs = np.where(windows >= 0, self.row_doc.view[windows], _NONE)
        mean = self.turns.mean_window(max(self.live_count, 1))
        return self.lexical.score_windows(postings, docs, weights, mean)

    def _vector_scores(
        self, rows: RowArray, query: NDArray[np.float32], near: RowArray, nearness: NDArray[np.float32]
    ) -> list[float | None]:
        """Return the scores of rows; those that the search for vectors gave are not computed again.

        To fetch a vector out of the graph costs more than to find it there.
        """
        known: dict[int, float] = dict(zip(near.tolist(), nearness.round(6).tolist(), strict=True))
        scores = [known.get(row) for row in rows.tolist()]
        if self.vectors is None:
            return scores
        slots = self.row_slot.view[rows]
        lacking = [at for at, slot in enumerate(slots.tolist()) if scores[at] is None and slot != _NONE]
        found = self.vectors.scores(slots[lacking].astype(np.int64), query).round(6)
        for at, score in zip(lacking, found.tolist(), strict=True):
            scores[at] = score
        return scores

    # --- describing ---------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated."""
        columns = (self.positions, self.live, self.sessions, self.kinds, self.create_us, self.expire_us)
        numbers = (self.row_doc, self.row_slot, self.doc_row, self.slot_row)
        arrays = sum(a.nbytes for a in (*columns, *numbers))
        labels = 250 * len(self.row_labels) + 450 * len(self.label_rows)
        vectors = self.vectors.nbytes if self.vectors else 0
        kinds = sum(rows.nbytes for rows, _ in self._kind_rows.values())
        words = self.lexical.nbytes + self.turns.nbytes + 100 * len(self.session_codes)
        return 2000 + kinds + arrays + labels + words + vectors

    @property
    def wasteful(self) -> bool:
        """Whether so much of it is dead that it should be built again."""
        dead = len(self.doc_row) - self.live_count
        return dead > 4096 and dead > 2 * self.live_count

    def index_info(self) -> IndexInfo:
        """Return how vectors are searched."""
        self.index_pending()
        vectors = self.vectors
        graph = vectors.graph if vectors else None
        in_graph = int(vectors.live[: vectors.graph_count].sum()) if vectors else 0
        return IndexInfo(
            loaded=True,
            kind="hnsw" if graph else "exact",
            graph_count=in_graph,
            exact_count=(vectors.live_count if vectors else 0) - in_graph,
            memory_bytes=self.nbytes,
            ef_search=graph.graph.ef if graph else 0,
        )


def _among(rows: slice | RowArray, listed: RowArray) -> BoolArray:
    """Return which of some rows are in a list; both ascend."""
    if isinstance(rows, slice):
        found = np.zeros(rows.stop - rows.start, np.bool_)
        found[listed[_span(listed, rows.start, rows.stop)] - rows.start] = True
        return found
    if not len(listed):
        return np.zeros(len(rows), np.bool_)
    at = np.minimum(np.searchsorted(listed, rows), len(listed) - 1)
    in_list: BoolArray = listed[at] == rows
    return in_list


def _span(listed: RowArray, start: int, stop: int) -> slice:
    """Return where the rows from `start` to before `stop` are in a list that ascends."""
    # Of the list's own type, or the whole list would be converted first.
    return slice(*np.searchsorted(listed, np.array((start, stop), np.int32)).tolist())
