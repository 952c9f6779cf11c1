"""Restores a view from a snapshot, and brings it up to date with the records.

Nothing of a snapshot is used unless the records confirm it:

- New rows have positions above the snapshot's revision; the change log, which must have no gap, names the
  other written items.
- The log has ids of deleted and expired items, which a view does not know. So items are counted, and if some
  are missing, the existing keys show which.
- Uses and late vectors are in no log. Uses have an index; late vectors show in the namespace's count of
  vectors.
"""

from __future__ import annotations

import enum

import numpy as np
from numpy.typing import NDArray

from memory_service.data_model import ChangeType
from memory_service.indexes.frozen_view import FrozenView, fill_view
from memory_service.indexes.view import NamespaceView
from memory_service.records.row_source import Rows
from memory_service.views.row_reading import RowReader

_CHANGES_MIN = 4096
_STALE_SHARE = 4
_LATE_VECTORS_MAX = 16_384


class Reason(enum.Enum):
    """Why the columns of a snapshot are not used, and rows are read instead."""

    DAMAGED = "damaged"
    OTHER_FORMAT = "other_format"
    OTHER_RECORDS = "other_records"
    STALE = "stale"


class Refused(Exception):
    """The columns of a snapshot cannot be used."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


def stale_after(count: int) -> int:
    """Return the number of changes from which on it is as quick to read all of this many rows."""
    return max(_CHANGES_MIN, count // _STALE_SHARE)


def refresh(rows: Rows, view: NamespaceView, frozen: FrozenView) -> NDArray[np.int64]:
    """Fill an empty view with everything but vectors; return the key of each row's vector, 0 for none.

    Raises Refused; then the view is unusable.
    """
    written = _written_since(rows, frozen)
    fill_view(view, frozen)
    view.saved_revision = frozen.revision
    reader = RowReader(view, frozen.rows["vector_keys"])
    # Changed items that are newer than the snapshot are read with the new rows below.
    for batch in rows.of_ids(written, up_to=frozen.revision):
        reader.take(batch, _rows_of(batch.positions, view.positions.view))
    for batch in rows.above(frozen.revision):
        reader.take(batch)
    vector_keys = reader.finish()
    gone = _gone(rows, view.positions.view, len(frozen))
    view.live.view[gone] = False
    view.lexical.remove_all(view.row_doc.view[gone])
    for row in gone.tolist() if view.row_labels else ():
        view.row_labels.pop(row, None)
    vector_keys[gone] = 0
    used, use_counts = rows.uses()
    view.use_counts.view[_rows_of(used, view.positions.view)] = use_counts
    refreshed, expire_us = rows.expiries()
    view.expire_us.view[_rows_of(refreshed, view.positions.view)] = expire_us
    view.recount()
    _read_late_vectors(rows, view, vector_keys)
    return vector_keys


def _written_since(rows: Rows, frozen: FrozenView) -> set[str]:
    """Return the ids of items that were replaced since."""
    behind = rows.info.revision - frozen.revision
    if behind < 0 or frozen.vector_epoch != rows.info.vector_epoch:
        raise Refused(Reason.OTHER_RECORDS)
    if behind > stale_after(len(frozen)):
        raise Refused(Reason.STALE)
    changes = rows.changes(frozen.revision)
    if len(changes) != behind or any(kind == ChangeType.RESET for kind, _ in changes):
        raise Refused(Reason.OTHER_RECORDS)
    return {subject for kind, subject in changes if kind == ChangeType.ITEM_UPDATED}


def _rows_of(positions: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indexes of positions among the known ones, which ascend. Raises Refused."""
    at = np.searchsorted(known, positions)
    if (at == len(known)).any() or (known[at] != positions).any():
        raise Refused(Reason.OTHER_RECORDS)
    return at


def _gone(rows: Rows, positions: NDArray[np.int64], known: int) -> NDArray[np.int64]:
    """Return the rows of the snapshot whose items no longer exist."""
    if len(positions) == rows.info.item_count:
        return np.empty(0, np.int64)
    there = rows.positions()
    if len(there) != rows.info.item_count:
        raise Refused(Reason.OTHER_RECORDS)
    return np.flatnonzero(~np.isin(positions[:known], there))


def _read_late_vectors(rows: Rows, view: NamespaceView, vector_keys: NDArray[np.int64]) -> None:
    """Read the keys of vectors that were filled in later."""
    live = view.live.view
    if len(live) and view.live_count != rows.info.item_count:
        raise Refused(Reason.OTHER_RECORDS)
    if int((vector_keys != 0).sum()) == rows.info.embedded_count:
        return
    without = np.flatnonzero((vector_keys == 0) & live)
    if len(without) > _LATE_VECTORS_MAX:
        raise Refused(Reason.STALE)
    vector_keys[without] = rows.vector_keys(view.positions.view[without].tolist())
    if int((vector_keys != 0).sum()) != rows.info.embedded_count:
        raise Refused(Reason.OTHER_RECORDS)
