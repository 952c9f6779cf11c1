"""An HNSW graph: the only file that imports hnswlib, and the place that knows its traps.

What hnswlib does, and how it is handled here:

- `knn_query` raises if it finds fewer than k (more requested than live, a filter, deleted ones): k is kept
  below the live count, and remaining failures are answered by an exact scan.
- `add_items` beyond the capacity raises after it added a part: room is made first.
- NaN is accepted and returned as a distance: vectors are checked before they come here.
- Marking a label deleted twice, or adding a deleted one again, goes wrong: labels are never added twice, and
  vectors that come back are unmarked.
- A vector far from all others may be linked so that no search reaches it: `unreached` finds those.
- Reading vectors makes a Python float of each number, and raises for deleted ones: an array holds a second
  copy. Those of a saved graph are read from its file, whose layout `_file_vectors` knows, and a few of them
  are compared with what hnswlib reads.
- Searching while vectors are added, or the graph is resized, is not safe: a lock is held for a few vectors at
  a time. Searching threads get it before the adding one.
- Loading a damaged file may end the process: files are only loaded through `snapshots`, which checks their
  checksum first.
- A Python filter callback takes the GIL for every candidate: none is used. Callers ask for more results and
  drop those they do not want.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hnswlib
import numpy as np
from numpy.typing import NDArray

from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.inner_products import inner_products

FloatMatrix = NDArray[np.float32]
LabelArray = NDArray[np.int64]

_EF_STEPS = (
    *range(16, 48, 4), *range(48, 80, 8), *range(80, 160, 16), *range(160, 320, 32),
    *range(320, 640, 64), *range(640, 1280, 128), 1280, 1536, 2048,
)  # fmt: skip
_SAMPLE_QUERIES = 256
_SAMPLE_K = 10
_BETWEEN = 6
_SEARCHED_RECENTLY_S = 1.0
_PATIENCE_S = 0.0002
_HEADER_BYTES = 96
_ELEMENTS_AT_ONCE = 16_384


class _Turns:
    """A mutex which prefers searching threads to the one that adds.

    Searches use it as a context manager, the adding thread `patient()`. With a plain threading.Lock, the
    adding thread would usually get the lock again right after it released it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting = 0

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._waiting += 1
            self._lock.acquire()
            self._waiting -= 1

    def __exit__(self, *exc: object) -> None:
        self._lock.release()

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Wait until no search is waiting, then hold the lock."""
        while self._waiting:
            time.sleep(_PATIENCE_S)
        with self._lock:
            yield


class HnswGraph:
    """Unit vectors by inner product. Labels are given by the caller, counted up from 0.

    `search` and `mark_deleted` may be called by any thread while one other thread adds.
    """

    def __init__(self, dimension: int, m: int, ef_construction: int, capacity: int) -> None:
        self.dimension = dimension
        self.ef = 64
        self._index = hnswlib.Index(space="ip", dim=dimension)
        self._index.init_index(max_elements=max(capacity, 16), M=m, ef_construction=ef_construction)
        self._vectors = GrowingArray(np.float32, dimension)
        self._init_lock()

    def _init_lock(self) -> None:
        self._live_count: int = 0
        self._calibrated_count: int = 0
        self._calibrated_live: int = 0
        self._searched_at = 0.0
        self._ef_set = 0
        self._turns = _Turns()

    def __len__(self) -> int:
        return int(self._index.element_count)

    @property
    def live_count(self) -> int:
        """Vectors that are not deleted."""
        return int(self._live_count)

    @property
    def deleted_count(self) -> int:
        """Deleted vectors that still take room."""
        return int(len(self) - self._live_count)

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated."""
        per_vector = 4 * self.dimension + 8 * int(self._index.M) + 48
        return int(self._index.max_elements) * per_vector + self._vectors.nbytes

    def add(self, vectors: FloatMatrix, labels: LabelArray, threads: int) -> None:
        """Link vectors of shape (n, dimension) into the graph, a few at a time."""
        self._vectors.extend(vectors)
        done = 0
        while done < len(vectors):
            # Large steps use all threads; small ones keep searches from waiting long.
            searched = time.monotonic() - self._searched_at < _SEARCHED_RECENTLY_S
            step, step_threads = (16, 1) if searched else (256, threads)
            upto = min(done + step, len(vectors))
            with self._turns.patient():
                if len(self) + upto - done > self._index.max_elements:
                    self._index.resize_index(int(1.5 * (len(self) + len(vectors))))
                self._index.add_items(vectors[done:upto], labels[done:upto], num_threads=step_threads)
                self._live_count += upto - done
            done = upto

    def mark_deleted(self, labels: LabelArray) -> None:
        """Exclude vectors from results. Each label at most once, and only after it was added."""
        with self._turns:
            for label in labels.tolist():
                self._index.mark_deleted(label)
            self._live_count -= len(labels)

    def unmark_deleted(self, labels: LabelArray) -> None:
        """Include vectors again that were marked as deleted."""
        with self._turns:
            for label in labels.tolist():
                self._index.unmark_deleted(label)
            self._live_count += len(labels)

    def restore_deletions(self, dead: LabelArray, live_count: int) -> None:
        """Mark dead vectors in a graph just loaded, whose file may lack labels or marks."""
        for label in dead.tolist():
            try:
                self._index.mark_deleted(label)
            except RuntimeError:
                continue
        self._live_count = live_count

    def search(self, queries: FloatMatrix, k: int) -> tuple[LabelArray, FloatMatrix] | None:
        """Return labels and inner products of the k nearest live vectors of each query, best first.

        Queries have shape (n, dimension), results (n, k), or fewer columns if fewer are live. None if for one
        of the queries the graph found fewer than it holds: the caller must search for each alone, or scan.
        """
        self._searched_at = time.monotonic()
        with self._turns:
            k = min(k, self.live_count)
            if k <= 0:
                return np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0), np.float32)
            # Calibrated for _SAMPLE_K results; more need a wider search.
            self._set_ef(self.ef + 2 * max(k - _SAMPLE_K, 0))
            try:
                labels, distances = self._index.knn_query(queries, k=k, num_threads=1)
            except RuntimeError:
                return None
        return labels.astype(np.int64), 1.0 - distances

    def _set_ef(self, ef: int) -> None:
        if ef != self._ef_set:
            self._index.set_ef(ef)
            self._ef_set = ef

    def unreached(self, labels: LabelArray) -> LabelArray:
        """Return those of these live vectors that a search for themselves does not find.

        No link leads to a vector far from all others once its nearest neighbours have their lists full of
        nearer ones. For the thread that adds.
        """
        return np.asarray([label for label in labels.tolist() if not self._is_reached(label)], np.int64)

    def _is_reached(self, label: int) -> bool:
        vector = self._vectors.view[label]
        with self._turns.patient():
            self._set_ef(self.ef)
            try:
                _, distances = self._index.knn_query(vector, k=1, num_threads=1)
            except RuntimeError:
                return False
        return bool(1.0 - distances[0, 0] >= vector @ vector - 1e-6)

    def vectors(self, labels: NDArray[Any]) -> FloatMatrix:
        """Return the vectors of labels, in their order, shape (n, dimension)."""
        return np.asarray(self._vectors.view[labels])

    @property
    def all_vectors(self) -> FloatMatrix:
        """The vectors by label, not copied. Valid until the next `add`."""
        return self._vectors.view

    def scores(self, labels: NDArray[np.int32], query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the inner products of a query with the vectors of labels, in their order."""
        return inner_products(self._vectors.view, labels, query)

    def needs_calibration(self) -> bool:
        """Return whether the graph has changed so much since `calibrate` that its ef may be wrong."""
        grown = len(self) > 1.25 * self._calibrated_count
        return grown or self.live_count < 0.85 * self._calibrated_live

    def calibrate(self, queries: FloatMatrix, vectors: FloatMatrix, recall_target: float) -> bool:
        """Set `ef` a little above the smallest that reaches the recall; return False if none does.

        `vectors` are the live ones. `queries` resemble future queries and are not in the graph, because a
        graph finds its own vectors more easily than others. For the thread that adds.
        """
        self._calibrated_count, self._calibrated_live = len(self), self.live_count
        # Less evidence, more margin; and the queries are about to make the graph larger.
        enough = len(queries) >= _SAMPLE_QUERIES // 2
        margin = 1.1 * (1 + len(queries) / len(vectors)) if enough else 1.75
        if len(queries) < _SAMPLE_QUERIES:
            queries = np.concatenate([queries, _between(vectors)[len(queries) :]])
        exact = _top_scores(queries, vectors)
        for ef in _EF_STEPS:
            if self._recall(queries, exact, ef) >= recall_target:
                self.ef = math.ceil(margin * ef)
                return True
        self.ef = _EF_STEPS[-1]
        return False

    def _recall(self, queries: FloatMatrix, exact: FloatMatrix, ef: int) -> float:
        found = 0
        k = min(_SAMPLE_K, self.live_count)
        for query, best in zip(queries, exact, strict=True):
            with self._turns.patient():
                self._set_ef(max(ef, k))
                try:
                    _, distances = self._index.knn_query(query, k=k, num_threads=1)
                except RuntimeError:
                    continue
            found += int((1.0 - distances[0] >= best[-k] - 1e-6).sum())
        return found / (len(queries) * k)

    def save(self, path: Path) -> LabelArray:
        """Write the graph to a file, without deleted vectors; return the labels of these.

        For the thread that adds. Raises OSError.
        """
        self._index.save_index(str(path))
        # hnswlib does not report when the disk takes only a part.
        if path.stat().st_size != self.file_bytes:
            raise OSError(f"{path.name} was written only partly")
        return _replace_deleted(path, self.dimension)

    @property
    def file_bytes(self) -> int:
        """The size of the file that `save` writes."""
        return int(self._index.index_file_size())

    @classmethod
    def load(cls, path: Path, dimension: int, ef: int) -> HnswGraph:
        """Read a graph written by `save`. The caller has verified that the file is intact.

        `ef` is the one it had. Deleted vectors must be marked with `restore_deletions`.
        """
        graph = cls.__new__(cls)
        graph.dimension = dimension
        graph._index = hnswlib.Index(space="ip", dim=dimension)
        graph._index.load_index(str(path))
        graph._vectors = GrowingArray.of(_file_vectors(path, dimension))
        graph._check_vectors()
        graph._init_lock()
        graph.ef = ef
        graph._live_count = graph._calibrated_count = graph._calibrated_live = len(graph)
        return graph

    def _check_vectors(self) -> None:
        """Compare some vectors read from a file with those that hnswlib reads."""
        count = len(self)
        if count != len(self._vectors):
            raise ValueError("the file has a different number of vectors than the graph")
        for label in {0, count // 3, count - 1} if count else ():
            try:
                vector = self._index.get_items([label], return_type="numpy")[0]
            except RuntimeError:  # A deleted vector.
                continue
            if not np.array_equal(vector, self._vectors.view[label]):
                raise ValueError("the file of the graph has a different layout than this version of hnswlib")


def _file_vectors(path: Path, dimension: int) -> FloatMatrix:
    """Return the vectors in a file written by hnswlib, by label.

    The layout is that of `saveIndex` in its hnswalg.h: six sizes, two numbers of 32 bits, five of 64, then
    for each vector its links, itself, and its label.
    """
    _, _, count, stride, label_at, vector_at = np.fromfile(path, np.uint64, 6).tolist()
    vectors = np.empty((count, dimension), np.float32)
    if not count:
        return vectors
    for _, part in _parts(path, count, stride):
        labels = part[:, label_at : label_at + 8].copy().view(np.uint64)[:, 0]
        vectors[labels] = part[:, vector_at : vector_at + 4 * dimension].view(np.float32)
    return vectors


def _parts(path: Path, count: int, stride: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield the elements of a file some thousand at a time, with the number of the first: mapping all of them
    at once would take the memory of the vectors a second time.
    """
    for start in range(0, count, _ELEMENTS_AT_ONCE):
        shape = min(_ELEMENTS_AT_ONCE, count - start), stride
        yield start, np.memmap(path, np.uint8, "r", _HEADER_BYTES + start * stride, shape)


def _replace_deleted(path: Path, dimension: int) -> LabelArray:
    """Overwrite each deleted vector in a file by a live one that it is linked to; return the labels of the
    deleted ones.

    So the file reveals nothing of them, and searches still find their way through their places. The links on
    the lowest level start with their number, in 16 bits, and a byte whose lowest bit marks a deleted vector.
    """
    _, _, count, stride, label_at, vector_at = np.fromfile(path, np.uint64, 6).tolist()
    if not count:
        return np.empty(0, np.int64)
    dead = np.concatenate([part[:, 2] & 1 for _, part in _parts(path, count, stride)]).astype(np.bool_)
    if not dead.any():
        return np.empty(0, np.int64)
    elements = np.memmap(path, np.uint8, "r+", _HEADER_BYTES, (count, stride))
    anywhere = int(np.argmin(dead))  # A live one, if there is any.
    vector = slice(vector_at, vector_at + 4 * dimension)
    labels = []
    for start in range(0, count, 16_384):
        at = start + np.flatnonzero(dead[start : start + 16_384])
        part = np.ascontiguousarray(elements[at])
        links = np.minimum(part[:, 4:vector_at].copy().view(np.uint32), count - 1)
        linked = np.arange(links.shape[1]) < part[:, :2].copy().view(np.uint16)
        live = linked & ~dead[links]
        first = links[np.arange(len(at)), live.argmax(axis=1)]
        source = np.where(live.any(axis=1), first, anywhere)
        elements[at, vector] = 0 if dead[anywhere] else elements[source, vector]
        labels.append(part[:, label_at : label_at + 8].copy().view(np.int64)[:, 0])
    elements.flush()
    return np.concatenate(labels)


def _between(vectors: FloatMatrix) -> FloatMatrix:
    """Return queries that lie between several vectors each, off the data, where finding is hard."""
    rng = np.random.default_rng(len(vectors))
    chosen = rng.integers(0, len(vectors), (_SAMPLE_QUERIES, _BETWEEN))
    sums = vectors[chosen].sum(axis=1)
    norms = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return np.asarray(sums / norms, np.float32)


def _top_scores(queries: FloatMatrix, vectors: FloatMatrix) -> FloatMatrix:
    """Return the best inner products of each query in ascending order; -inf where there are fewer."""
    best = np.full((len(queries), _SAMPLE_K), -np.inf, np.float32)
    for start in range(0, len(vectors), 16_384):
        scores = queries @ vectors[start : start + 16_384].T
        best = np.sort(np.concatenate([best, scores], axis=1), axis=1)[:, -_SAMPLE_K:]
    return np.asarray(best, np.float32)
