"""Where a broken stream resumes, and how long to wait before."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable

from memory_client._calls.call import Event, T

_DELAY_FIRST_S = 0.1
_DELAY_MAX_S = 5.0


class Resumption:
    """The position of a stream across its breaks.

    A break may fall between the events of one revision. The server then sends that revision again from its
    beginning, and `accept` skips the events that the caller has already got.
    """

    def __init__(
        self,
        position: int | None,
        give_up_after_s: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin after the revision `position`; None: where the server begins."""
        self.position = position
        self._give_up_after_s = give_up_after_s
        self._clock = clock
        self._seen: set[Hashable] = set()
        self._breaks = 0
        self._last_sign: float | None = None

    def accept(self, event: Event[T]) -> bool:
        """Note an event; return whether it is for the caller, not a heartbeat or a repetition."""
        self._breaks = 0
        self._last_sign = self._clock()
        is_new = event.value is not None and event.key not in self._seen
        if self.position is None or event.revision > self.position:
            self.position = event.revision
            self._seen.clear()
        else:
            self._seen.add(event.key)
        return is_new

    def delay_after_break(self) -> float | None:
        """Return the seconds to wait before the next attempt. None: give up.

        A stream that never began is given up at once, because the address is probably wrong.
        """
        if self._last_sign is None:
            return None
        if self._give_up_after_s is not None and self._clock() - self._last_sign > self._give_up_after_s:
            return None
        delay = min(_DELAY_MAX_S, _DELAY_FIRST_S * 2.0**self._breaks)
        self._breaks += 1
        # Spread out, so that clients do not all return at once after a restart of the server.
        return delay * random.uniform(0.8, 1.2)
