"""The order of turns in their conversations.

The turns around an item show what it is about: an answer often shares no word with its question. So a turn is
also found by the words of its neighbours; nearer ones count more, and those before it more than those after
it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memory_service.indexes.arrays import GrowingArray

BEFORE = (0.7, 0.35, 0.15)
AFTER = (0.25, 0.125)
"""The weights of the neighbours' words, the nearest first; the turn's words have weight 1."""
WEIGHTS = np.array(BEFORE), np.array(AFTER)
_WEIGHT_MIN = 1e-6
"""A smaller factor is 0, so that no sum of weights underflows."""

IntArray = NDArray[np.int32]


def weighed(factor: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights times a factor, 0 to 1; empty if neighbours do not count."""
    if factor == 1.0:
        return WEIGHTS
    if factor < _WEIGHT_MIN:
        return np.empty(0), np.empty(0)
    return WEIGHTS[0] * factor, WEIGHTS[1] * factor


class Turns:
    """Links between the rows of each conversation, in the order of rows.

    A link is a row + 1; 0 is no row, and can be followed without a check.
    """

    def __init__(self) -> None:
        self._before = GrowingArray.of(np.zeros(1, np.int32))
        self._after = GrowingArray.of(np.zeros(1, np.int32))
        self._last: dict[int, int] = {}
        self._count = 0

    @classmethod
    def build(cls, conversations: IntArray) -> Turns:
        """Build the links of many rows at once; parameters as for `extend`."""
        turns = cls()
        before, after = np.zeros((2, len(conversations) + 1), np.int32)
        rows = np.flatnonzero(conversations)
        rows = rows[np.argsort(conversations[rows], kind="stable")]
        follows = conversations[rows[1:]] == conversations[rows[:-1]]
        before[rows[1:][follows] + 1] = rows[:-1][follows] + 1
        after[rows[:-1][follows] + 1] = rows[1:][follows] + 1
        turns._before, turns._after = GrowingArray.of(before), GrowingArray.of(after)
        lasts = rows[np.append(~follows, True)] if len(rows) else rows
        turns._last = dict(zip(conversations[lasts].tolist(), (lasts + 1).tolist(), strict=True))
        turns._count = len(rows)
        return turns

    def extend(self, conversations: list[int]) -> None:
        """Append rows, each with the number of its conversation, or 0 if it is not a turn."""
        first = len(self._before)
        befores, links = [], []
        for link, conversation in enumerate(conversations, first):
            before = 0
            if conversation:
                before = self._last.get(conversation, 0)
                self._last[conversation] = link
                self._count += 1
                if before:
                    links.append(link)
            befores.append(before)
        self._before.extend(befores)
        self._after.extend(np.zeros(len(befores), np.int32))
        if links:
            self._after.view[self._before.view[links]] = links

    def remove(self, row: int, conversation: int) -> None:
        """Remove a row from its conversation; its neighbours become adjacent."""
        if not conversation:
            return
        link = row + 1
        before, after = int(self._before.view[link]), int(self._after.view[link])
        if before:
            self._after.view[before] = after
        if after:
            self._before.view[after] = before
        elif before:
            self._last[conversation] = before
        else:
            del self._last[conversation]
        self._before.view[link] = self._after.view[link] = 0
        self._count -= 1

    def insert(self, row: int, conversation: int, others: IntArray) -> None:
        """Insert a row into a conversation; `others` are its rows, ascending."""
        if not conversation:
            return
        link, at = row + 1, int(np.searchsorted(others, row))
        before = int(others[at - 1]) + 1 if at else 0
        after = int(others[at]) + 1 if at < len(others) else 0
        self._before.view[link], self._after.view[link] = before, after
        if before:
            self._after.view[before] = link
        if after:
            self._before.view[after] = link
        else:
            self._last[conversation] = link
        self._count += 1

    def __len__(self) -> int:
        """Return the number of rows that are turns of a conversation."""
        return self._count

    @property
    def links(self) -> tuple[IntArray, IntArray]:
        """The link before and the link after each link. Valid until the next change."""
        return self._before.view, self._after.view

    def mean_window(self, row_count: int, factor: float = 1.0) -> float:
        """Return the mean length of a row's window, in average texts; 1.0 if no row has neighbours.

        The weights of neighbours are multiplied by `factor`.
        """
        if not self._count:
            return 1.0
        conversations = len(self._last)
        total = 0.0
        for weights in (BEFORE, AFTER):
            for distance, weight in enumerate(weights, 1):
                # Each conversation has `distance` fewer turns with a neighbour that far away.
                total += weight * max(self._count - distance * conversations, 0)
        return 1.0 + factor * total / row_count

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated."""
        return self._before.nbytes + self._after.nbytes + 100 * len(self._last)
