"""How quickly the calls of owners are answered who have many: so how long one more would be here."""

from __future__ import annotations

import time

from memory_service.runtime.caller import Owner

# Who has so many calls here has a pace, by how many were answered in so long.
_PACED_CALLS = 8
_PACE_S = 0.1


class _Pace:
    __slots__ = ("answered", "interval_s", "since")

    def __init__(self, now: float) -> None:
        self.interval_s = 0.0
        self.answered = 0
        self.since = now


class Paces:
    """For one event loop."""

    def __init__(self) -> None:
        self._paces: dict[Owner, _Pace] = {}

    def inside_s(self, owner: Owner, count: int) -> float:
        """Return how long a call will be here that comes behind so many of its owner; 0: it is not known.

        By Little's law: calls wait for things, too, that nobody here knows of, such as long searches.
        """
        pace = self._paces.get(owner)
        return 0.0 if pace is None else count * pace.interval_s

    def note(self, owner: Owner, left: int, *, answered: bool) -> None:
        """Note that a call has gone, and how many of its owner are left.

        `answered`: it was, and not refused or given up.
        """
        if left < _PACED_CALLS:
            self._paces.pop(owner, None)
        elif (pace := self._paces.get(owner)) is None:
            self._paces[owner] = _Pace(time.perf_counter())
        elif answered:
            pace.answered += 1
            if (now := time.perf_counter()) - pace.since >= _PACE_S:
                pace.interval_s = (now - pace.since) / pace.answered
                pace.answered, pace.since = 0, now
