"""The ascending lists of rows that a view keeps: of a label, a tag, or a kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memory_service.data_model import ItemKind, LabelKey
from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.view import BoolArray, NamespaceView, RowArray


def labelled(view: NamespaceView, pair: tuple[LabelKey, str]) -> RowArray:
    """Return the rows of a label, perhaps with dead ones. Valid until the next change."""
    listed = view.label_rows.get(pair)
    return np.frombuffer(listed, np.int32) if listed else np.empty(0, np.int32)


def of_kind(view: NamespaceView, kind: ItemKind) -> RowArray:
    """Return the rows of a kind. Examines only rows added since the last call."""
    listed, seen = view.kind_rows.get(kind) or (GrowingArray(np.int32), 0)
    if seen < len(view.kinds):
        listed.extend(np.flatnonzero(view.kinds.view[seen:] == kind) + seen)
        view.kind_rows[kind] = listed, len(view.kinds)
    return listed.view


def any_labelled(view: NamespaceView, pairs: Sequence[tuple[LabelKey, str]]) -> RowArray:
    """Return the rows of any of some labels, perhaps with dead ones."""
    rows: RowArray = np.unique(np.concatenate([labelled(view, pair) for pair in pairs]))
    return rows


def among(rows: slice | RowArray, listed: RowArray) -> BoolArray:
    """Return which of some rows are in a list; both ascend."""
    if isinstance(rows, slice):
        found = np.zeros(rows.stop - rows.start, np.bool_)
        found[listed[span(listed, rows.start, rows.stop)] - rows.start] = True
        return found
    if not len(listed):
        return np.zeros(len(rows), np.bool_)
    at = np.minimum(np.searchsorted(listed, rows), len(listed) - 1)
    in_list: BoolArray = listed[at] == rows
    return in_list


def span(listed: RowArray, start: int, stop: int) -> slice:
    """Return the slice of a list with the rows from `start` to before `stop`."""
    # In the list's type, or numpy would convert the whole list first.
    return slice(*np.searchsorted(listed, np.array((start, stop), np.int32)).tolist())
