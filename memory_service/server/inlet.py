"""How many calls gRPC may hand over: the others wait in gRPC, which ends some when too many do."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

_T = TypeVar("_T")


class Inlet:
    """For one event loop; open at first."""

    def __init__(self) -> None:
        # None: as many as come.
        self._left: int | None = None
        self._asked_for = 0
        self._waiting = deque[asyncio.Future[None]]()
        self._ended = False

    @property
    def used_up(self) -> bool:
        """Whether all that were let in have come: there may be more behind them."""
        return self._left == 0

    def open(self) -> None:
        """Let in as many as come."""
        self._left = None
        self._wake(len(self._waiting))

    def limit(self, calls: int) -> None:
        """Let in so many from now on, those included that gRPC was asked for already."""
        if not self._ended:
            self._left = calls
            self._wake(calls - self._asked_for)

    def end(self) -> None:
        """Open for good: the server ends."""
        self._ended = True
        self.open()

    async def ask(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Return the next call, which is requested when one more may come."""
        while self._left is not None and self._asked_for >= self._left:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting
        self._asked_for += 1
        try:
            call = await request()
        finally:
            self._asked_for -= 1
        if self._left:
            self._left -= 1
        return call

    def _wake(self, most: int) -> None:
        while most > 0 and self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                most -= 1
