"""The turns right before and after an item in its session."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memory_service.data_model import Around
from memory_service.indexes.view import BoolArray, NamespaceView, RowArray


def neighbours(view: NamespaceView, positions: Sequence[int], count: int, now_us: int) -> list[Around]:
    """Return the turns around items, at most `count` each way, skipping those expired at `now_us`."""
    view.index_pending()
    expired = view.expire_us.view <= now_us if view.expiring_count else None
    known = view.positions.view
    before, after = view.turns.links
    found = []
    for row, position in zip(np.searchsorted(known, positions).tolist(), positions, strict=True):
        if row == len(known) or known[row] != position:
            found.append(Around())
            continue
        first = _nearest(before, row, count, expired)[::-1]
        found.append(Around(known[first].tolist(), known[_nearest(after, row, count, expired)].tolist()))
    return found


def _nearest(links: RowArray, row: int, count: int, but: BoolArray | None) -> list[int]:
    """Return the first `count` rows along the links, skipping those marked in `but`."""
    rows: list[int] = []
    link = int(links[row + 1])
    while link and len(rows) < count:
        if but is None or not but[link - 1]:
            rows.append(link - 1)
        link = int(links[link])
    return rows
