"""The bare searches that a server's Retrieve is compared with: numpy and hnswlib, single-threaded."""

from __future__ import annotations

import os
import time
from typing import Any, Protocol

import hnswlib  # type: ignore[import-untyped, unused-ignore]
import numpy as np
from numpy.typing import NDArray

from benchmarks.settings import DIMENSION, GRAPH_EF, GRAPH_EF_CONSTRUCTION, GRAPH_M, LIMIT, RECALL_MIN
from benchmarks.vectors import Dataset, Vectors, recall

Rows = NDArray[np.int64]


class Search(Protocol):
    """A search for the rows nearest to a query, nearest first."""

    name: str

    def rows(self, query: Vectors) -> Rows:
        """Return the LIMIT best rows."""
        ...


class ExactSearch:
    """Compares a query with every row."""

    name = "numpy"

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def rows(self, query: Vectors) -> Rows:
        """Return the LIMIT best rows."""
        scores = self._vectors @ query
        best = np.argpartition(scores, -LIMIT)[-LIMIT:]
        return best[np.argsort(-scores[best])]


class GraphSearch:
    """Searches a graph that hnswlib built with all cores, and records how long that took."""

    def __init__(self, vectors: Vectors) -> None:
        self._index: Any = hnswlib.Index("ip", DIMENSION)
        began = time.perf_counter()
        self._index.init_index(len(vectors), ef_construction=GRAPH_EF_CONSTRUCTION, M=GRAPH_M)
        self._index.add_items(vectors, num_threads=os.cpu_count() or 1)
        self.build_s = time.perf_counter() - began
        self.name = "hnswlib"

    def tune(self, data: Dataset) -> float:
        """Set the smallest width that reaches RECALL_MIN on the queries; return the recall."""
        live = np.ones(len(data.stored), dtype=np.bool_)
        reached = 0.0
        for width in GRAPH_EF:
            self._index.set_ef(width)
            self.name = f"hnswlib ef {width}"
            found = [self.rows(query).tolist() for query in data.queries]
            reached = recall(data.stored, live, data.queries, found)
            if reached >= RECALL_MIN:
                break
        return reached

    def rows(self, query: Vectors) -> Rows:
        """Return the LIMIT best rows."""
        labels, _ = self._index.knn_query(query, LIMIT, num_threads=1)
        rows: Rows = labels[0]
        return rows


def cpu_per_search(search: Search, queries: Vectors, calls: int, limit_s: float = 5.0) -> float:
    """Return CPU seconds of this process per search; end early after `limit_s`."""
    stop = time.perf_counter() + limit_s
    began = time.process_time()
    done = 0
    while done < calls and time.perf_counter() < stop:
        search.rows(queries[done % len(queries)])
        done += 1
    return (time.process_time() - began) / done
