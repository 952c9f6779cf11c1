"""Vectors to store and to search for, and what an exact search finds among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.settings import DIMENSION, LIMIT

Vectors = NDArray[np.float32]
Kind = Literal["clustered", "random"]

_TIE = 1e-6
"""Scores that differ by less are equal: the order of float32 additions is undefined."""
_CHUNK = 100
_SPECTRUM = -0.4
_COMMON = 0.6
_NOISE = 1.2


@dataclass(frozen=True)
class Dataset:
    """Vectors to store, queries that are not among them, and more to write later; all of length 1."""

    stored: Vectors
    queries: Vectors
    spare: Vectors


def make_dataset(kind: Kind, stored: int, queries: int) -> Dataset:
    """Draw a data set; the same arguments give the same vectors."""
    spare = max(stored // 10, 1_000)
    rng = np.random.default_rng([1, stored])
    draw = clustered if kind == "clustered" else isotropic
    drawn = draw(rng, stored + queries + spare, max(int(stored**0.5), 1))
    return Dataset(drawn[:stored], drawn[stored : stored + queries], drawn[stored + queries :])


class Mixture:
    """A mixture of gaussian clusters that resembles embeddings of short texts.

    All vectors share a direction, and both the centres and the noise around them have a falling spectrum. The
    mean similarity (0.13), that of the tenth neighbour (0.5 to 0.6) and the effective dimension (about 65)
    are close to those of a static model's embeddings of real chat messages (0.17, 0.52, 62).
    """

    def __init__(self, rng: np.random.Generator, clusters: int) -> None:
        spectrum = np.arange(1, DIMENSION + 1, dtype=np.float64) ** _SPECTRUM
        self._spectrum = spectrum / np.linalg.norm(spectrum)
        self._centres = _normalised(rng.normal(size=(clusters, DIMENSION)) * self._spectrum)
        self._common = _normalised(rng.normal(size=(1, DIMENSION)))

    def draw(self, rng: np.random.Generator, count: int) -> Vectors:
        """Draw vectors of length 1."""
        noise = rng.normal(size=(count, DIMENSION)) * self._spectrum
        near = self._centres[rng.integers(len(self._centres), size=count)]
        return _normalised(near + _COMMON * self._common + _NOISE * noise).astype(np.float32)


def clustered(rng: np.random.Generator, count: int, clusters: int) -> Vectors:
    """Draw from one mixture."""
    return Mixture(rng, clusters).draw(rng, count)


def isotropic(rng: np.random.Generator, count: int, clusters: int) -> Vectors:
    """Draw vectors of random directions: the hardest case for a graph, unlike any real embedding."""
    del clusters
    return _normalised(rng.normal(size=(count, DIMENSION))).astype(np.float32)


def _normalised(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths: NDArray[np.float64] = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


def recall(
    stored: Vectors, live: NDArray[np.bool_], queries: Vectors, found: Sequence[Sequence[int]]
) -> float:
    """Return the share of the true nearest rows that was found, counted by distance.

    A found row counts if it is live, was not counted before and is as near as the last of the true ones.
    `found` holds row numbers per query.
    """
    hits = 0
    for start in range(0, len(queries), _CHUNK):
        scores = queries[start : start + _CHUNK] @ stored.T
        scores[:, ~live] = -np.inf
        worst = np.partition(scores, -LIMIT, axis=1)[:, -LIMIT]
        for row, bound, rows in zip(scores, worst, found[start : start + _CHUNK], strict=True):
            hits += sum(bool(row[number] >= bound - _TIE) for number in set(rows[:LIMIT]))
    return hits / (LIMIT * len(queries))
