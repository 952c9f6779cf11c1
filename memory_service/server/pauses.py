"""Pauses between two bunches of calls: gRPC gets the processor, and hands over what has come, health too.

The longer they are, the quicker is who has few calls, and health; the shorter, the more is answered. In a
flood, when refusing takes too much of the time, a few more are taken in than were started, and gRPC keeps the
others, or ends them.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from memory_service.runtime.caller import Owner
from memory_service.server.bunches import Bunches
from memory_service.server.inlet import Inlet

# Of the time that a bunch takes, as much again is given to taking calls in while others wait. Behind those
# that are refused are more, and the more came in during a pause, the more: health may be among those.
_SHARE = 0.1
_REFUSING_SHARE = 0.3
_MORE_BEHIND_CALLS = 5
_MORE_BEHIND_SHARE = 0.5
# Where somebody has few calls. Who asks one after the other, and went past the rest a moment ago, is about to
# ask again.
_AWAKE_SHARE = 0.4
_ASKING_AGAIN_SHARE = 1.0
_ASKING_AGAIN_S = 0.003
_ONE_AFTER_THE_OTHER_S = 0.02
# Of so many it is known when they came.
_PROMPT_OWNERS = 4
# No timer of the loop is shorter.
PAUSE_S = 0.001
# In a flood that many more calls come in between two bunches than were started, or one for each such part of
# the time that they took. About as many are refused.
_FLOOD_MORE_CALLS = 4
_FLOOD_MORE_S = 0.0015


class Pauses:
    """For one event loop. Times are those of `time.perf_counter`."""

    def __init__(self, bunches: Bunches, inlet: Inlet) -> None:
        self._bunches = bunches
        self._inlet = inlet
        self._is_flooded = False
        self._has_refused = False
        # Of the first pause after the bunch.
        self._began: float | None = None
        self._bunch_busy_s = 0.0
        self._taken_in_before = 0
        self._asking_again_until = -math.inf
        # When the last ones came who went past the others; the latest is at the end.
        self._prompt: dict[Owner, float] = {}

    def begin_bunch(self, *, is_flooded: bool) -> None:
        """Note that a bunch starts. In a flood nobody comes before the pause after it."""
        self._is_flooded = is_flooded
        self._has_refused, self._began, self._taken_in_before = False, None, 0
        if is_flooded:
            self._inlet.limit(0)
        else:
            self._inlet.open()

    def note_refusal(self) -> None:
        """Note that a call is refused."""
        self._has_refused = True

    def note_prompt_call(self, owner: Owner) -> None:
        """Note that a call goes past those who wait: its owner may ask one after the other."""
        now = time.perf_counter()
        if now - self._prompt.pop(owner, -math.inf) < _ONE_AFTER_THE_OTHER_S:
            self._asking_again_until = now + _ASKING_AGAIN_S
        self._prompt[owner] = now
        if len(self._prompt) > _PROMPT_OWNERS:
            del self._prompt[next(iter(self._prompt))]

    def wanted(self, now: float, *, awake: bool) -> bool:
        """Return whether calls are to be taken in, still, before the next bunch; once they are in any case.

        `awake`: somebody has few calls.
        """
        if (began := self._began) is None:
            return True
        if self._is_flooded:
            return not self._inlet.used_up and now - began < began - self._bunches.opened_at
        taken_in = self._bunches.taken_in - self._taken_in_before
        if self._has_refused and not taken_in:
            # Those who were refused are in by now, and who waits is not kept waiting for others.
            return False
        if awake:
            return now < self._awake_until(began, now)
        share = _SHARE
        if self._has_refused:
            share = _MORE_BEHIND_SHARE if taken_in >= _MORE_BEHIND_CALLS else _REFUSING_SHARE
        return now - began < share * self._bunches.busy_s()

    def wait(self, then: Callable[[], None], *, awake: bool) -> None:
        """Call `then` a little later. `awake`: as above; the loop stays awake until then."""
        loop, now = asyncio.get_running_loop(), time.perf_counter()
        if self._began is None:
            self._began, self._bunch_busy_s = now, self._bunches.busy_s()
            if self._is_flooded:
                more = max(_FLOOD_MORE_CALLS, int((now - self._bunches.opened_at) / _FLOOD_MORE_S))
                self._inlet.limit(self._bunches.count + more)
        self._taken_in_before = self._bunches.taken_in
        until = self._awake_until(self._began, now) if awake and not self._is_flooded else math.inf
        if until - now < PAUSE_S:
            loop.call_soon(self._stay_awake, until, then)
        else:
            loop.call_later(PAUSE_S, then)

    def _awake_until(self, began: float, now: float) -> float:
        share = _ASKING_AGAIN_SHARE if now < self._asking_again_until else _AWAKE_SHARE
        return began + share * self._bunch_busy_s

    def _stay_awake(self, until: float, then: Callable[[], None]) -> None:
        """Let what gRPC has come in, turn by turn."""
        if time.perf_counter() < until:
            asyncio.get_running_loop().call_soon(self._stay_awake, until, then)
        else:
            then()
