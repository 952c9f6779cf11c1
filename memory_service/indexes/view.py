"""The view of one namespace: everything needed to find its items, in memory.

A row represents an item; rows are in the order of positions, and never move. Vectors and documents (for
words) are numbered separately, so that a changed item gets new ones while its row stays. A view is derived
from records: it can be dropped and built again at any time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from memory_service.data_model import (
    CONVERSATION_KINDS,
    KIND_NUMBERS,
    UNSET_IMPORTANCE,
    IndexInfo,
    Item,
    ItemKind,
    LabelKey,
    index_labels,
)
from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.inner_products import unit_rows
from memory_service.indexes.jobs import Job
from memory_service.indexes.lexical import LexicalIndex
from memory_service.indexes.orders import Orders
from memory_service.indexes.sessions import SessionIndex
from memory_service.indexes.settings import IndexSettings
from memory_service.indexes.sorted_labels import SortedLabels
from memory_service.indexes.turns import Turns, weighed
from memory_service.indexes.value_columns import ValueColumns
from memory_service.indexes.vectors import VectorIndex
from memory_service.indexes.word_scoring import Tables

NEVER_US = np.iinfo(np.int64).max
_NONE = -1
_BATCH_ENTRIES = 64
_UNLISTED_MAX = 64
_NO_LABELS: dict[LabelKey, str] = {}
_ENTRY_BYTES = 1500
_IS_TURN = np.array([kind in CONVERSATION_KINDS for kind in range(KIND_NUMBERS)])

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
RowArray = NDArray[np.int32]


@dataclass(slots=True)
class Entry:
    """An item as a view needs it. vector None: it has none; `vector_key` identifies it permanently."""

    position: int
    vector_key: int
    session_id: str
    create_us: int
    expire_us: int | None
    labels: dict[LabelKey, str]
    kind: ItemKind
    terms: bytes
    """As packed by `pack_terms`."""
    vector: NDArray[np.float32] | None
    item: Item
    """For the columns of other fields and of importance; it may lack its embedding."""

    @classmethod
    def of(cls, item: Item, terms: bytes, vector_key: int) -> Entry:
        """Return the entry of a written item."""
        return cls(
            item.position, vector_key, item.session_id, item.create_us, item.expire_us,
            index_labels(item.labels, item.facet), item.kind, terms, item.embedding, item,
        )  # fmt: skip


class NamespaceView:
    """Rows, words and vectors of one namespace. For use by one thread; but see `searched`."""

    def __init__(self, analyzer: Analyzer, settings: IndexSettings) -> None:
        self.analyzer = analyzer
        self._settings = settings
        self.positions = GrowingArray(np.int64)
        self.live = GrowingArray(np.bool_)
        self.sessions = GrowingArray(np.int32)
        self.kinds = GrowingArray(np.int8)
        self.kind_counts = [0] * KIND_NUMBERS
        self.create_us = GrowingArray(np.int64)
        self.expire_us = GrowingArray(np.int64)
        self.importances = GrowingArray(np.float64)
        self.use_counts = GrowingArray(np.int32)
        self.row_doc = GrowingArray(np.int32)
        self.row_slot = GrowingArray(np.int32)
        self.doc_row = GrowingArray(np.int32)
        self.slot_row = GrowingArray(np.int32)
        # The key of each slot's vector, which identifies it in snapshots.
        self.slot_keys = GrowingArray(np.int64)
        self.saved_slot_count = 0
        # The revision of the columns in the snapshot; -1 if it has none.
        self.saved_revision = -1
        # The number of times that all vectors were given up.
        self.vector_epoch = 0
        self.session_codes: dict[str, int] = {"": 0}
        # The rows of each label, ascending: all that have it, and perhaps dead ones that had it.
        self.label_rows: dict[tuple[LabelKey, str], array[int]] = {}
        self.row_labels: dict[int, dict[LabelKey, str]] = {}
        self.sorted_labels = SortedLabels()
        # The rows of a kind, including dead ones, among the first rows, and the number of those; built on
        # first use.
        self.kind_rows: dict[ItemKind, tuple[GrowingArray, int]] = {}
        self.lexical = LexicalIndex()
        self.turns = Turns()
        # The turns that searches must not find, not even by their neighbours' words. Nearly always empty.
        self.unindexed: set[int] = set()
        self.vectors: VectorIndex | None = None
        self.columns = ValueColumns()
        self.orders = Orders()
        # Made when sessions are first listed.
        self.session_index: SessionIndex | None = None
        self.live_count = 0
        self.expiring_count = 0
        self._pending: list[Entry] = []
        self._tables: Tables | None = None
        self.revision = 0
        # Held by a search in another thread, which was begun by the thread that changes the view.
        self.searched = Lock()

    # --- changing -----------------------------------------------------------------------------

    def wait_until_searched(self) -> None:
        """Wait for a search in another thread, if any, before changing what it reads."""
        if self.searched.locked():
            with self.searched:
                pass

    def add(self, entries: Sequence[Entry]) -> None:
        """Append items in order. Their positions are above all others.

        Entries are indexed in batches, at the latest before the next read: most of the work is per call, not
        per entry. A caller that adds more than a batch calls `index_some` for the rest.
        """
        self._pending += entries
        if len(entries) <= _BATCH_ENTRIES <= len(self._pending):
            self.index_some()

    def index_pending(self) -> None:
        """Index entries that are not indexed yet. Every read does this first."""
        while self.index_some():
            pass

    def index_some(self) -> bool:
        """Index a batch of entries that are not indexed yet. Return whether there are more."""
        if not self._pending:
            return False
        self.wait_until_searched()
        entries, self._pending = self._pending[:_BATCH_ENTRIES], self._pending[_BATCH_ENTRIES:]
        self._tables = None
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
        self.importances.extend([_importance(e) for e in entries])
        self.use_counts.extend(np.zeros(count, np.int32))
        self.row_doc.extend(self.lexical.add_all([e.terms for e in entries]))
        self.doc_row.extend(rows)
        self.row_slot.extend(np.full(count, _NONE, np.int32))
        self.live_count += count
        self.columns.extend([e.item for e in entries], first)
        for row, entry in zip(rows.tolist(), entries, strict=True):
            if not entry.terms and entry.kind in CONVERSATION_KINDS:
                self.unindexed.add(row)
            self.expiring_count += entry.expire_us is not None
            self.kind_counts[entry.kind] += 1
            if entry.labels:
                self.label_row(row, entry.labels)
        self._index_vectors(
            [(row, e.vector, e.vector_key) for row, e in enumerate(entries, first) if e.vector is not None]
        )
        self.lexical.merge_few()
        if self.session_index is not None:
            self.session_index.add(first)
        return bool(self._pending)

    def replace(self, entry: Entry, *, keep_vector: bool) -> None:
        """Replace the item at an entry's position."""
        self.index_pending()
        self.wait_until_searched()
        self._tables = None
        row = self.row_of(entry.position)
        self.orders.touch((row,))
        self._expiring(row, -1)
        before = self._conversation(row)
        if self.session_index is not None and self._differs(row, entry):
            self.session_index.change([row])
            self._fill(row, entry)
            self.session_index.change([row])
        else:
            self._fill(row, entry)
        self.columns.put(row, entry.item)
        if (after := self._conversation(row)) != before:
            self.turns.remove(row, before)
            self.turns.insert(row, after, self._turns_of(after, row))
        self.unindexed.discard(row)
        if not entry.terms and entry.kind in CONVERSATION_KINDS:
            self.unindexed.add(row)
        self.lexical.remove(int(self.row_doc.view[row]))
        self.row_doc.view[row] = self.lexical.add_all([entry.terms])[0]
        self.doc_row.append(row)
        self.lexical.merge_few()
        if not keep_vector:
            self._drop_vector(row)
            if entry.vector is not None:
                self._index_vectors([(row, entry.vector, entry.vector_key)])

    def fill_vector(self, position: int, vector: NDArray[np.float32], key: int) -> None:
        """Set the pending vector of an item, if it is in the view. Idempotent."""
        self.index_pending()
        self.wait_until_searched()
        row = self._find(position)
        if row is None or not self.live.view[row]:
            return
        slot = int(self.row_slot.view[row])
        if slot == _NONE or self.slot_keys.view[slot] != key:
            self._drop_vector(row)
            self._index_vectors([(row, vector, key)])

    def give_up_vectors(self, epoch: int, dimension: int) -> None:
        """Drop all vectors from before this epoch; `dimension` is that of future ones, 0 if unknown."""
        if self.vector_epoch >= epoch:
            return
        self.index_pending()
        self.wait_until_searched()
        self.vector_epoch = epoch
        # A new index, because another thread may be working on the old one.
        self.vectors = VectorIndex(dimension, self._settings) if dimension else None
        self.row_slot.view[:] = _NONE
        self.slot_row, self.slot_keys = GrowingArray(np.int32), GrowingArray(np.int64)
        self.saved_slot_count, self.saved_revision = 0, -1

    def remove(self, positions: Sequence[int]) -> None:
        """Remove items from all results. Reads wait until all are removed: there may be ten thousand
        fragments.
        """
        if not positions:
            return
        self.index_pending()
        self.wait_until_searched()
        self._tables = None
        rows = np.searchsorted(self.positions.view, np.array(positions, np.int64))
        self.live.view[rows] = False
        self.unindexed.difference_update(rows.tolist() if self.unindexed else ())
        self.orders.touch(rows.tolist())
        if self.session_index is not None:
            self.session_index.change(rows)
        kinds = self.kinds.view[rows]
        for row in rows[_IS_TURN[kinds]].tolist():
            self.turns.remove(row, self._conversation(row))
        self.live_count -= len(rows)
        for kind, count in enumerate(np.bincount(kinds, minlength=KIND_NUMBERS).tolist()):
            self.kind_counts[kind] -= count
        self.expiring_count -= int((self.expire_us.view[rows] != NEVER_US).sum())
        for row in rows.tolist():
            for pair in self.row_labels.pop(row, _NO_LABELS).items():
                # In a long list, a dead row costs less than moving all rows behind it.
                if len(self.label_rows[pair]) <= _UNLISTED_MAX:
                    self._unlist(pair, row)
        self.lexical.remove_all(self.row_doc.view[rows])
        for row in rows[self.row_slot.view[rows] != _NONE].tolist():
            self._drop_vector(row)

    def record_uses(self, use_counts: Mapping[int, int]) -> None:
        """Set the use counts of the items at these positions; missing ones are skipped.

        Counts only grow, so repeated and late updates are harmless.
        """
        self.index_pending()
        for position, count in use_counts.items():
            if (row := self._find(position)) is not None:
                self.use_counts.view[row] = max(self.use_counts.view[row], count)

    def _find(self, position: int) -> int | None:
        """Return the row of an item; None if it is not in the view."""
        row = self.row_of(position)
        return row if row < len(self.positions) and self.positions.view[row] == position else None

    def _fill(self, row: int, entry: Entry) -> None:
        code = self.session_codes.setdefault(entry.session_id, len(self.session_codes))
        self.sessions.view[row] = code
        self.kind_counts[self.kinds.view[row]] -= 1
        self.kind_counts[entry.kind] += 1
        if self.kinds.view[row] != entry.kind:
            self.kind_rows.clear()
        self.kinds.view[row] = entry.kind
        self.create_us.view[row] = entry.create_us
        self.expire_us.view[row] = NEVER_US if entry.expire_us is None else entry.expire_us
        self.importances.view[row] = _importance(entry)
        self._expiring(row, 1)
        self.label_row(row, entry.labels)

    def _differs(self, row: int, entry: Entry) -> bool:
        """Return whether an entry means something else to its session than the present row."""
        expire_us = NEVER_US if entry.expire_us is None else entry.expire_us
        present = (
            self.sessions.view[row],
            self.kinds.view[row],
            self.create_us.view[row],
            self.expire_us.view[row],
        )
        return present != (self.session_codes.get(entry.session_id), entry.kind, entry.create_us, expire_us)

    def _conversation(self, row: int) -> int:
        """Return the number of a row's conversation; 0 if it is not a turn."""
        return int(self.sessions.view[row]) if _IS_TURN[self.kinds.view[row]] else 0

    def _turns_of(self, conversation: int, but: int) -> RowArray:
        """Return the other rows of a conversation, ascending."""
        in_it = (self.sessions.view == conversation) & self.live.view & _IS_TURN[self.kinds.view]
        in_it[but] = False
        return np.flatnonzero(in_it).astype(np.int32)

    def recount(self) -> None:
        """Recompute counts and the order of turns, after columns were filled directly."""
        live = self.live.view
        self.live_count = int(live.sum())
        self.expiring_count = int(((self.expire_us.view != NEVER_US) & live).sum())
        self.kind_counts = np.bincount(self.kinds.view[live], minlength=KIND_NUMBERS).tolist()
        self.row_slot = GrowingArray.of(np.full(len(live), _NONE, np.int32))
        turns = _IS_TURN[self.kinds.view] & live
        self.turns = Turns.build(np.where(turns, self.sessions.view, 0))
        self.unindexed = set(np.flatnonzero(turns & self.lexical.lacking_words(self.row_doc.view)).tolist())

    def label_row(self, row: int, labels: dict[LabelKey, str]) -> None:
        """Replace the labels of a row."""
        before = self.row_labels.pop(row, {})
        for pair in before.items():
            if labels.get(pair[0]) != pair[1]:
                self._unlist(pair, row)
        if labels:
            self.row_labels[row] = labels
        for pair in labels.items():
            if before.get(pair[0]) != pair[1]:
                if (listed := self.label_rows.get(pair)) is None:
                    listed = self.label_rows[pair] = array("i")
                    self.sorted_labels.add(pair)
                insort(listed, row)

    def _unlist(self, pair: tuple[LabelKey, str], row: int) -> None:
        listed = self.label_rows[pair]
        del listed[bisect_left(listed, row)]
        if not listed:
            del self.label_rows[pair]
            self.sorted_labels.remove(pair)

    def _expiring(self, row: int, step: int) -> None:
        if self.expire_us.view[row] != NEVER_US:
            self.expiring_count += step

    def tables(self, neighbour_weight: float = 1.0) -> Tables:
        """Return the tables to look up words in. Valid until the next change."""
        if neighbour_weight != 1.0:
            return self._make_tables(neighbour_weight)
        if self._tables is None:
            self._tables = self._make_tables(1.0)
        return self._tables

    def _make_tables(self, neighbour_weight: float) -> Tables:
        mean_window = self.turns.mean_window(max(self.live_count, 1), neighbour_weight)
        rows = self.doc_row.view, self.row_doc.view, *self.turns.links, mean_window
        return self.lexical.tables(rows, weighed(neighbour_weight))

    def plan(self) -> Job | None:
        """Return the job to do now in another thread. None if there is none, or only running ones."""
        if (merge := self.lexical.plan()) is not None:
            return Job(merge.work, partial(self._finish_merge, merge), merge.fail)
        return None if self.vectors is None else self.vectors.plan()

    def settle(self) -> Job | None:
        """Like `plan`, but due for any vector outside an existing graph."""
        return self.plan() or (None if self.vectors is None else self.vectors.settle())

    def _finish_merge(self, merge: Job, merged: object) -> None:
        merge.finish(merged)
        self._tables = None

    def _index_vectors(self, given: Sequence[tuple[int, NDArray[np.float32], int]]) -> None:
        """Index the vectors of rows, with their keys."""
        if not given:
            return
        rows, vectors, keys = zip(*given, strict=True)
        units = unit_rows(np.array(vectors, np.float32))
        if self.vectors is None:
            self.vectors = VectorIndex(units.shape[1], self._settings)
        first = self.vectors.add_all(units)
        self.row_slot.view[list(rows)] = np.arange(first, first + len(rows))
        self.slot_row.extend(rows)
        self.slot_keys.extend(keys)

    def _drop_vector(self, row: int) -> None:
        slot = int(self.row_slot.view[row])
        if slot != _NONE and self.vectors is not None:
            self.vectors.remove(slot)
            self.row_slot.view[row] = _NONE

    def row_of(self, position: int) -> int:
        """Return the row of an item that is in the view."""
        return int(np.searchsorted(self.positions.view, position))

    # --- describing ---------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated."""
        columns = (self.positions, self.live, self.sessions, self.kinds, self.create_us, self.expire_us)
        weighed = (self.importances, self.use_counts)
        numbers = (self.row_doc, self.row_slot, self.doc_row, self.slot_row)
        arrays = sum(a.nbytes for a in (*columns, *weighed, *numbers))
        labels = 250 * len(self.row_labels) + 450 * len(self.label_rows) + self.sorted_labels.nbytes
        vectors = self.vectors.nbytes if self.vectors else 0
        kinds = sum(rows.nbytes for rows, _ in self.kind_rows.values())
        words = self.lexical.nbytes + self.turns.nbytes + 100 * len(self.session_codes)
        pending = sum(_ENTRY_BYTES + (0 if e.vector is None else e.vector.nbytes) for e in self._pending)
        sessions = self.session_index.nbytes if self.session_index else 0
        fields = self.columns.nbytes + self.orders.nbytes + sessions
        return 2000 + kinds + arrays + labels + words + vectors + pending + fields

    @property
    def written_count(self) -> int:
        """The number of writes of items to this view."""
        return len(self.doc_row) + len(self._pending)

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


def _importance(entry: Entry) -> float:
    importance = entry.item.importance
    return UNSET_IMPORTANCE if importance is None else importance
