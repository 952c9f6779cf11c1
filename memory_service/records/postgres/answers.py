"""Distinguishes dead connections from slow statements.

If a network silently drops packets, neither end notices, and a caller would wait for hours. So when an answer
is overdue, the database is asked over a new connection whether it is still working on the statement.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection

from memory_service.runtime.event_log import EventLog

Row = tuple[Any, ...]

_LOOK_EVERY_S = 0.1
_OVERDUE_S = 0.4
"""Other calls must proceed within a second. Halved, statements that are merely slow are checked more often,
each time over a new connection; doubled, the second is exceeded.
"""
_LOOK_AGAIN_S = 0.15
"""Halved, a network that lost one packet counts as dead; doubled, other calls may wait for over a second.
"""
_PATIENCE = 4
"""The database may take this many times as long to begin a statement as the question took. Halved, a stalling
machine loses connections; doubled, dead connections to a slow one are found later.
"""
_TCP_INFO = slice(120, 136)  # tcpi_bytes_acked and tcpi_bytes_received
_ASKING_S = 1.0
"""The network may also drop the connection for the question. Halved, a busy database does not accept it in
time; doubled, dead connections are found later.
"""
_ANSWER_S = _ASKING_S + _PATIENCE * _ASKING_S
_UNREACHABLE_S = 5.0
"""How long a database that cannot be asked may take to answer. Halved, a short network outage fails more
calls; doubled, callers learn of a long outage later.
"""
_UNTOLD_S = 60.0
"""For connections through a pooler, which cannot be checked. Halved, statements still running may be ended;
doubled, callers wait longer for dead connections.
"""
# Between statements of a pipeline the state is "active" while the backend waits for its client.
_IDLES = "(state LIKE 'idle%%' OR wait_event_type = 'Client')"
_BUSY = f"SELECT pid FROM pg_stat_activity WHERE pid = ANY(%s) AND NOT coalesce({_IDLES}, false)"
_END = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY(%s) AND {_IDLES}"
_log = EventLog(__name__)


class Awaited:
    """The connections that wait for an answer, and since when. Thread-safe."""

    def __init__(self) -> None:
        self.since: dict[Any, float] = {}
        self.given_up_s = 0.0
        """When a connection was last given up. Connections made before that may be dead as well."""

    def overdue(self, after_s: float) -> list[Any]:
        """Return the connections that have waited for an answer for longer than this."""
        before = time.monotonic() - after_s
        return [connection for connection, since in list(self.since.items()) if since < before]


class WatchedAsync(AsyncConnection[Row]):
    """Records when it waits for an answer."""

    awaited: Awaited | None = None
    backend: int = 0
    """The backend's process id, 0 behind a pooler."""
    made_s: float = 0.0

    async def wait(self, *arguments: Any, **named: Any) -> Any:
        if self.awaited is None:
            return await super().wait(*arguments, **named)
        self.awaited.since[self] = time.monotonic()
        try:
            return await super().wait(*arguments, **named)
        finally:
            self.awaited.since.pop(self, None)


class WatchedSync(Connection[Row]):
    """The same for threads."""

    awaited: Awaited | None = None
    backend: int = 0
    made_s: float = 0.0

    def wait(self, *arguments: Any, **named: Any) -> Any:
        if self.awaited is None:
            return super().wait(*arguments, **named)
        self.awaited.since[self] = time.monotonic()
        try:
            return super().wait(*arguments, **named)
        finally:
            self.awaited.since.pop(self, None)


def is_usable(connection: WatchedAsync | WatchedSync) -> bool:
    """Return whether an idle connection seems alive, without asking the database."""
    if connection.closed or (connection.awaited and connection.awaited.given_up_s >= connection.made_s):
        return False
    # On an idle connection only its end can arrive.
    ended = select.poll()
    ended.register(connection.pgconn.socket, select.POLLIN)
    return not ended.poll(0)


def break_off(connection: psycopg.AsyncConnection[Any] | psycopg.Connection[Any]) -> None:
    """Make the waiting caller see the connection as lost.

    Unlike a cancelled wait, this sends nothing to the database, in particular no request to cancel a COMMIT.
    """
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.pgconn.socket)) as other:
        other.shutdown(socket.SHUT_RDWR)


def _moved(connection: psycopg.AsyncConnection[Any] | psycopg.Connection[Any]) -> bytes:
    """Return how many bytes have arrived at either end, since sending a lot takes time."""
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.pgconn.socket)) as other:
        return other.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.stop)[_TCP_INFO]
    return b""  # A Unix socket.


class Answers:
    """Watches the awaited answers and breaks off dead connections. For the event loop."""

    def __init__(self, connect: Callable[[], Awaitable[AsyncConnection[Row]]]) -> None:
        """`connect` makes a connection that is not watched."""
        self._connect = connect
        self._task: asyncio.Task[None] | None = None
        self.awaited = Awaited()

    def begin(self) -> None:
        """Start watching, unless already started."""
        if self._task is None:
            self._task = asyncio.create_task(self._look())

    async def close(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            self._give_up(c for c in self.awaited.overdue(_UNTOLD_S) if not c.backend)
            if any(connection.backend for connection in self.awaited.overdue(_OVERDUE_S)):
                try:
                    await self._ask()
                except (psycopg.Error, OSError, TimeoutError):
                    self._give_up(c for c in self.awaited.overdue(_UNREACHABLE_S) if c.backend)

    async def _ask(self) -> None:
        began = time.monotonic()
        async with asyncio.timeout(_ASKING_S):
            connection = await self._connect()
        unanswered = asyncio.get_running_loop().call_later(_ANSWER_S, break_off, connection)
        try:
            # An answer may be on its way at the first look; a connection without one at the second gets none.
            # A database that was slow to accept the question may be equally slow to begin a statement.
            idle = await self._idle(connection, self.awaited.overdue(_OVERDUE_S))
            if idle:
                await asyncio.sleep(max(_LOOK_AGAIN_S, _PATIENCE * (time.monotonic() - began)))
                again = await self._idle(connection, idle)
                dead = [each for each, seen in again.items() if idle[each] == seen]
                self._give_up(dead)
                # Other transactions wait for the locks of the dead one.
                await connection.execute(_END, ([each.backend for each in dead],))
        finally:
            unanswered.cancel()
            await connection.close()

    async def _idle(self, connection: AsyncConnection[Row], overdue: Iterable[Any]) -> dict[Any, Any]:
        """Return the connections that the database is not working for, each with a progress indicator."""
        since = self.awaited.since
        asked = {each: (since.get(each), _moved(each)) for each in overdue if each.backend and each in since}
        cursor = await connection.execute(_BUSY, ([each.backend for each in asked],))
        busy = {backend for (backend,) in await cursor.fetchall()}
        return {each: seen for each, seen in asked.items() if each.backend not in busy and each in since}

    def _give_up(self, connections: Iterable[Any]) -> None:
        for connection in connections:
            self.awaited.given_up_s = time.monotonic()
            _log.warning("connection_given_up", cause="the database does not answer on it")
            break_off(connection)
