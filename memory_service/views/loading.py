"""Builds the view of a namespace from its records, some thousand rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.inner_products import unit_rows
from memory_service.indexes.settings import IndexSettings
from memory_service.indexes.value_columns import ReadColumns, new_column
from memory_service.indexes.vectors import VectorIndex
from memory_service.indexes.view import NamespaceView
from memory_service.predicates import Field
from memory_service.records.row_source import Rows
from memory_service.views.refresh import Refused, refresh
from memory_service.views.row_reading import RowReader
from memory_service.views.snapshots import Snapshot, Snapshots


def load_view(
    rows: Rows,
    snapshots: Snapshots,
    analyzer: Analyzer,
    settings: IndexSettings,
    fields: Sequence[Field] = (),
) -> NamespaceView:
    """Return the view of a namespace, with the columns of these fields."""
    info = rows.info
    # With few vectors a snapshot saves no time.
    manifest = (
        rows.manifest() if info.dimension and info.item_count > settings.exact_vectors_max // 2 else None
    )
    with ThreadPoolExecutor(1, thread_name_prefix="read-graph") as beside:
        # One thread verifies and reads the graph, while the other builds the columns.
        loading = manifest and beside.submit(snapshots.load, info.uid, info.dimension, manifest)
        view, vector_keys = _fill(rows, manifest, snapshots, analyzer, settings)
        if fields:
            view.columns.take(read_columns(rows, fields).at(view.positions.view))
        snapshot = loading.result() if loading else None
    view.revision, view.vector_epoch = info.revision, info.vector_epoch
    if info.dimension:
        _load_vectors(rows, view, vector_keys, snapshot, settings)
    return view


def read_columns(rows: Rows, fields: Sequence[Field]) -> ReadColumns:
    """Return the columns of some fields."""
    positions = [np.empty(0, np.int64)]
    columns = {wanted: new_column(wanted) for wanted in fields}
    for some, values in rows.values(list(columns)):
        positions.append(some)
        for column, its_values in zip(columns.values(), values, strict=True):
            column.extend(its_values)
    return ReadColumns(rows.info.revision, np.concatenate(positions), columns)


def _fill(
    rows: Rows, manifest: str | None, snapshots: Snapshots, analyzer: Analyzer, settings: IndexSettings
) -> tuple[NamespaceView, NDArray[np.int64]]:
    """Return a view without vectors, and the key of each row's vector, 0 for none."""
    frozen = snapshots.load_columns(rows.info.uid, manifest) if manifest else None
    view = NamespaceView(analyzer, settings)
    if frozen is not None:
        try:
            return view, refresh(rows, view, frozen)
        except (Refused, ValueError, IndexError) as error:
            snapshots.refuse_columns(rows.info.uid, error)
            view = NamespaceView(analyzer, settings)
    reader = RowReader(view, np.empty(0, np.int64))
    for batch in rows.above(0):
        reader.take(batch)
    vector_keys = reader.finish()
    view.recount()
    return view, vector_keys


def _load_vectors(
    rows: Rows,
    view: NamespaceView,
    vector_keys: NDArray[np.int64],
    snapshot: Snapshot | None,
    settings: IndexSettings,
) -> None:
    slot_rows, graph_live = _match(snapshot, vector_keys)
    if snapshot is not None and not graph_live.any():
        # None of the snapshot's vectors is in use any more.
        snapshot, slot_rows, graph_live = None, slot_rows[:0], graph_live[:0]
    in_graph = np.zeros(len(vector_keys), np.bool_)
    in_graph[slot_rows[graph_live]] = True
    missing = np.flatnonzero((vector_keys != 0) & ~in_graph)
    matrix = np.empty((len(missing), rows.info.dimension), np.float32)
    done = 0
    for vectors in rows.vectors(view.positions.view[missing].tolist()):
        matrix[done : done + len(vectors)] = unit_rows(vectors)
        done += len(vectors)
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
    """Return for each slot of a snapshot the row with its vector, and whether there is one."""
    if snapshot is None:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    order = np.argsort(vector_keys, kind="stable")
    at = np.minimum(np.searchsorted(vector_keys[order], snapshot.slot_keys), len(order) - 1)
    live = (vector_keys[order[at]] == snapshot.slot_keys) & (snapshot.graph.slot_group >= 0)
    return np.where(live, order[at], 0), live
