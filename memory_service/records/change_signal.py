"""Wakes calls that wait for a namespace to change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class ChangeSignal:
    """Notifies waiters of a namespace of changes. For use on one event loop."""

    def __init__(self) -> None:
        self._waiters: dict[str, set[asyncio.Future[None]]] = {}
        self._closed = False

    async def wait_until(self, namespace: str, happened: Callable[[], bool]) -> None:
        """Return when `happened` is true, which is checked now, at each `fire`, and at the close."""
        while not self._closed and not happened():
            await self._wait(namespace)

    async def _wait(self, namespace: str) -> None:
        waiter = asyncio.get_running_loop().create_future()
        waiters = self._waiters.setdefault(namespace, set())
        waiters.add(waiter)
        try:
            await waiter
        finally:
            waiters.discard(waiter)
            if not waiters and self._waiters.get(namespace) is waiters:
                del self._waiters[namespace]

    def fire(self, namespace: str) -> None:
        """Wake all waiters of this namespace."""
        for waiter in self._waiters.get(namespace, ()):
            if not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        """Wake all waiters; from now on no call waits."""
        self._closed = True
        for namespace in list(self._waiters):
            self.fire(namespace)
