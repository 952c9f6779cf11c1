"""Rows of items as the columns of a view, some thousand at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_service.indexes.lexical import posting_arrays
from memory_service.indexes.view import NamespaceView
from memory_service.views.row_source import RowBatch

VIEW_COLUMNS = ("positions", "sessions", "create_us", "expire_us", "importances", "use_counts", "kinds")
"""What a view has of each row under the same name."""
_READ_COLUMNS = (*VIEW_COLUMNS, "vector_keys")

Postings = tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.uint16]]


class RowReader:
    """What was read of some rows, in parts: as tuples a million of them would take ten times the room.

    Labels and names of sessions go to the view at once.
    """

    def __init__(self, view: NamespaceView) -> None:
        self._view = view
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in _READ_COLUMNS}
        self._postings: list[Postings] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def take(self, batch: RowBatch, numbers: Sequence[int]) -> None:
        """Add rows, which are the view's rows of these numbers."""
        view, codes = self._view, self._view.session_codes
        if any(batch.labels) or view.row_labels:
            for row, labels in zip(numbers, batch.labels, strict=True):
                # Also of one without labels, for it may have had some.
                if labels or row in view.row_labels:
                    view.label_row(row, labels)
        sessions = [codes.setdefault(name, len(codes)) for name in batch.sessions]
        for name, parts in self._parts.items():
            parts.append(np.array(sessions, np.int32) if name == "sessions" else getattr(batch, name))
        terms, docs, counts = posting_arrays(list(batch.terms))
        self._postings.append((terms, docs + np.int32(self._count), counts))
        self._count += len(numbers)

    def column(self, name: str) -> NDArray[Any]:
        """Return what was read for a column. There has to be a row."""
        return np.concatenate(self._parts[name])

    def postings(self) -> Postings:
        """Return terms, documents (each row is one, in the order read) and counts."""
        terms, docs, counts = zip(*self._postings, strict=True)
        return np.concatenate(terms), np.concatenate(docs), np.concatenate(counts)
