"""The sessions of a view, in the order of their last activity.

Made when sessions are first listed, and kept up to date from then on. Additions are counted at once. Sessions
that changed in another way are *stale*, and counted again at the next read, all in one pass over the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sortedcontainers import SortedList

from memory_service.data_model import (
    CONVERSATION_KINDS,
    ItemKind,
    SessionCounts,
)
from memory_service.indexes.arrays import GrowingArray

if TYPE_CHECKING:
    from memory_service.indexes.view import NamespaceView

_NEVER_US = np.iinfo(np.int64).max
_IS_TURN = np.array([kind in CONVERSATION_KINDS for kind in ItemKind])
# Estimated, of one entry in the order and its name.
_ENTRY_BYTES = 250

Place = tuple[int, int]
"""The place of a session in the order: the time of its last activity, and the position of that item."""


class SessionIndex:
    """Counts and order of sessions, which have the numbers of the view's `session_codes`."""

    def __init__(self, view: NamespaceView, now_us: int) -> None:
        """The view must have no pending entries."""
        self._view = view
        self._names: list[str] = []
        # Made when sessions are first listed by prefix.
        self._sorted_names: SortedList[str] | None = None
        self._counts = GrowingArray(np.int64)
        self._first_us = GrowingArray(np.int64)
        self._last_us = GrowingArray(np.int64)
        # The item of the last activity; 0: there is no such session.
        self._last_position = GrowingArray(np.int64)
        self._order: SortedList[Place] = SortedList()
        self._stale: set[int] = set()
        # Items that expire up to this time are not counted; the next expiry after it.
        self._counted_us = now_us
        self._next_expiry_us = self._expiry_after(now_us)
        self._grow()
        self._count(np.arange(len(self._names)))

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated."""
        arrays = (self._counts, self._first_us, self._last_us, self._last_position)
        return sum(array.nbytes for array in arrays) + _ENTRY_BYTES * len(self._order)

    # --- keeping up ---------------------------------------------------------------------------

    def add(self, first: int) -> None:
        """Count the rows that were added to the view, beginning with number `first`."""
        view = self._view
        self._grow()
        for row in range(first, len(view.positions)):
            self.change([row]) if self._is_special(row) else self._add(row)

    def _is_special(self, row: int) -> bool:
        """Return whether a new row does not simply add one to the count of its session."""
        view, code = self._view, int(self._view.sessions.view[row])
        empty = not self._counts.view[code] and self._last_position.view[code]
        expiring = view.expire_us.view[row] != _NEVER_US
        return code in self._stale or bool(empty) or expiring or not _IS_TURN[view.kinds.view[row]]

    def _add(self, row: int) -> None:
        view, code = self._view, int(self._view.sessions.view[row])
        if not code:
            return
        create_us, position = int(view.create_us.view[row]), int(view.positions.view[row])
        first = self._counts.view[code] == 0
        self._counts.view[code] += 1
        if first or create_us < self._first_us.view[code]:
            self._first_us.view[code] = create_us
        if first or create_us >= self._last_us.view[code]:
            self._leave(code)
            self._last_us.view[code], self._last_position.view[code] = create_us, position
            self._order.add((create_us, position))

    def change(self, rows: Sequence[int] | NDArray[np.int64]) -> None:
        """Note that rows were changed or removed, or are about to be."""
        view = self._view
        self._stale.update(np.unique(view.sessions.view[rows]).tolist())
        self._next_expiry_us = min(self._next_expiry_us, int(np.min(view.expire_us.view[rows])))

    def _grow(self) -> None:
        """Make room for sessions that are new in the view."""
        codes = self._view.session_codes
        if more := len(codes) - len(self._names):
            new = list(islice(codes, len(self._names), None))
            self._names += new
            if self._sorted_names is not None:
                self._sorted_names.update(new)
            for array in (self._counts, self._first_us, self._last_us, self._last_position):
                array.extend(np.zeros(more, np.int64))

    def _leave(self, code: int) -> None:
        if position := int(self._last_position.view[code]):
            self._order.remove((int(self._last_us.view[code]), position))
            self._last_position.view[code] = 0

    # --- counting again -----------------------------------------------------------------------

    def _refresh(self, now_us: int) -> None:
        """Count again what changed or expired."""
        view = self._view
        if self._next_expiry_us <= now_us:
            expire_us = view.expire_us.view
            due = (expire_us > self._counted_us) & (expire_us <= now_us)
            self._stale.update(np.unique(view.sessions.view[due]).tolist())
            self._counted_us = now_us
            self._next_expiry_us = self._expiry_after(now_us)
        self._stale.discard(0)
        if self._stale:
            self._grow()
            for code in self._stale:
                self._leave(code)
            self._count(np.fromiter(self._stale, np.int64, len(self._stale)))
            self._stale.clear()

    def _expiry_after(self, time_us: int) -> int:
        if not self._view.expiring_count:
            return _NEVER_US
        expire_us = self._view.expire_us.view
        return int(np.min(expire_us, where=expire_us > time_us, initial=_NEVER_US))

    def _count(self, codes: NDArray[np.int64]) -> None:
        """Count sessions that are not in the order, and put them there."""
        view = self._view
        wanted = np.zeros(len(self._names), np.bool_)
        wanted[codes] = True
        wanted[0] = False
        rows = np.flatnonzero(wanted[view.sessions.view] & view.live.view)
        rows = rows[view.expire_us.view[rows] > self._counted_us]
        kinds = view.kinds.view[rows]
        for array in (self._counts, self._first_us, self._last_us, self._last_position):
            array.view[codes] = 0
        self._count_rows(rows[_IS_TURN[kinds]])
        kept = rows[kinds == ItemKind.SESSION]
        # Without items, what is kept of the session itself stands for its activity.
        self._count_rows(kept[self._counts.view[view.sessions.view[kept]] == 0], counted=False)
        found = codes[self._last_position.view[codes] > 0]
        places = zip(
            self._last_us.view[found].tolist(), self._last_position.view[found].tolist(), strict=True
        )
        self._order.update(sorted(places))

    def _count_rows(self, rows: NDArray[np.int64], *, counted: bool = True) -> None:
        view = self._view
        sessions, create_us = view.sessions.view[rows], view.create_us.view[rows]
        last, lasts = self._last_us.view, self._last_position.view
        last[sessions] = np.iinfo(np.int64).min
        np.maximum.at(last, sessions, create_us)
        newest = create_us == last[sessions]
        np.maximum.at(lasts, sessions[newest], view.positions.view[rows[newest]])
        self._first_us.view[sessions] = _NEVER_US
        np.minimum.at(self._first_us.view, sessions, create_us)
        if counted:
            np.add.at(self._counts.view, sessions, 1)

    # --- reading ------------------------------------------------------------------------------

    def latest(self, before: Place | None, limit: int, now_us: int) -> list[SessionCounts]:
        """Return up to `limit` sessions before a place in the order, the latest first."""
        self._refresh(now_us)
        places = self._order.irange(maximum=before, inclusive=(True, False), reverse=True)
        positions = [position for _, position in islice(places, limit)]
        rows = np.searchsorted(self._view.positions.view, np.array(positions, np.int64))
        return list(map(self._counts_of, self._view.sessions.view[rows].tolist()))

    def latest_of(
        self, codes: NDArray[np.int32], before: Place | None, limit: int, now_us: int
    ) -> list[SessionCounts]:
        """Likewise out of these sessions."""
        self._refresh(now_us)
        last_us, positions = self._last_us.view[codes], self._last_position.view[codes]
        there = positions > 0
        if before is not None:
            there &= (last_us < before[0]) | ((last_us == before[0]) & (positions < before[1]))
        codes, last_us, positions = codes[there], last_us[there], positions[there]
        order = np.lexsort((positions, last_us))[::-1]
        return list(map(self._counts_of, codes[order[:limit]].tolist()))

    def with_prefix(self, prefix: str) -> NDArray[np.int32]:
        """Return the numbers of all names in the view that begin with a prefix."""
        self._grow()
        if self._sorted_names is None:
            self._sorted_names = SortedList(self._names)
        codes = self._view.session_codes
        names = takewhile(lambda name: name.startswith(prefix), self._sorted_names.irange(minimum=prefix))
        return np.array([codes[name] for name in names], np.int32)

    def _counts_of(self, code: int) -> SessionCounts:
        return SessionCounts(
            self._names[code],
            int(self._counts.view[code]),
            int(self._first_us.view[code]),
            int(self._last_us.view[code]),
            int(self._last_position.view[code]),
        )
