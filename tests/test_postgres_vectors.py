"""Vectors of a namespace as PostgreSQL delivers them to a view: most at once, or some of them one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import postgres_server
from contract.alternating import make_postgres
from contract.builders import NS, build_write, random_vectors
from memory_service.indexes.settings import IndexSettings
from memory_service.records.postgres import row_source
from memory_service.records.row_source import Rows

pytestmark = pytest.mark.skipif(postgres_server.programs() is None, reason="there is no PostgreSQL")
# A multiple of the batch size, after which the end of a COPY arrives alone.
COUNT = 2 * row_source._VECTORS_AT_ONCE
STEPS = (1, 2, 3, 100)


async def test_vectors_come_in_the_order_of_their_positions(tmp_path: Path) -> None:
    vectors = random_vectors(COUNT, 4)
    writes = [build_write(str(number), "", vector) for number, vector in enumerate(vectors)]
    # One item in the middle has no vector.
    writes.insert(100, build_write("none", "words"))
    store = make_postgres(tmp_path, IndexSettings())
    await store.open()
    await store.add_items(NS, writes)

    def read(rows: Rows) -> dict[int, np.ndarray]:
        keys = np.concatenate([batch.vector_keys for batch in rows.above(0)])
        positions = np.concatenate([batch.positions for batch in rows.above(0)])[keys != 0]
        return {step: np.concatenate(list(rows.vectors(positions[::step].tolist()))) for step in STEPS}

    found = await store.read_rows(NS, read)
    await store.close()
    assert found is not None
    for step in STEPS:
        np.testing.assert_array_equal(found[step], vectors[::step])
