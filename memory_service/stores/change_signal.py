"""Waking those who wait for a namespace to change."""

from __future__ import annotations

import asyncio


class ChangeSignal:
    """Tells waiters of a namespace that something changed. For use on one event loop."""

    def __init__(self) -> None:
        self._waiters: dict[str, set[asyncio.Future[None]]] = {}

    async def wait(self, namespace: str) -> None:
        """Return at the next `fire` for this namespace."""
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
        """Wake all who wait for this namespace."""
        for waiter in self._waiters.get(namespace, ()):
            if not waiter.done():
                waiter.set_result(None)

    def fire_all(self) -> None:
        """Wake everybody."""
        for namespace in list(self._waiters):
            self.fire(namespace)
