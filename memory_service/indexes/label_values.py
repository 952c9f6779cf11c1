"""Lists the values of a label in a view."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import takewhile

import numpy as np

from memory_service.data_model import CONVERSATION_KINDS
from memory_service.indexes.view import NamespaceView

_KINDS = list(CONVERSATION_KINDS)


def label_values(
    view: NamespaceView, key: str, prefix: str, after: str | None, limit: int, now_us: int
) -> list[tuple[str, int]]:
    """Return the first `limit` values above `after`, with counts; see `Reading.label_values`."""
    view.index_pending()
    values = view.sorted_labels.of(key, view.label_rows)
    at = bisect_left(values, prefix)
    if after is not None:
        at = max(at, bisect_right(values, after))
    found: list[tuple[str, int]] = []
    while len(found) < limit:
        some = list(takewhile(lambda value: value.startswith(prefix), values[at : at + limit - len(found)]))
        if not some:
            break
        found += _counted(view, key, some, now_us)
        at += len(some)
    return found


def _counted(view: NamespaceView, key: str, values: list[str], now_us: int) -> list[tuple[str, int]]:
    """Return those of some values that a visible item has, with the number of such items."""
    listed = [view.label_rows[key, value] for value in values]
    rows = np.concatenate([np.frombuffer(each, np.int32) for each in listed])
    visible = view.live.view[rows] & np.isin(view.kinds.view[rows], _KINDS)
    if view.expiring_count:
        visible &= view.expire_us.view[rows] > now_us
    starts = np.cumsum([0, *map(len, listed[:-1])])
    counts = np.add.reduceat(visible, starts, dtype=np.int64).tolist()
    return [pair for pair in zip(values, counts, strict=True) if pair[1]]
