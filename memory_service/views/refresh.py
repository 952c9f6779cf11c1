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
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from memory_service.data_model import ChangeType, NamespaceInfo
from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.frozen_view import FrozenView, fill_view
from memory_service.indexes.lexical import LexicalIndex
from memory_service.indexes.view import NamespaceView
from memory_service.records.sqlite.connection import Connection
from memory_service.records.sqlite.schema import POSITION_MAX, key_of, keys_of
from memory_service.views.row_reading import ROW_COLUMNS, ROWS_AT_ONCE, VIEW_COLUMNS, RowReader

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


def refresh(
    connection: Connection, info: NamespaceInfo, view: NamespaceView, frozen: FrozenView
) -> NDArray[np.int64]:
    """Fill everything but vectors of an empty view; return the key of each row's vector, 0 for none.

    Call inside the transaction in which `info` was read. Raises Refused; then the view is of no use.
    """
    written = _written_since(connection, info, frozen)
    fill_view(view, frozen)
    view.saved_revision = frozen.revision
    known = len(frozen)
    reader = RowReader(view)
    replaced = _read_replaced(connection, info, frozen, reader, written)
    _read_added(connection, info, frozen, reader, first=known)
    vector_keys = frozen.rows["vector_keys"]
    if len(reader):
        vector_keys = _put(view, frozen, reader, replaced, reader.vector_keys(info))
    gone = _gone(connection, info, view.positions.view, known)
    view.live.view[gone] = False
    view.lexical.remove_all(view.row_doc.view[gone])
    for row in gone.tolist() if view.row_labels else ():
        view.row_labels.pop(row, None)
    vector_keys[gone] = 0
    _read_uses(connection, info, view)
    view.recount()
    _read_late_vectors(connection, info, view, vector_keys)
    return vector_keys


def _written_since(connection: Connection, info: NamespaceInfo, frozen: FrozenView) -> set[str]:
    """Return the ids of items that were replaced since."""
    behind = info.revision - frozen.revision
    if behind < 0 or frozen.vector_epoch != info.vector_epoch:
        raise Refused(Reason.OTHER_RECORDS)
    if behind > stale_after(len(frozen)):
        raise Refused(Reason.STALE)
    changes = connection.execute(
        "SELECT type, subject FROM changes WHERE key > ? AND key <= ?",
        (key_of(info.uid, frozen.revision), key_of(info.uid, info.revision)),
    ).fetchall()
    if len(changes) != behind or any(kind == ChangeType.RESET for kind, _ in changes):
        raise Refused(Reason.OTHER_RECORDS)
    return {subject for kind, subject in changes if kind == ChangeType.ITEM_UPDATED}


def _read_replaced(
    connection: Connection, info: NamespaceInfo, frozen: FrozenView, reader: RowReader, ids: set[str]
) -> NDArray[np.int64]:
    """Read rows that the snapshot has as they were; return their numbers."""
    positions = frozen.rows["positions"]
    statement = f"SELECT {ROW_COLUMNS} FROM items WHERE uid = ? AND id = ?"
    numbers: list[int] = []
    found = (connection.execute(statement, (info.uid, item_id)).fetchone() for item_id in sorted(ids))
    # What was added since is read with what was added.
    known = (row for row in found if row is not None and row[0] & POSITION_MAX <= frozen.revision)
    while some := list(islice(known, ROWS_AT_ONCE)):
        at = np.searchsorted(positions, [row[0] & POSITION_MAX for row in some])
        if (positions[np.minimum(at, len(positions) - 1)] != [row[0] & POSITION_MAX for row in some]).any():
            raise Refused(Reason.OTHER_RECORDS)
        reader.take(some, at.tolist())
        numbers += at.tolist()
    return np.array(numbers, np.int64)


def _read_added(
    connection: Connection, info: NamespaceInfo, frozen: FrozenView, reader: RowReader, first: int
) -> None:
    """Read rows that were added since; the first of them is the view's row of this number."""
    rows = connection.execute(
        f"SELECT {ROW_COLUMNS} FROM items WHERE key > ? AND key <= ? ORDER BY key",
        (key_of(info.uid, frozen.revision), keys_of(info.uid)[1]),
    )
    while some := list(islice(rows, ROWS_AT_ONCE)):
        reader.take(some, range(first, first + len(some)))
        first += len(some)


def _put(
    view: NamespaceView,
    frozen: FrozenView,
    reader: RowReader,
    replaced: NDArray[np.int64],
    read_keys: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Put what was read over the rows that were replaced, and the rest behind; return the vectors' keys."""
    changed, known = len(replaced), len(frozen)
    numbers = np.concatenate([replaced, np.arange(known, known + len(reader) - changed)])

    def joined(before: NDArray[np.generic], read: NDArray[np.generic]) -> NDArray[np.generic]:
        column = np.concatenate([before, read[changed:]])
        column[replaced] = read[:changed]
        return column

    for name in VIEW_COLUMNS:
        setattr(view, name, GrowingArray.of(joined(frozen.rows[name], reader.column(name))))
    view.live = GrowingArray.of(np.ones(known + len(reader) - changed, np.bool_))
    dead = frozen.rows["row_doc"][replaced]
    documents = np.arange(known, known + len(reader), dtype=np.int32)
    view.row_doc = GrowingArray.of(joined(frozen.rows["row_doc"], documents))
    view.doc_row.extend(numbers)
    view.lexical = LexicalIndex.of(frozen.words.followed_by(*reader.postings(), doc_count=len(reader)))
    view.lexical.remove_all(dead)
    return np.asarray(joined(frozen.rows["vector_keys"], read_keys), np.int64)


def _gone(
    connection: Connection, info: NamespaceInfo, positions: NDArray[np.int64], known: int
) -> NDArray[np.int64]:
    """Return the rows, among those that the snapshot has, that are no more."""
    if len(positions) == info.item_count:
        return np.empty(0, np.int64)
    # Through the index of ids, which is a fraction of the table.
    keys = connection.execute("SELECT key FROM items INDEXED BY items_by_id WHERE uid = ?", (info.uid,))
    there = np.fromiter((key for (key,) in keys), np.int64) & POSITION_MAX
    if len(there) != info.item_count:
        raise Refused(Reason.OTHER_RECORDS)
    return np.flatnonzero(~np.isin(positions[:known], there))


def _read_uses(connection: Connection, info: NamespaceInfo, view: NamespaceView) -> None:
    rows = connection.execute(
        "SELECT key, use_count FROM items INDEXED BY items_used WHERE use_count > 0 AND key BETWEEN ? AND ?",
        keys_of(info.uid),
    )
    while some := list(islice(rows, ROWS_AT_ONCE)):
        keys, counts = np.array(some, np.int64).T
        positions = view.positions.view
        at = np.searchsorted(positions, keys & POSITION_MAX)
        if (at == len(positions)).any() or (positions[at] != keys & POSITION_MAX).any():
            raise Refused(Reason.OTHER_RECORDS)
        view.use_counts.view[at] = counts


def _read_late_vectors(
    connection: Connection, info: NamespaceInfo, view: NamespaceView, vector_keys: NDArray[np.int64]
) -> None:
    """Put in the keys of vectors that items got without a change of theirs."""
    live = view.live.view
    if len(live) and view.live_count != info.item_count:
        raise Refused(Reason.OTHER_RECORDS)
    if int((vector_keys != 0).sum()) == info.embedded_count:
        return
    without = np.flatnonzero((vector_keys == 0) & live)
    if len(without) > _LATE_VECTORS_MAX:
        raise Refused(Reason.STALE)
    none = key_of(info.vector_epoch, 0)
    for row, position in zip(without.tolist(), view.positions.view[without].tolist(), strict=True):
        found = connection.execute(
            "SELECT vector_revision FROM items WHERE key = ?", (key_of(info.uid, position),)
        ).fetchone()
        if found is not None and found[0] > none:
            vector_keys[row] = found[0]
    if int((vector_keys != 0).sum()) != info.embedded_count:
        raise Refused(Reason.OTHER_RECORDS)
