"""The rows of a view sorted by a field. An order is built at its first use, then kept up to date."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memory_service.ordering import LAST, SortKey
from memory_service.predicates import Field, FieldName

if TYPE_CHECKING:
    from memory_service.indexes.view import NamespaceView

RowArray = NDArray[np.int32]

_ORDERS_MAX = 4
"""Orders kept per view. Doubled: up to 16 bytes more per item."""
_MOVED_MAX = 512
"""Changed rows that are moved one by one, in some 20 us each; more, and everything is sorted again.

Doubled: the first page after many writes may take 10 ms longer. Halved: a burst of writes sorts a million
rows, which takes longer.
"""


@dataclass
class SortedRows:
    """Rows that ascend by value and position, and rows without a value, which ascend by position."""

    rows: RowArray
    missing: RowArray


@dataclass
class _Order(SortedRows):
    row_count: int
    """The number of rows of the view when it was last up to date."""
    changed: set[int] = field(default_factory=set)
    """Rows that were replaced or removed since."""


class Orders:
    """The orders of one view."""

    def __init__(self) -> None:
        # The least recently used first.
        self._kept: OrderedDict[Field, _Order] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated."""
        return sum(
            order.rows.nbytes + order.missing.nbytes + 60 * len(order.changed)
            for order in self._kept.values()
        )

    def touch(self, rows: Iterable[int]) -> None:
        """Note rows that are being replaced or removed."""
        for by, order in list(self._kept.items()):
            order.changed.update(rows)
            if len(order.changed) > _MOVED_MAX:
                del self._kept[by]

    def of(self, view: NamespaceView, by: Field) -> SortedRows:
        """Return all live rows of a view, sorted. Everything in the view must be indexed."""
        order, count = self._kept.pop(by, None), len(view.positions)
        if order is None or len(order.changed) + count - order.row_count > _MOVED_MAX:
            found = sorted_rows(view, by, np.flatnonzero(view.live.view).astype(np.int32))
            order = _Order(found.rows, found.missing, count)
        else:
            _move(view, by, order)
        self._kept[by] = order
        if len(self._kept) > _ORDERS_MAX:
            self._kept.popitem(last=False)
        return order


def sorted_rows(view: NamespaceView, by: Field, rows: RowArray) -> SortedRows:
    """Sort rows, which ascend."""
    if by.name is FieldName.CREATE_TIME:
        return SortedRows(rows[np.argsort(view.create_us.view[rows], kind="stable")], rows[:0])
    ranks, values = view.columns[by].sort_keys(rows)
    present = ranks < LAST
    missing, rows, ranks, values = rows[~present], rows[present], ranks[present], values[present]
    return SortedRows(rows[np.lexsort((values, ranks))], missing)


def sort_key(view: NamespaceView, by: Field, row: int) -> SortKey:
    """Return the place of a row."""
    position = int(view.positions.view[row])
    if by.name is FieldName.CREATE_TIME:
        return 0, int(view.create_us.view[row]), position
    return *view.columns[by].sort_key(row), position


def _move(view: NamespaceView, by: Field, order: _Order) -> None:
    """Bring an order up to date."""
    count = len(view.positions)
    if order.changed:
        stale = np.zeros(count, np.bool_)
        stale[list(order.changed)] = True
        order.rows = order.rows[~stale[order.rows]]
        order.missing = order.missing[~stale[order.missing]]
    new = [row for row in {*order.changed, *range(order.row_count, count)} if view.live.view[row]]
    keyed = sorted(((sort_key(view, by, row), row) for row in new), key=itemgetter(0))
    present = [pair for pair in keyed if pair[0][0] < LAST]
    missing = np.array([row for _, row in keyed[len(present) :]], np.int32)
    places = [bisect_left(order.rows, key, key=lambda row: sort_key(view, by, row)) for key, _ in present]
    order.rows = np.insert(order.rows, places, np.array([row for _, row in present], np.int32))
    order.missing = np.insert(order.missing, np.searchsorted(order.missing, missing), missing)
    order.row_count = count
    order.changed.clear()
