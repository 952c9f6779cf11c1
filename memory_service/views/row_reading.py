"""Converts rows of items to the columns of a view, some thousand at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memory_service.indexes.analysis import unpack_terms
from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.lexical import LexicalIndex
from memory_service.indexes.view import NamespaceView
from memory_service.records.row_source import RowBatch


class RowReader:
    """Adds rows to a view that is not yet in use: everything but vectors and the results of `recount`."""

    def __init__(self, view: NamespaceView, vector_keys: NDArray[np.int64]) -> None:
        """`vector_keys` are those of the view's existing rows."""
        self._view = view
        self._vector_keys = GrowingArray.of(vector_keys)
        self._postings: list[tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.uint16]]] = []
        self._count = 0
        self._dead = [np.empty(0, np.int32)]

    def take(self, batch: RowBatch, over: NDArray[np.int64] | None = None) -> None:
        """Overwrite the rows of the view with these numbers; None: append."""
        view, codes, count = self._view, self._view.session_codes, len(batch.positions)
        rows = np.arange(len(view.positions), len(view.positions) + count) if over is None else over
        if over is not None:
            self._dead.append(view.row_doc.view[over])
        for name in dict.fromkeys(batch.sessions):
            codes.setdefault(name, len(codes))
        for column, values in (
            (view.positions, batch.positions),
            (view.live, np.ones(count, np.bool_)),
            (view.sessions, list(map(codes.__getitem__, batch.sessions))),
            (view.kinds, batch.kinds),
            (view.create_us, batch.create_us),
            (view.expire_us, batch.expire_us),
            (view.importances, batch.importances),
            (view.use_counts, batch.use_counts),
            (view.row_doc, np.arange(len(view.doc_row), len(view.doc_row) + count)),
            (self._vector_keys, batch.vector_keys),
        ):
            if over is None:
                column.extend(values)
            else:
                column.view[over] = values
        view.doc_row.extend(rows)
        for row in over.tolist() if over is not None and view.row_labels else ():
            view.label_row(row, {})
        numbers = rows.tolist()
        for at, labels in batch.labels.items():
            view.label_row(numbers[at], labels)
        terms, counts, sizes = unpack_terms(batch.terms)
        docs = np.repeat(np.arange(self._count, self._count + count, dtype=np.int32), sizes)
        self._postings.append((terms, docs, counts))
        self._count += count

    def finish(self) -> NDArray[np.int64]:
        """Index the words of the rows; return the key of each row's vector, 0 for none."""
        if self._count:
            terms, docs, counts = map(np.concatenate, zip(*self._postings, strict=True))
            words = self._view.lexical.words().followed_by(terms, docs, counts, self._count)
            self._view.lexical = LexicalIndex.of(words)
            self._view.lexical.remove_all(np.concatenate(self._dead))
        return self._vector_keys.view
