"""Selects the items of a view that match a filter, in the order of a field."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from memory_service.data_model import ItemFilter
from memory_service.indexes.orders import SortedRows, sort_key, sorted_rows
from memory_service.indexes.selection import candidates, matches_everything, matching, planned, row_span
from memory_service.indexes.view import NamespaceView, RowArray
from memory_service.ordering import LAST, Ordering, SortKey


def ordered(
    view: NamespaceView,
    item_filter: ItemFilter,
    ordering: Ordering,
    limit: int,
    *,
    skip: int,
    begin: SortKey | None,
) -> list[tuple[int, SortKey]]:
    """Return positions of matching items and their places; see `Reading.ordered`.

    The view must have the columns of the filter's predicate and of the order.
    """
    view.index_pending()
    everything = matches_everything(view, item_filter)
    item_filter = planned(item_filter)
    few, count = candidates(view, item_filter), len(view.positions)
    end = count if limit < 0 else min(skip + limit, count)
    # In the whole order, one match is found per count / len(few) rows.
    if few is not None and len(few) ** 2 <= end * count:
        found = sorted_rows(view, ordering.field, few[matching(view, few, item_filter)])
        everything = True
    else:
        found = view.orders.of(view, ordering.field)
    sequence = _from(view, found, ordering, begin)
    rows = sequence[:end] if everything else _first_matches(view, sequence, item_filter, end)
    positions = view.positions.view
    return [(int(positions[row]), sort_key(view, ordering.field, row)) for row in rows[skip:].tolist()]


def _from(view: NamespaceView, found: SortedRows, ordering: Ordering, begin: SortKey | None) -> RowArray:
    """Return the rows in the wanted order, from a place on."""
    rows, missing = found.rows, found.missing
    if begin is not None:
        if begin[0] == LAST:
            rows, missing = rows[:0], _cut(view, missing, ordering, begin)
        else:
            rows = _cut(view, rows, ordering, begin)
    if ordering.descending:
        rows, missing = rows[::-1], missing[::-1]
    return np.concatenate((rows, missing)) if len(missing) else rows


def _cut(view: NamespaceView, rows: RowArray, ordering: Ordering, begin: SortKey) -> RowArray:
    """Leave out the rows before a place; they ascend."""

    def key(row: int) -> SortKey:
        return sort_key(view, ordering.field, row)

    if ordering.descending:
        return rows[: bisect_right(rows, begin, key=key)]
    return rows[bisect_left(rows, begin, key=key) :]


def _first_matches(view: NamespaceView, sequence: RowArray, item_filter: ItemFilter, end: int) -> RowArray:
    """Return the first rows of a sequence that match, which are looked for further and further."""
    first, last = row_span(view, item_filter)
    found, count, at, width = [sequence[:0]], 0, 0, max(4 * end, 64)
    while count < end and at < len(sequence):
        rows = sequence[at : at + width]
        rows = rows[(rows >= first) & (rows < last) & matching(view, rows, item_filter)]
        found.append(rows)
        count, at, width = count + len(rows), at + width, 4 * width
    return np.concatenate(found)[:end]
