"""What stands between calls and a provider of embeddings: it spares both of them.

A caller waits for an answer so long and no longer, and not at all while the provider is known to fail.
The provider is asked by so many at a time, and after failures in a row by nobody for a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from memory_service.embedders.base import TextsRefused
from memory_service.errors import Unavailable
from memory_service.runtime.breaker import Breaker
from memory_service.runtime.deadline import remaining_s
from memory_service.runtime.yielding import aside

T = TypeVar("T")

BACKGROUND_TIMEOUT_S = 60.0
_CONCURRENT_CALLS_MAX = 8
_FAILURES_MAX = 3
# What is left of a caller's time is for all else, such as the write itself.
_SHARE_OF_CALL = 0.5


class Guard:
    """Lets calls through to a provider, or not."""

    def __init__(self, timeout_s: float, pause_s: float) -> None:
        """`timeout_s` is how long a caller waits, `pause_s` how long nobody asks after failures in a row."""
        self._timeout_s = timeout_s
        self._breaker = Breaker(_FAILURES_MAX, pause_s, time.monotonic)
        self._slots = asyncio.Semaphore(_CONCURRENT_CALLS_MAX)
        self._running: set[asyncio.Task[object]] = set()

    async def call(self, ask: Callable[[], Awaitable[T]], *, background: bool) -> T:
        """Return the provider's answer. Raises Unavailable when there is none, or none in time."""
        if self._breaker.is_open:
            raise Unavailable.embedder()
        task = asyncio.ensure_future(self._ask(ask, background))
        self._running.add(task)
        task.add_done_callback(self._ended)
        try:
            # A caller that is in a hurry leaves the call to its end: only that tells how the provider is.
            async with asyncio.timeout(None if background else self._patience_s()):
                return await aside(asyncio.shield(task))
        except TimeoutError:
            raise Unavailable.embedder() from None

    def _patience_s(self) -> float:
        left_s = remaining_s()
        return self._timeout_s if left_s is None else min(self._timeout_s, left_s * _SHARE_OF_CALL)

    async def _ask(self, ask: Callable[[], Awaitable[T]], background: bool) -> T:
        async with self._slots:
            # Others may have failed while this one waited for its turn.
            if not self._breaker.admit():
                raise Unavailable.embedder()
            timeout_s = max(self._timeout_s, BACKGROUND_TIMEOUT_S) if background else self._timeout_s
            try:
                async with asyncio.timeout(timeout_s):
                    answer = await ask()
            except TextsRefused:
                self._breaker.succeeded()
                raise
            except (Unavailable, TimeoutError) as error:
                self._breaker.failed()
                raise Unavailable.embedder() from error
            self._breaker.succeeded()
            return answer

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # Looked at, or asyncio complains where the caller has gone away.
            task.exception()

    async def close(self) -> None:
        """Ask no more."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
