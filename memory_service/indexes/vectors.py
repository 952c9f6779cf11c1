"""Vectors of one namespace: searched exactly while few, by an HNSW graph with an exact tail when many.

A vector has a slot, counted up from 0 in the order of `add_all`; a changed vector gets a new one. The graph
covers the slots below `graph_count`, the matrix the others. A new vector goes to the matrix, so it is found
at once; a job returned by `plan` moves vectors into the graph in another thread, while searches continue.
Everything else is for one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.distinct_graph import DistinctGraph, Linked
from memory_service.indexes.exact_vectors import ExactVectors, FloatMatrix, Found
from memory_service.indexes.hnsw import HnswGraph
from memory_service.indexes.inner_products import scores_of_rows
from memory_service.indexes.jobs import Job
from memory_service.indexes.settings import IndexSettings

SlotArray = NDArray[Any]
BoolArray = NDArray[np.bool_]

_NO_LABELS = np.empty(0, np.int32)
_BUILD_THREADS = 2
_DELETED_MIN = 16
_HELD_OUT = 256
# If only this many match, or this fraction, each is compared instead of searching all vectors.
_FEW_MAX = 4096
_FEW_SHARE = 8
# Reading this many codes, which are contiguous, takes about as long as comparing one vector.
_SCANNED_PER_COMPARED = 16
# Comparisons for each result of a graph.
_COMPARED_PER_FOUND = 12


class VectorIndex:
    """Unit vectors of one dimension, found by inner product."""

    def __init__(self, dimension: int, settings: IndexSettings) -> None:
        self.dimension = dimension
        self._settings = settings
        self._matrix = ExactVectors(np.empty((0, dimension), np.float32))
        self._graph: DistinctGraph | None = None
        self._live = GrowingArray(np.bool_)
        self._live_count = 0
        self._job_running = False
        self._graph_refused_at = 0

    @classmethod
    def of(
        cls,
        settings: IndexSettings,
        matrix: FloatMatrix,
        graph: DistinctGraph | None = None,
        graph_live: BoolArray | None = None,
    ) -> VectorIndex:
        """Return an index with a loaded graph, if any, followed by the unit vectors of a matrix."""
        index = cls(matrix.shape[1], settings)
        index._matrix = ExactVectors(matrix)
        live = np.ones(len(matrix), np.bool_)
        if graph is not None and graph_live is not None:
            index._graph = graph
            graph.restore(graph_live)
            live = np.concatenate([graph_live, live])
        index._live = GrowingArray.of(live)
        index._live_count = int(live.sum())
        return index

    def __len__(self) -> int:
        return len(self._live)

    @property
    def live_count(self) -> int:
        """The number of searchable vectors."""
        return self._live_count

    @property
    def graph(self) -> DistinctGraph | None:
        """The graph, once there is one."""
        return self._graph

    @property
    def graph_count(self) -> int:
        """Slots that the graph covers; the matrix has the others."""
        return self._graph.slot_count if self._graph else 0

    @property
    def live(self) -> BoolArray:
        """Which slots are searchable, shape (len(self),)."""
        return self._live.view

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated."""
        return self._matrix.nbytes + self._live.nbytes + (self._graph.nbytes if self._graph else 0)

    def add_all(self, vectors: FloatMatrix) -> int:
        """Add unit vectors, shape (n, dimension), and return the slot of the first."""
        self._matrix.extend(vectors)
        self._live.extend(np.ones(len(vectors), np.bool_))
        self._live_count += len(vectors)
        return len(self._live) - len(vectors)

    def remove(self, slot: int) -> None:
        """Exclude a vector from results."""
        self._live.view[slot] = False
        self._live_count -= 1
        if self._graph is not None and slot < self._graph.slot_count:
            self._graph.remove(slot, linking=self._job_running)

    def search(self, queries: FloatMatrix, k: int) -> list[Found]:
        """Return for each query, shape (n, dimension), the k best live slots, in any order, and their inner
        products with the query.
        """
        graph = self._graph
        if graph is None:
            return self._matrix.nearest(queries, k, self._live.view)
        if k > graph.slot_count // 4:
            return [self.scan(query, k) for query in queries]
        live = None if self._live_count == len(self._live) else self._live.view
        found = graph.search(queries, k, live)
        if found is None:
            return [
                self.scan(query, k) if len(queries) == 1 else self.search(query[None], k)[0]
                for query in queries
            ]
        found = [(slots[:k], scores[:k]) for slots, scores in found]
        if graph.slot_count == len(self._live):
            return found
        # The graph's last score, or -inf if it found too few.
        over = np.array([s[-1] if 0 < k == len(s) else -np.inf for _, s in found], np.float32)
        tail = self._matrix.nearest(queries, k, self._live.view[graph.slot_count :], over)
        return [
            _merged(f, (rows + graph.slot_count, scores), k) if len(rows) else f
            for f, (rows, scores) in zip(found, tail, strict=True)
        ]

    def work(self, k: int, allowed_count: int | None) -> int:
        """Return the approximate number of comparisons in a search for the k best of all, or of those
        allowed.
        """
        if self._graph is None:
            return len(self._live) // _SCANNED_PER_COMPARED
        count = self._graph.slot_count
        if k > count // 4:
            return len(self._live)
        if allowed_count is None:
            return _COMPARED_PER_FOUND * k
        if allowed_count <= self._compared_max(k):
            return allowed_count
        return _COMPARED_PER_FOUND * k * count // allowed_count

    def search_among(self, query: NDArray[np.float32], k: int, allowed: BoolArray) -> Found:
        """Like `search`, for one query, among the slots marked in `allowed`, of shape (len(self),)."""
        if self._graph is None:
            return self._scan_matrix(query, k, allowed & self._live.view)
        if k > self._graph.slot_count // 4:
            return self.scan(query, k, allowed)
        found = self._search_graph_among(self._graph, query, k, allowed)
        if found is None:
            return self.scan(query, k, allowed)
        first = self._graph.slot_count
        rows, scores = self._scan_matrix(query, k, allowed[first:] & self._live.view[first:])
        return _merged(found, (rows + first, scores), k)

    def _search_graph_among(
        self, graph: DistinctGraph, query: NDArray[np.float32], k: int, allowed: BoolArray
    ) -> Found | None:
        """Ask the graph for more and more until k of its results are allowed."""
        count = graph.slot_count
        wanted = allowed[:count] & self._live.view[:count]
        match_count = int(wanted.sum())
        if match_count <= self._compared_max(k):
            slots = np.flatnonzero(wanted)
            return _best(slots, graph.scores(slots, query), k)
        ask = int(1.5 * k * count / match_count) + 16
        while ask < count // 4:
            found = graph.search(query[None], ask, self._live.view)
            if found is None:
                return None
            slots, scores = found[0]
            kept = wanted[slots]
            if int(kept.sum()) >= k:
                return slots[kept][:k], scores[kept][:k]
            ask *= 3
        return None

    def _compared_max(self, k: int) -> int:
        """Return up to how many matches to compare one by one, instead of searching the graph."""
        return max(min(self._settings.exact_vectors_max, _FEW_MAX), 4 * k)

    def _scan_matrix(self, query: NDArray[np.float32], k: int, wanted: BoolArray) -> Found:
        """Return the k best of the wanted rows of the matrix, shape (rows,)."""
        if np.count_nonzero(wanted) * _FEW_SHARE > len(wanted):
            return self._matrix.nearest(query[None], k, wanted)[0]
        rows = np.flatnonzero(wanted)
        return _best(rows, self._matrix.products(rows, query), k)

    def scan(self, query: NDArray[np.float32], k: int, allowed: BoolArray | None = None) -> Found:
        """Like `search` or `search_among`, by comparing with every vector."""
        wanted = self._live.view if allowed is None else self._live.view & allowed
        slots = np.flatnonzero(wanted)
        return _best(slots, self.scores(slots, query), k)

    def scores(self, slots: SlotArray, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the inner products of the query with the vectors in these slots, in their order."""
        graph = self._graph
        if graph is None:
            return self._matrix.products(slots, query)
        if graph.slot_count == len(self._live):
            return graph.scores(slots, query)
        scores = np.empty(len(slots), np.float32)
        in_graph = slots < graph.slot_count
        scores[in_graph] = graph.scores(slots[in_graph], query)
        scores[~in_graph] = self._matrix.products(slots[~in_graph] - graph.slot_count, query)
        return scores

    def scores_of_rows(
        self, rows: NDArray[np.int32], row_slot: NDArray[np.int32], query: NDArray[np.float32]
    ) -> list[float | None]:
        """Return the inner product of the query with each row's vector, to six digits; None if it has none.

        `row_slot` has the slot of every row, -1 for none.
        """
        matrix = self._matrix.view
        if self._graph is None:
            return scores_of_rows(rows, row_slot, _NO_LABELS, matrix, matrix, query)
        graph = self._graph
        return scores_of_rows(rows, row_slot, graph.slot_group, graph.graph.all_vectors, matrix, query)

    def vectors(self, slots: SlotArray) -> FloatMatrix:
        """Return the unit vectors in these slots, in their order, shape (n, dimension)."""
        if self._graph is None:
            return np.asarray(self._matrix.view[slots])
        in_graph = slots < self._graph.slot_count
        found = np.empty((len(slots), self.dimension), np.float32)
        found[in_graph] = self._graph.vectors(slots[in_graph])
        found[~in_graph] = self._matrix.view[slots[~in_graph] - self._graph.slot_count]
        return found

    def plan(self) -> Job | None:
        """Return the job to do now in another thread. None if there is none, or one is running."""
        if self._job_running:
            return None
        graph = self._graph
        if graph is None:
            due = self._live_count > max(self._settings.exact_vectors_max, 2 * self._graph_refused_at)
        elif graph.graph.deleted_count > max(_DELETED_MIN, len(graph.graph) // 4):
            return self._job(None)
        else:
            due = len(self._live) - graph.slot_count > self._settings.tail_vectors_max
        return self._job(graph) if due else None

    def settle(self) -> Job | None:
        """Like `plan`, but due for any vector outside an existing graph."""
        if self._job_running or self._graph is None or len(self._live) == self._graph.slot_count:
            return self.plan()
        return self._job(self._graph)

    def _job(self, graph: DistinctGraph | None) -> Job:
        """Return the job that moves the matrix into the graph, or everything into a new one."""
        self._job_running = True
        upto = len(self._live)
        slots = np.flatnonzero(self._live.view[:upto])
        fresh = slots if graph is None else slots[slots >= graph.slot_count]
        vectors = self.vectors(fresh)
        settings = self._settings

        def work() -> tuple[DistinctGraph, Linked] | None:
            target = graph or DistinctGraph(self._new_graph(len(vectors)))
            # Some vectors are held out as queries, before they are linked.
            rng = np.random.default_rng(upto)
            asked = np.zeros(len(fresh), np.bool_)
            asked[rng.choice(len(fresh), min(len(fresh) // 2, _HELD_OUT), replace=False)] = True
            linked = target.link(vectors[~asked], fresh[~asked], upto, _BUILD_THREADS)
            reached = True
            if target.graph.needs_calibration():
                present = slots[linked.slot_group[slots] >= 0]
                groups = np.unique(linked.slot_group[present]).astype(np.int64)
                everything = target.graph.vectors(groups[~target.marked(groups)])
                reached = target.graph.calibrate(vectors[asked], everything, settings.recall_target)
            linked = target.link(vectors[asked], fresh[asked], upto, _BUILD_THREADS, after=linked)
            target.find_lone(linked)
            return (target, linked) if reached or graph is not None else None

        return Job(work, self._finish, self.fail_job)

    def _new_graph(self, count: int) -> HnswGraph:
        settings = self._settings
        return HnswGraph(self.dimension, settings.graph_m, settings.graph_ef_construction, 2 * count)

    def _finish(self, result: object) -> None:
        self._job_running = False
        if not isinstance(result, tuple):
            # No ef finds enough of such vectors: exact search continues until there are many more.
            self.fail_job()
            return
        before = self.graph_count
        self._graph, linked = result
        upto = len(linked.slot_group)
        self._matrix = ExactVectors(self._matrix.view[upto - before :].copy())
        self._graph.adopt(linked, self._live.view[:upto])

    def fail_job(self) -> None:
        """Abandon a job; its vectors stay in the matrix."""
        self._job_running = False
        self._graph_refused_at = len(self._live)
        if self._graph is not None:
            self._graph.adopt_again(self._live.view[: self._graph.slot_count])


def _best(slots: SlotArray, scores: NDArray[np.float32], k: int) -> Found:
    if k < len(scores):
        best = scores.argpartition(len(scores) - k)[len(scores) - k :] if k > 0 else np.empty(0, np.int64)
        return slots[best], scores[best]
    return slots, scores


def _merged(one: Found, other: Found, k: int) -> Found:
    return _best(np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]), k)
