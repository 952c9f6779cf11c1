"""Tells when so many calls come that a server would do little but refuse them.

A refusal costs about as much as a short answer: gRPC's part is the same. From about twice the calls that a
server can answer there is no time left in which to refuse all the others.
"""

from __future__ import annotations

import math

# What a refusal takes of the event loop, about.
_REFUSAL_S = 150e-6
# Of the time.
_REFUSING_SHARE = 0.6
_WINDOW_S = 0.2
# How long a flood is taken to last before it is looked at again whether refusing would do: at first, and at
# most, where it is one again and again.
_LASTS_S = 1.0
_LASTS_MAX_S = 4.0
_QUIET_S = 0.1


class Flood:
    """For one event loop. Times are those of `time.perf_counter`."""

    def __init__(self) -> None:
        self._refused = 0
        self._since = 0.0
        self._until = -math.inf
        self._lasts_s = _LASTS_S
        self._behind_at = -math.inf

    def note_refusal(self) -> None:
        """Count a call that is refused."""
        self._refused += 1

    def is_on(self, now: float, *, more_behind: bool) -> bool:
        """Return whether there is a flood; `more_behind`: all the calls that were let in have come.

        It begins with refusals that take too much of the time, and ends when all that come are taken in.
        """
        if more_behind:
            self._behind_at = now
        if now < self._until and now - self._behind_at <= _QUIET_S:
            return True
        self._until = min(self._until, now)
        if self._since < self._until:
            # It has ended. What was refused in it tells nothing of what comes now.
            self._refused, self._since = 0, now
        if (window_s := now - self._since) < _WINDOW_S:
            return False
        has_begun = self._refused * _REFUSAL_S > _REFUSING_SHARE * window_s
        self._refused, self._since = 0, now
        if has_begun:
            self._until, self._behind_at = now + self._lasts_s, now
            self._lasts_s = min(2 * self._lasts_s, _LASTS_MAX_S)
        else:
            self._lasts_s = _LASTS_S
        return has_begun
