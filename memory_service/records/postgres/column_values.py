"""Reads the values of fields used by a predicate from the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from memory_service.indexes.value_column import Value
from memory_service.indexes.value_columns import reader
from memory_service.predicates import Field
from memory_service.records.postgres.database import Row
from memory_service.records.postgres.rows import item_of


def values(
    batches: Iterator[list[Row]], fields: Sequence[Field], no_vector_key: int
) -> Iterator[tuple[NDArray[np.int64], list[list[Value]]]]:
    """Yield positions and, for each field, its values; see `Rows.values`. The rows have ITEM_COLUMNS."""
    readers = [reader(wanted) for wanted in fields]
    for rows in batches:
        items = [item_of(row, no_vector_key) for row in rows]
        positions = np.array([item.position for item in items], np.int64)
        yield positions, [[read(item) for item in items] for read in readers]
