"""Unit vectors in a matrix, compared exhaustively with a query by their 8-bit codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.inner_products import inner_products
from memory_service.indexes.quantized_rows import QuantizedRows

FloatMatrix = NDArray[np.float32]
FloatArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]
Found = tuple[NDArray[Any], FloatArray]
"""Numbers of rows or slots, and their inner products with a query."""


class ExactVectors:
    """Rows that are appended and never change.

    New rows get their codes at the next search. `extend` is for one thread; searches may run in several
    threads, but not during `extend`.
    """

    def __init__(self, matrix: FloatMatrix) -> None:
        """Start with the unit vectors of a matrix, shape (n, dimension), which is not copied."""
        self._matrix = GrowingArray.of(matrix)
        self._codes = QuantizedRows(matrix.shape[1])
        self._codes.encode(matrix)

    def __len__(self) -> int:
        return len(self._matrix)

    @property
    def view(self) -> FloatMatrix:
        """The vectors, shape (len(self), dimension), not copied. Valid until the next `extend`."""
        return self._matrix.view

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self._matrix.nbytes + self._codes.nbytes

    def extend(self, vectors: FloatMatrix) -> None:
        """Append unit vectors."""
        self._matrix.extend(vectors)

    def nearest(
        self, queries: FloatMatrix, k: int, live: BoolArray, over: FloatArray | None = None
    ) -> list[Found]:
        """Return for each query the k live rows with the largest inner products, best first.

        Only products larger than the query's value in `over` count; None: all. The matrix is read once for
        all queries.
        """
        if over is None:
            over = np.full(len(queries), -np.inf, np.float32)
        queries = np.ascontiguousarray(queries, np.float32)
        return self._codes.nearest(self._matrix.view, live.view(np.uint8), queries, k, over)

    def products(self, rows: NDArray[Any], query: FloatArray) -> FloatArray:
        """Return the inner products of a query with some rows, in their order."""
        return inner_products(self._matrix.view, rows.astype(np.int32, copy=False), query)
