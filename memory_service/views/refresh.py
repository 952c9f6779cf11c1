"""A view out of what a snapshot keeps of it, brought up to the records of today.

Nothing of a snapshot is believed that the records do not bear out:

- Rows that were added have positions above the snapshot's revision; the change log, which has to be
  without a gap, tells which others were written.
- What was deleted or has expired is in the log by its id, which a view does not know. So the items are
  counted, and where some are missing, the keys that there are tell which.
- Uses, and vectors that came later, are in no log. Uses have an index; and where vectors came, the
  namespace has more of them than the rows tell.
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
    """Why columns of a snapshot are left aside, and the rows are read."""

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
    """Return after how many changes to so many rows it is as quick to read them all."""
    return max(_CHANGES_MIN, count // _STALE_SHARE)


def refresh(rows: Rows, view: NamespaceView, frozen: FrozenView) -> NDArray[np.int64]:
    """Fill everything but vectors of an empty view; return the key of each row's vector, 0 for none.

    Raises Refused; then the view is of no use.
    """
    written = _written_since(rows, frozen)
    fill_view(view, frozen)
    view.saved_revision = frozen.revision
    reader = RowReader(view, frozen.rows["vector_keys"])
    # What was added since is read with what was added.
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
    """Return where positions are among those that are known, which ascend. Raises Refused."""
    at = np.searchsorted(known, positions)
    if (at == len(known)).any() or (known[at] != positions).any():
        raise Refused(Reason.OTHER_RECORDS)
    return at


def _gone(rows: Rows, positions: NDArray[np.int64], known: int) -> NDArray[np.int64]:
    """Return the rows, among those that the snapshot has, that are no more."""
    if len(positions) == rows.info.item_count:
        return np.empty(0, np.int64)
    there = rows.positions()
    if len(there) != rows.info.item_count:
        raise Refused(Reason.OTHER_RECORDS)
    return np.flatnonzero(~np.isin(positions[:known], there))


def _read_late_vectors(rows: Rows, view: NamespaceView, vector_keys: NDArray[np.int64]) -> None:
    """Put in the keys of vectors that items got without a change of theirs."""
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
