"""Which items of a view a filter lets through."""

from __future__ import annotations

import numpy as np

from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.view import BoolArray, NamespaceView, RowArray
from memory_service.records import ItemFilter, ItemKind, LabelKey

_NONE = -1


def scan(view: NamespaceView, item_filter: ItemFilter, limit: int, *, newest: bool) -> list[int]:
    """Return positions of matching items, ascending: the first or the last `limit`; all if < 0."""
    view.index_pending()
    first, end = _row_span(view, item_filter)
    listed = _fewest(view, item_filter)
    if listed is not None:
        listed = listed[_span(listed, first, end)]
    count = end - first if listed is None else len(listed)
    if limit < 0:
        limit = count
    # Most scans want a few rows of one end: look there first, then further and further.
    width = max(4 * limit, 64)
    while True:
        start, stop = (max(count - width, 0), count) if newest else (0, min(width, count))
        rows = slice(first + start, first + stop) if listed is None else listed[start:stop]
        found = np.flatnonzero(_matches(view, rows, item_filter))
        if len(found) >= limit or stop - start == count:
            break
        width *= 4
    found = (found[len(found) - limit :] if newest else found[:limit]) if len(found) > limit else found
    positions: list[int] = view.positions.view[rows][found].tolist()
    return positions


def _fewest(view: NamespaceView, item_filter: ItemFilter) -> RowArray | None:
    """Return the shortest list there is that holds every match, ascending; None without a list."""
    lists = [_labelled(view, pair) for pair in item_filter.labels]
    lists += [_labelled(view, ((key,), value)) for key, value in item_filter.tags]
    if item_filter.kinds is not None and len(item_filter.kinds) == 1 and _has_others(view, item_filter):
        lists.append(_of_kind(view, next(iter(item_filter.kinds))))
    return min(lists, key=len, default=None)


def _labelled(view: NamespaceView, pair: tuple[LabelKey, str]) -> RowArray:
    """Return the rows of a label. Valid until the next change."""
    listed = view.label_rows.get(pair)
    return np.frombuffer(listed, np.int32) if listed else np.empty(0, np.int32)


def _of_kind(view: NamespaceView, kind: ItemKind) -> RowArray:
    """Return the rows of a kind. Looks only at rows that are new since it was asked before."""
    listed, seen = view.kind_rows.get(kind) or (GrowingArray(np.int32), 0)
    if seen < len(view.kinds):
        listed.extend(np.flatnonzero(view.kinds.view[seen:] == kind) + seen)
        view.kind_rows[kind] = listed, len(view.kinds)
    return listed.view


def _row_span(view: NamespaceView, item_filter: ItemFilter) -> tuple[int, int]:
    positions = view.positions.view
    first, end = 0, len(positions)
    if item_filter.min_position:
        first = int(np.searchsorted(positions, item_filter.min_position))
    if item_filter.max_position is not None:
        end = int(np.searchsorted(positions, item_filter.max_position, side="right"))
    return first, max(first, end)


def _matches(view: NamespaceView, rows: slice | RowArray, item_filter: ItemFilter) -> BoolArray:
    """Return which of these rows, ascending, a filter lets through, positions aside."""
    wanted: BoolArray = view.live.view[rows].copy()
    if view.expiring_count:
        wanted &= view.expire_us.view[rows] > item_filter.now_us
    if item_filter.session_id:
        wanted &= view.sessions.view[rows] == view.session_codes.get(item_filter.session_id, _NONE)
    if item_filter.start_us is not None:
        wanted &= view.create_us.view[rows] >= item_filter.start_us
    if item_filter.end_us is not None:
        wanted &= view.create_us.view[rows] < item_filter.end_us
    if _has_others(view, item_filter):
        wanted &= np.isin(view.kinds.view[rows], list(item_filter.kinds or ()))
    for pair in item_filter.labels:
        wanted &= _among(rows, _labelled(view, pair))
    for key, value in item_filter.tags:
        wanted &= _among(rows, _labelled(view, ((key,), value)))
    return wanted


def _has_others(view: NamespaceView, item_filter: ItemFilter) -> bool:
    """Whether there are items of kinds that are not wanted."""
    kinds = item_filter.kinds
    if kinds is not None:
        for kind, count in enumerate(view.kind_counts):
            if count and kind not in kinds:
                return True
    return False


def row_mask(view: NamespaceView, item_filter: ItemFilter) -> BoolArray | None:
    """Return which rows a filter lets through; None: all that are live."""
    if not item_filter.selects and not view.expiring_count and not _has_others(view, item_filter):
        return None
    mask = np.zeros(len(view.positions), np.bool_)
    first, end = _row_span(view, item_filter)
    mask[first:end] = _matches(view, slice(first, end), item_filter)
    return mask


def _among(rows: slice | RowArray, listed: RowArray) -> BoolArray:
    """Return which of some rows are in a list; both ascend."""
    if isinstance(rows, slice):
        found = np.zeros(rows.stop - rows.start, np.bool_)
        found[listed[_span(listed, rows.start, rows.stop)] - rows.start] = True
        return found
    if not len(listed):
        return np.zeros(len(rows), np.bool_)
    at = np.minimum(np.searchsorted(listed, rows), len(listed) - 1)
    in_list: BoolArray = listed[at] == rows
    return in_list


def _span(listed: RowArray, start: int, stop: int) -> slice:
    """Return where the rows from `start` to before `stop` are in a list that ascends."""
    # Of the list's own type, or the whole list would be converted first.
    return slice(*np.searchsorted(listed, np.array((start, stop), np.int32)).tolist())
