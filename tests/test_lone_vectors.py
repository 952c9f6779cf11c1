"""Vectors that no link of a graph leads to are found anyway."""

from __future__ import annotations

import numpy as np
import pytest

from contract.builders import random_vectors
from memory_service.indexes.exact_vectors import FloatMatrix
from memory_service.indexes.settings import IndexSettings
from memory_service.indexes.vectors import VectorIndex


def _few_far_from_many(stream: int) -> FloatMatrix:
    # The first vectors lose their links, one by one, to nearer vectors.
    centre = random_vectors(1, 16, stream=stream)
    many = centre + 0.02 * random_vectors(2000, 16, stream=100 + stream)
    vectors = np.concatenate([random_vectors(20, 16, stream=200 + stream), many])
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def _linked(vectors: FloatMatrix) -> VectorIndex:
    index = VectorIndex.of(IndexSettings(exact_vectors_max=32), vectors)
    job = index.plan()
    assert job is not None
    job.finish(job.work())
    assert index.graph_count == len(vectors)
    return index


@pytest.mark.parametrize("stream", range(4))
def test_each_vector_is_found_by_itself(stream: int) -> None:
    vectors = _few_far_from_many(stream)
    index = _linked(vectors)
    best = [index.search(vector[None], 1)[0][1] for vector in vectors]
    # A unit vector is nearest to itself, or to an equal one up to rounding.
    assert np.concatenate(best).min() > 1 - 1e-5


@pytest.mark.parametrize("stream", range(4))
def test_none_that_was_removed_is_found(stream: int) -> None:
    vectors = _few_far_from_many(stream)
    index = _linked(vectors)
    for slot in range(20):
        index.remove(slot)
    for vector in vectors[:20]:
        slots, _ = index.search(vector[None], 3)[0]
        assert len(slots) == 3
        assert min(slots) >= 20
