"""Trying again what met the write of somebody else, who was faster."""

from __future__ import annotations

import asyncio
import random

from memory_service.runtime.yielding import aside

TRIES = 30
"""Each try that is lost was won by another, so that all come to an end. Of servers that write to one thing
all the time each loses half of its tries, or more. A third as many: calls are refused for nothing now and
then; twice as many: who can win none keeps a place for a second longer."""
_PAUSE_S = 0.001
_PAUSE_S_MAX = 0.1


async def pause_after(attempt: int) -> None:
    """Wait before the next try: for a random time, so that those who met do not meet again."""
    await aside(asyncio.sleep(random.uniform(0, min(_PAUSE_S * 2**attempt, _PAUSE_S_MAX))))
