"""Finding the nearest rows through 8-bit codes gives the same result as comparing every vector."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_service.indexes.exact_vectors import ExactVectors
from memory_service.indexes.quantized_rows import KERNELS, QuantizedRows

Matrix = NDArray[np.float32]

ANY = float(np.finfo(np.float32).min)
# Tolerance for sums of floats.
CLOSE = 2e-6


def units(vectors: NDArray[np.float64]) -> Matrix:
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def spread(rng: np.random.Generator, count: int, dimension: int) -> Matrix:
    """Return vectors in all directions."""
    return units(rng.normal(size=(count, dimension)))


def crowded(rng: np.random.Generator, count: int, dimension: int) -> Matrix:
    """Return vectors so close to each other that their codes hardly differ."""
    return units(rng.normal(size=dimension) + 1e-3 * rng.normal(size=(count, dimension)))


def peaked(rng: np.random.Generator, count: int, dimension: int) -> Matrix:
    """Return vectors with one large value, which makes the codes of their other values coarse."""
    vectors = 0.03 * rng.normal(size=(count, dimension))
    vectors[np.arange(count), rng.integers(0, dimension, count)] = 1
    return units(vectors)


def repeated(rng: np.random.Generator, count: int, dimension: int) -> Matrix:
    """Return a few vectors over and over."""
    return spread(rng, 3, dimension)[rng.integers(0, 3, count)]


def check(
    matrix: Matrix, live: NDArray[np.bool_], queries: Matrix, k: int, over: Matrix, codes: QuantizedRows
) -> None:
    found = codes.nearest(matrix, live.view(np.uint8), queries, k, over)
    assert len(found) == len(queries)
    for query, least, (rows, products) in zip(queries, over, found, strict=True):
        every = matrix.astype(np.float64) @ query.astype(np.float64)
        candidates = np.sort(every[live & (every > least + CLOSE)])[::-1][:k]
        assert len(set(rows.tolist())) == len(rows) <= k
        assert live[rows].all()
        assert np.allclose(products, every[rows], rtol=0, atol=CLOSE)
        assert (np.diff(products) <= 0).all()
        assert (products > least).all()
        # Candidates just above the threshold may be missing.
        assert len(products) >= len(candidates)
        assert np.allclose(products[: len(candidates)], candidates, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("make", [spread, crowded, peaked, repeated])
@pytest.mark.parametrize("dimension", [1, 3, 8, 255, 256])
def test_the_nearest_are_those_of_comparing_all(kernel: str, make: type, dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    for count in (0, 1, 256, 257, 288, 1000):
        matrix, codes = make(rng, count, dimension), QuantizedRows(dimension, kernel)
        for asked, k in ((1, 1), (2, 10), (7, 64), (4, count + 5)):
            # Queries in any direction, and some that equal a stored vector.
            queries = np.concatenate([spread(rng, asked, dimension), make(rng, 2, dimension), matrix[:2]])
            over = np.full(len(queries), ANY, np.float32)
            check(matrix, np.ones(count, np.bool_), queries, k, over, codes)
            check(matrix, rng.random(count) < 0.5, queries, k, over, codes)
            over[:] = rng.uniform(-0.2, 0.9, len(queries))
            check(matrix, rng.random(count) < 0.9, queries, k, over, codes)


@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_that_are_added_later_are_found(kernel: str) -> None:
    rng = np.random.default_rng(1)
    everything, codes = spread(rng, 700, 32), QuantizedRows(32, kernel)
    queries = spread(rng, 3, 32)
    for count in (*range(240, 330, 7), 700):
        over = np.full(3, ANY, np.float32)
        check(everything[:count], np.ones(count, np.bool_), queries, 10, over, codes)


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_of_any_size_have_codes(kernel: str) -> None:
    matrix = np.zeros((300, 4), np.float32)
    matrix[:, 0] = 1
    matrix[1:150, 1] = np.float32(1e-42)  # A subnormal number.
    matrix[150:, 1] = np.float32(-1e-10)
    queries = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, -1, 0, 0], [0, 0, 0, 1]], np.float32)
    check(matrix, np.ones(300, np.bool_), queries, 20, np.full(4, ANY, np.float32), QuantizedRows(4, kernel))


def test_all_kernels_find_the_same() -> None:
    assert KERNELS[-1] == "portable"
    rng = np.random.default_rng(2)
    matrix, queries = crowded(rng, 2000, 256), spread(rng, 5, 256)
    answers = [
        QuantizedRows(256, kernel).nearest(
            matrix, np.ones(2000, np.uint8), queries, 25, np.full(5, ANY, np.float32)
        )
        for kernel in KERNELS
    ]
    for answer in answers[1:]:
        for (_, products), (_, expected) in zip(answer, answers[0], strict=True):
            assert np.allclose(products, expected, rtol=0, atol=CLOSE)


def test_what_does_not_fit_is_refused() -> None:
    codes, matrix = QuantizedRows(8), np.zeros((3, 8), np.float32)
    live, over = np.ones(3, np.uint8), np.zeros(1, np.float32)
    with pytest.raises(ValueError, match="vectors of 7 values in the place of 8"):
        codes.nearest(matrix, live, np.zeros((1, 7), np.float32), 1, over)
    with pytest.raises(ValueError, match="vectors of 9 values in the place of 8"):
        codes.encode(np.zeros((1, 9), np.float32))
    with pytest.raises(ValueError, match="arrays of different lengths"):
        codes.nearest(matrix, live[:2], matrix[:1], 1, over)
    with pytest.raises(ValueError, match="arrays of different lengths"):
        codes.nearest(matrix, live, matrix[:2], 1, over)
    with pytest.raises(ValueError):
        QuantizedRows(8, "no such kernel")


def test_codes_take_a_byte_for_each_value() -> None:
    vectors = ExactVectors(spread(np.random.default_rng(3), 4096, 256))
    assert 1.25 < vectors.nbytes / vectors.view.nbytes < 1.35
