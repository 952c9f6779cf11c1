"""Retries of writes that conflicted with a concurrent write."""

from __future__ import annotations

import asyncio
import random

from memory_service.runtime.yielding import aside

TRIES = 30
"""Each lost try was won by another writer, so all finish.

Under constant contention each server loses half of its tries or more. A third as many: calls fail now and
then without need; twice as many: a writer that never wins keeps its place a second longer.
"""
_PAUSE_S = 0.001
_PAUSE_S_MAX = 0.1


async def pause_after(attempt: int) -> None:
    """Wait for a random time, so that the same writers do not collide again."""
    await aside(asyncio.sleep(random.uniform(0, min(_PAUSE_S * 2**attempt, _PAUSE_S_MAX))))
