"""A timeout, concurrency limit and circuit breaker around an embedding provider.

A caller waits for a limited time, and not at all while the provider is known to fail. The provider gets a
limited number of requests at a time, and none for a while after failures in a row.
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
# The rest of a caller's time is for other work, such as the write.
_SHARE_OF_CALL = 0.5


class Guard:
    """Passes calls to a provider, or fails them at once."""

    def __init__(self, timeout_s: float, pause_s: float) -> None:
        """`timeout_s` limits a caller's wait, `pause_s` is the pause after failures in a row."""
        self._timeout_s = timeout_s
        self._breaker = Breaker(_FAILURES_MAX, pause_s, time.monotonic)
        self._slots = asyncio.Semaphore(_CONCURRENT_CALLS_MAX)
        self._running: set[asyncio.Task[object]] = set()

    async def call(self, ask: Callable[[], Awaitable[T]], *, background: bool) -> T:
        """Return the provider's response. Raises Unavailable if there is none in time."""
        if self._breaker.is_open:
            raise Unavailable.embedder()
        task = asyncio.ensure_future(self._ask(ask, background))
        self._running.add(task)
        task.add_done_callback(self._ended)
        try:
            # A caller that gives up does not cancel the request: its outcome shows the provider's state.
            async with asyncio.timeout(None if background else self._patience_s()):
                return await aside(asyncio.shield(task))
        except TimeoutError:
            raise Unavailable.embedder() from None

    def _patience_s(self) -> float:
        left_s = remaining_s()
        return self._timeout_s if left_s is None else min(self._timeout_s, left_s * _SHARE_OF_CALL)

    async def _ask(self, ask: Callable[[], Awaitable[T]], background: bool) -> T:
        async with self._slots:
            # Other calls may have failed while this one waited.
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
            # Retrieve the exception, or asyncio logs it if the caller has left.
            task.exception()

    async def close(self) -> None:
        """Cancel all requests."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
