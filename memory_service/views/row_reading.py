"""Rows of items as the columns of a view, some thousand at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memory_service.data_model import UNSET_IMPORTANCE, Facet, ItemKind, NamespaceInfo
from memory_service.indexes.lexical import posting_arrays
from memory_service.indexes.view import NEVER_US, NamespaceView
from memory_service.records.rules import index_labels
from memory_service.records.sqlite.connection import Row
from memory_service.records.sqlite.schema import POSITION_MAX, vector_key

ROW_COLUMNS = (
    f"key, session_id, create_us, ifnull(expire_us, {NEVER_US}), labels, vector_revision, terms,"
    f" facet, ifnull(importance, {UNSET_IMPORTANCE}), use_count"
)
ROWS_AT_ONCE = 8192
VIEW_COLUMNS = ("positions", "sessions", "create_us", "expire_us", "importances", "use_counts", "kinds")
"""What a view has of each row under the same name."""

Postings = tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.uint16]]

_labels = msgspec.json.Decoder(dict[str, str]).decode
_facet = msgspec.json.Decoder(Facet).decode


class RowReader:
    """What was read of some rows, in parts: as tuples a million of them would take ten times the room.

    Labels and names of sessions go to the view at once.
    """

    def __init__(self, view: NamespaceView) -> None:
        self._view = view
        self._parts: dict[str, list[NDArray[Any]]] = {}
        self._postings: list[Postings] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def take(self, rows: Sequence[Row], numbers: Sequence[int]) -> None:
        """Add rows of ROW_COLUMNS, which are the view's rows of these numbers."""
        (
            keys, sessions, create_us, expire_us, labels, vector_keys, terms, facets, importances, use_counts,
        ) = zip(*rows, strict=True)  # fmt: skip
        self._add(
            positions=np.array(keys, np.int64) & POSITION_MAX,
            sessions=np.array(_codes(self._view.session_codes, sessions), np.int32),
            create_us=np.array(create_us, np.int64),
            expire_us=np.array(expire_us, np.int64),
            vector_keys=np.array(vector_keys, np.int64),
            importances=np.array(importances, np.float64),
            use_counts=np.array(use_counts, np.int32),
            kinds=self._describe(labels, facets, numbers),
        )
        its_terms, its_docs, its_counts = posting_arrays(list(terms))
        self._postings.append((its_terms, its_docs + np.int32(self._count), its_counts))
        self._count += len(rows)

    def _describe(
        self, labels: Sequence[str | None], facets: Sequence[str | None], numbers: Sequence[int]
    ) -> NDArray[np.int8]:
        """Give the view the labels of rows; return the kinds."""
        view = self._view
        kinds = np.zeros(len(numbers), np.int8)
        if not (any(labels) or any(facets) or view.row_labels):
            return kinds
        for at, (row, encoded, encoded_facet) in enumerate(zip(numbers, labels, facets, strict=True)):
            facet = None if encoded_facet is None else _facet(encoded_facet)
            kinds[at] = facet.kind if facet else ItemKind.PLAIN
            # Also of one without labels, for it may have had some.
            if encoded or facet or row in view.row_labels:
                view.label_row(row, index_labels(_labels(encoded) if encoded else {}, facet))
        return kinds

    def _add(self, **parts: NDArray[Any]) -> None:
        for name, part in parts.items():
            self._parts.setdefault(name, []).append(part)

    def column(self, name: str) -> NDArray[Any]:
        """Return what was read for a column. There has to be a row."""
        return np.concatenate(self._parts[name])

    def vector_keys(self, info: NamespaceInfo) -> NDArray[np.int64]:
        """Return the key of each row's vector, 0 for none."""
        held = self.column("vector_keys")
        return np.where(held > vector_key(info.vector_epoch, 0), held, 0)

    def postings(self) -> Postings:
        """Return terms, documents (each row is one, in the order read) and counts."""
        terms, docs, counts = zip(*self._postings, strict=True)
        return np.concatenate(terms), np.concatenate(docs), np.concatenate(counts)


def _codes(codes: dict[str, int], names: Sequence[str]) -> list[int]:
    """Return the code of each name; new ones are counted on."""
    for name in dict.fromkeys(names):
        codes.setdefault(name, len(codes))
    return list(map(codes.__getitem__, names))
