"""Connections that do not answer: those that are dead are told apart from statements that take long.

A network that drops what is sent on a connection tells neither end, and who waits for an answer would wait
for hours. So whenever one takes a while, the database is asked over a new connection whether it is at work.
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
import structlog
from psycopg import AsyncConnection, Connection

Row = tuple[Any, ...]

_LOOK_EVERY_S = 0.1
_OVERDUE_S = 0.4
"""Other calls have to go on within a second. Half of it asks about statements that only take long more often,
which is one connection a time; with twice as much that second is over."""
_LOOK_AGAIN_S = 0.15
"""With half of it a network that lost a packet is taken for dead, twice as much is missing in that second."""
_PATIENCE = 4
"""So many times as long as the question took the database may take to begin with a statement. With half of it
a machine that stalls loses connections, with twice as much a slow one finds those that are dead later."""
_TCP_INFO = slice(120, 136)  # tcpi_bytes_acked and tcpi_bytes_received
_ASKING_S = 1.0
"""The connection for the question may meet a network that drops it. With half of it a busy database does not
take it in time, with twice as much what is dead is found later."""
_ANSWER_S = _ASKING_S + _PATIENCE * _ASKING_S
_UNREACHABLE_S = 5.0
"""A database that cannot even be asked may answer for so long. With half of it a short outage of the network
fails more calls, with twice as much callers learn of a long one later."""
_UNTOLD_S = 60.0
"""Behind a pooler it cannot be asked about; half of it may end statements that are at work."""
# Between the statements of a pipeline it is "active", and waits for its client.
_IDLES = "(state LIKE 'idle%%' OR wait_event_type = 'Client')"
_BUSY = f"SELECT pid FROM pg_stat_activity WHERE pid = ANY(%s) AND NOT coalesce({_IDLES}, false)"
_END = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY(%s) AND {_IDLES}"
_log = structlog.get_logger(__name__)


class Awaited:
    """The connections on which an answer is waited for, since when. For any thread."""

    def __init__(self) -> None:
        self.since: dict[Any, float] = {}
        self.given_up_s = 0.0
        """When one was given up. What was connected before may be dead, too."""

    def overdue(self, after_s: float) -> list[Any]:
        """Return the connections whose answer has been waited for longer than this."""
        before = time.monotonic() - after_s
        return [connection for connection, since in list(self.since.items()) if since < before]


class WatchedAsync(AsyncConnection[Row]):
    """Notes when it waits for an answer."""

    awaited: Awaited | None = None
    backend: int = 0
    """The process of the database, 0 if a pooler is between."""
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
    """Whether nothing tells that a connection that idled is dead; the database is not asked."""
    if connection.closed or (connection.awaited and connection.awaited.given_up_s >= connection.made_s):
        return False
    # Of one that idles nothing comes but its end.
    ended = select.poll()
    ended.register(connection.pgconn.socket, select.POLLIN)
    return not ended.poll(0)


def break_off(connection: psycopg.AsyncConnection[Any] | psycopg.Connection[Any]) -> None:
    """Let who waits for an answer on a connection learn that it is lost.

    Unlike a cancelled wait this asks the database for nothing, least of all to cancel a COMMIT.
    """
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.pgconn.socket)) as other:
        other.shutdown(socket.SHUT_RDWR)


def _moved(connection: psycopg.AsyncConnection[Any] | psycopg.Connection[Any]) -> bytes:
    """Return how many bytes have arrived at either end: much that is sent takes its time."""
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.pgconn.socket)) as other:
        return other.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.stop)[_TCP_INFO]
    return b""  # By a socket of this machine.


class Answers:
    """Looks after what is awaited, and breaks off what is dead. For the event loop."""

    def __init__(self, connect: Callable[[], Awaitable[AsyncConnection[Row]]]) -> None:
        """`connect` makes a connection that is not looked after."""
        self._connect = connect
        self._task: asyncio.Task[None] | None = None
        self.awaited = Awaited()

    def begin(self) -> None:
        """Look from now on, if it is not done yet."""
        if self._task is None:
            self._task = asyncio.create_task(self._look())

    async def close(self) -> None:
        """Look no more."""
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
            # An answer may be on its way at the first look. Who has none at the second gets none. A database
            # that was slow to take the question may be as slow to begin with what it is asked.
            idle = await self._idle(connection, self.awaited.overdue(_OVERDUE_S))
            if idle:
                await asyncio.sleep(max(_LOOK_AGAIN_S, _PATIENCE * (time.monotonic() - began)))
                again = await self._idle(connection, idle)
                dead = [each for each, seen in again.items() if idle[each] == seen]
                self._give_up(dead)
                # What the dead one has locked others wait for.
                await connection.execute(_END, ([each.backend for each in dead],))
        finally:
            unanswered.cancel()
            await connection.close()

    async def _idle(self, connection: AsyncConnection[Row], overdue: Iterable[Any]) -> dict[Any, Any]:
        """Return those that the database is not at work for, each with what shows whether it gets on."""
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
