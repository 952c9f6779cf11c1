"""Building the view of a namespace from its records, some thousand rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from memory_service.data_model import NamespaceInfo
from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.inner_products import unit_rows
from memory_service.indexes.lexical import LexicalIndex
from memory_service.indexes.settings import IndexSettings
from memory_service.indexes.vectors import VectorIndex
from memory_service.indexes.view import NamespaceView
from memory_service.predicates import Field
from memory_service.records.sqlite.connection import Connection, translated
from memory_service.records.sqlite.rows import NAMESPACE_COLUMNS, namespace_of
from memory_service.records.sqlite.schema import POSITION_MAX, key_of, keys_of
from memory_service.views.column_reading import columns_of
from memory_service.views.refresh import Refused, refresh
from memory_service.views.row_reading import ROW_COLUMNS, ROWS_AT_ONCE, VIEW_COLUMNS, RowReader
from memory_service.views.snapshots import Snapshot, Snapshots

_FEW = 2048
_FEW_SHARE = 8
_VECTORS_AT_ONCE = 4096


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
            manifest = _manifest_of(connection, info, settings)
            with ThreadPoolExecutor(1, thread_name_prefix="read-graph") as beside:
                # One thread verifies and reads the graph, while the other makes the columns.
                loading = manifest and beside.submit(snapshots.load, info.uid, info.dimension, manifest)
                view, vector_keys = _fill(connection, info, manifest, snapshots, analyzer, settings)
                if fields:
                    read = columns_of(connection, info.uid, fields, info.revision)
                    view.columns.take(read.at(view.positions.view))
                snapshot = loading.result() if loading else None
            if info.dimension:
                _load_vectors(connection, info, view, vector_keys, snapshot, settings)
            return info, view
        finally:
            connection.execute("COMMIT")


def _manifest_of(connection: Connection, info: NamespaceInfo, settings: IndexSettings) -> str | None:
    """Return the manifest of a namespace's snapshot; None: there is none, or it is as quick without."""
    if not info.dimension or info.item_count <= settings.exact_vectors_max // 2:
        return None
    row = connection.execute("SELECT manifest FROM snapshots WHERE uid = ?", (info.uid,)).fetchone()
    return None if row is None else str(row[0])


def _fill(
    connection: Connection,
    info: NamespaceInfo,
    manifest: str | None,
    snapshots: Snapshots,
    analyzer: Analyzer,
    settings: IndexSettings,
) -> tuple[NamespaceView, NDArray[np.int64]]:
    """Return a view with everything but vectors, and the key of each row's vector, 0 for none."""
    frozen = snapshots.load_columns(info.uid, manifest) if manifest else None
    if frozen is not None:
        view = _empty_view(info, analyzer, settings)
        try:
            return view, refresh(connection, info, view, frozen)
        except (Refused, ValueError, IndexError) as error:
            snapshots.refuse_columns(info.uid, error)
    view = _empty_view(info, analyzer, settings)
    return view, _load_rows(connection, info, view)


def _empty_view(info: NamespaceInfo, analyzer: Analyzer, settings: IndexSettings) -> NamespaceView:
    view = NamespaceView(analyzer, settings)
    view.revision, view.vector_epoch = info.revision, info.vector_epoch
    return view


def _load_rows(connection: Connection, info: NamespaceInfo, view: NamespaceView) -> NDArray[np.int64]:
    """Fill everything but vectors; return the key of each row's vector, 0 for none."""
    rows = connection.execute(
        f"SELECT {ROW_COLUMNS} FROM items WHERE key BETWEEN ? AND ? ORDER BY key",
        keys_of(info.uid),
    )
    reader = RowReader(view)
    while some := list(islice(rows, ROWS_AT_ONCE)):
        reader.take(some, range(len(reader), len(reader) + len(some)))
    count = len(reader)
    if not count:
        return np.empty(0, np.int64)
    for name in VIEW_COLUMNS:
        setattr(view, name, GrowingArray.of(reader.column(name)))
    view.live = GrowingArray.of(np.ones(count, np.bool_))
    view.lexical = LexicalIndex.build(*reader.postings(), doc_count=count)
    numbers = np.arange(count, dtype=np.int32)
    view.row_doc, view.doc_row = GrowingArray.of(numbers.copy()), GrowingArray.of(numbers)
    view.recount()
    return reader.vector_keys(info)


def _load_vectors(
    connection: Connection,
    info: NamespaceInfo,
    view: NamespaceView,
    vector_keys: NDArray[np.int64],
    snapshot: Snapshot | None,
    settings: IndexSettings,
) -> None:
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
    """Return the unit vectors of rows, which ascend, shape (len(rows), dimension)."""
    positions = view.positions.view[rows].tolist()
    few = max(_FEW, len(view.positions) // _FEW_SHARE)
    read = _read_some if len(positions) <= few else _read_most
    blobs = read(connection, info.uid, positions)
    units = np.empty((len(positions), info.dimension), np.float32)
    # A part at a time: all of them as bytes would take as much again.
    for start in range(0, len(positions), _VECTORS_AT_ONCE):
        some = list(islice(blobs, _VECTORS_AT_ONCE))
        part = np.frombuffer(b"".join(some), "<f4").reshape(len(some), info.dimension)
        units[start : start + len(some)] = unit_rows(part)
    return units


def _read_some(connection: Connection, uid: int, positions: list[int]) -> Iterator[bytes]:
    for position in positions:
        yield connection.execute(
            "SELECT embedding FROM items WHERE key = ?", (key_of(uid, position),)
        ).fetchone()[0]


def _read_most(connection: Connection, uid: int, positions: list[int]) -> Iterator[bytes]:
    wanted = set(positions)
    ends = key_of(uid, positions[0]), key_of(uid, positions[-1])
    rows = connection.execute("SELECT key, embedding FROM items WHERE key BETWEEN ? AND ? ORDER BY key", ends)
    return (blob for key, blob in rows if key & POSITION_MAX in wanted)
