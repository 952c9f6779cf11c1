"""Building the view of a namespace from its records, some thousand rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.lexical import LexicalIndex, posting_arrays
from memory_service.indexes.settings import IndexSettings
from memory_service.indexes.vectors import VectorIndex
from memory_service.indexes.view import NEVER_US, NamespaceView
from memory_service.predicates import Field
from memory_service.records import UNSET_IMPORTANCE, Facet, ItemKind, NamespaceInfo
from memory_service.stores.hnsw.column_reading import columns_of
from memory_service.stores.hnsw.rows import NAMESPACE_COLUMNS, namespace_of
from memory_service.stores.hnsw.schema import POSITION_MAX, key_of, keys_of, vector_key
from memory_service.stores.hnsw.snapshots import Snapshot, Snapshots
from memory_service.stores.rules import index_labels
from memory_service.stores.sqlite import Connection, Row, translated

_labels = msgspec.json.Decoder(dict[str, str]).decode
_facet = msgspec.json.Decoder(Facet).decode
_FEW = 2048
_ROWS_AT_ONCE = 8192


def load_view(
    connection: Connection,
    namespace: str,
    snapshots: Snapshots,
    analyzer: Analyzer,
    settings: IndexSettings,
    fields: Sequence[Field] = (),
) -> tuple[NamespaceInfo, NamespaceView] | None:
    """Return a namespace and its view, with the columns of these fields, all of one moment; None when
    there is no such namespace."""
    with translated():
        connection.execute("BEGIN")
        try:
            row = connection.execute(
                f"SELECT {NAMESPACE_COLUMNS} FROM namespaces WHERE name = ?", (namespace,)
            ).fetchone()
            if row is None:
                return None
            info = namespace_of(row)
            view = NamespaceView(analyzer, settings)
            view.revision, view.vector_epoch = info.revision, info.vector_epoch
            vector_keys = _load_rows(connection, info, view)
            if fields:
                view.columns.take(columns_of(connection, info.uid, fields, info.revision).columns)
            if info.dimension:
                _load_vectors(connection, info, view, vector_keys, snapshots, settings)
            return info, view
        finally:
            connection.execute("COMMIT")


@dataclass
class _Columns:
    """What was read of the rows, in parts: as tuples a million of them would take ten times the room."""

    numbers: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    postings: list[tuple[NDArray[Any], NDArray[np.int32], NDArray[Any]]] = field(default_factory=list)
    count: int = 0

    def add(self, **parts: NDArray[Any]) -> None:
        for name, part in parts.items():
            self.numbers.setdefault(name, []).append(part)

    def whole(self, name: str) -> NDArray[Any]:
        return np.concatenate(self.numbers[name])


def _load_rows(connection: Connection, info: NamespaceInfo, view: NamespaceView) -> NDArray[np.int64]:
    """Fill everything but vectors; return the key of each row's vector, 0 for none."""
    rows = connection.execute(
        f"SELECT key, session_id, create_us, ifnull(expire_us, {NEVER_US}), labels, vector_revision, terms,"
        f" facet, ifnull(importance, {UNSET_IMPORTANCE}), use_count"
        " FROM items WHERE key BETWEEN ? AND ? ORDER BY key",
        keys_of(info.uid),
    )
    columns = _Columns()
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        _take_rows(columns, view, some)
    count = columns.count
    if not count:
        return np.empty(0, np.int64)
    view.positions = GrowingArray.of(columns.whole("keys") & POSITION_MAX)
    view.live = GrowingArray.of(np.ones(count, np.bool_))
    view.live_count = count
    view.sessions = GrowingArray.of(columns.whole("sessions"))
    view.create_us = GrowingArray.of(columns.whole("create_us"))
    expiry = columns.whole("expire_us")
    view.expire_us = GrowingArray.of(expiry)
    view.expiring_count = int((expiry != NEVER_US).sum())
    view.importances = GrowingArray.of(columns.whole("importances"))
    view.use_counts = GrowingArray.of(columns.whole("use_counts"))
    kinds = columns.whole("kinds")
    view.kinds = GrowingArray.of(kinds)
    view.kind_counts = np.bincount(kinds, minlength=len(ItemKind)).tolist()
    view.link_turns()
    terms, docs, counts = (np.concatenate(parts) for parts in zip(*columns.postings, strict=True))
    view.lexical = LexicalIndex.build(terms, docs, counts, doc_count=count)
    numbers = np.arange(count, dtype=np.int32)
    view.row_doc, view.doc_row = GrowingArray.of(numbers.copy()), GrowingArray.of(numbers)
    view.row_slot = GrowingArray.of(np.full(count, -1, np.int32))
    held = columns.whole("vector_keys")
    return np.where(held > vector_key(info.vector_epoch, 0), held, 0)


def _take_rows(columns: _Columns, view: NamespaceView, rows: list[Row]) -> None:
    """Add some rows to the columns, and their labels to the view."""
    (
        keys, sessions, create_us, expire_us, labels, vector_keys, terms, facets, importances, use_counts,
    ) = zip(*rows, strict=True)  # fmt: skip
    first, count = columns.count, len(rows)
    kinds = np.zeros(count, np.int8)
    described = any(labels) or any(facets)
    for at, (encoded, encoded_facet) in enumerate(zip(labels, facets, strict=True) if described else ()):
        if encoded is None and encoded_facet is None:
            continue
        facet = None if encoded_facet is None else _facet(encoded_facet)
        kinds[at] = facet.kind if facet else ItemKind.PLAIN
        view.label_row(first + at, index_labels(_labels(encoded) if encoded else {}, facet))
    columns.add(
        keys=np.array(keys, np.int64),
        sessions=np.array(_codes(view.session_codes, sessions), np.int32),
        create_us=np.array(create_us, np.int64),
        expire_us=np.array(expire_us, np.int64),
        vector_keys=np.array(vector_keys, np.int64),
        importances=np.array(importances, np.float64),
        use_counts=np.array(use_counts, np.int32),
        kinds=kinds,
    )
    its_terms, its_docs, its_counts = posting_arrays(list(terms))
    columns.postings.append((its_terms, its_docs + np.int32(first), its_counts))
    columns.count += count


def _codes(codes: dict[str, int], names: Sequence[str]) -> list[int]:
    """Return the code of each name; new ones are counted on."""
    for name in dict.fromkeys(names):
        codes.setdefault(name, len(codes))
    return list(map(codes.__getitem__, names))


def _load_vectors(
    connection: Connection,
    info: NamespaceInfo,
    view: NamespaceView,
    vector_keys: NDArray[np.int64],
    snapshots: Snapshots,
    settings: IndexSettings,
) -> None:
    snapshot = None
    if len(vector_keys) > settings.exact_vectors_max // 2:
        recorded = connection.execute("SELECT manifest FROM snapshots WHERE uid = ?", (info.uid,)).fetchone()
        snapshot = snapshots.load(info.uid, info.dimension, recorded[0]) if recorded else None
    slot_rows, graph_live = _match(snapshot, vector_keys)
    if snapshot is not None and not graph_live.any():
        # Of vectors that were all given up or removed.
        snapshot, slot_rows, graph_live = None, slot_rows[:0], graph_live[:0]
    in_graph = np.zeros(len(vector_keys), np.bool_)
    in_graph[slot_rows[graph_live]] = True
    missing = np.flatnonzero((vector_keys != 0) & ~in_graph)
    matrix = _read_vectors(connection, info, view, missing)
    slot_row = np.concatenate([slot_rows, missing]).astype(np.int32)
    slot_keys = np.concatenate(
        [snapshot.slot_keys if snapshot else np.empty(0, np.int64), vector_keys[missing]]
    )
    live = np.concatenate([graph_live, np.ones(len(missing), np.bool_)])
    view.row_slot.view[slot_row[live]] = np.flatnonzero(live).astype(np.int32)
    view.slot_row, view.slot_keys = GrowingArray.of(slot_row), GrowingArray.of(slot_keys)
    if snapshot is not None:
        view.saved_slot_count = len(slot_rows)
    graph = snapshot.graph if snapshot else None
    view.vectors = VectorIndex.of(settings, matrix, graph, graph_live if snapshot else None)


def _match(
    snapshot: Snapshot | None, vector_keys: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return for each slot of a snapshot the row that has its vector, and whether one has."""
    if snapshot is None:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    order = np.argsort(vector_keys, kind="stable")
    at = np.minimum(np.searchsorted(vector_keys[order], snapshot.slot_keys), len(order) - 1)
    live = (vector_keys[order[at]] == snapshot.slot_keys) & (snapshot.graph.slot_group >= 0)
    return np.where(live, order[at], 0), live


def _read_vectors(
    connection: Connection, info: NamespaceInfo, view: NamespaceView, rows: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the unit vectors of rows, shape (len(rows), dimension)."""
    positions = view.positions.view[rows].tolist()
    if len(positions) <= _FEW:
        blobs = [
            connection.execute(
                "SELECT embedding FROM items WHERE key = ?", (key_of(info.uid, p),)
            ).fetchone()[0]
            for p in positions
        ]
    else:
        wanted = set(positions)
        blobs = [
            blob
            for key, blob in connection.execute(
                "SELECT key, embedding FROM items WHERE key BETWEEN ? AND ? ORDER BY key", keys_of(info.uid)
            )
            if key & POSITION_MAX in wanted
        ]
    matrix = np.frombuffer(b"".join(blobs), "<f4").reshape(len(blobs), info.dimension)
    return unit_rows(matrix)


def unit_rows(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows at length 1, like `unit` does for one."""
    units = np.empty(matrix.shape, np.float32)
    for start in range(0, len(matrix), 4096):
        wide = matrix[start : start + 4096].astype(np.float64)
        wide /= np.abs(wide).max(axis=1, keepdims=True)
        units[start : start + 4096] = wide / np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    return units
