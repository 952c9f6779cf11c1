"""Connections to the database, with its errors translated to those of the domain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import DatabaseError, DiskFull, InterfaceError, OperationalError

from memory_service.errors import StorageFull, Unavailable
from memory_service.records.postgres.answers import Answers, WatchedAsync, WatchedSync, is_usable
from memory_service.runtime.yielding import aside

T = TypeVar("T")
Row = tuple[Any, ...]
Async = WatchedAsync
Sync = WatchedSync

# Deadlock, serialization failure, lock not available.
_REPEATABLE = ("40P01", "40001", "55P03")
_READERS_MAX = 8
"""Concurrent reads on the event loop. Doubled: a server holds eight more connections; halved: reads of items
that are not cached queue behind each other."""
_PREPARE_THRESHOLD = 2
"""Executions of a statement on a connection before it is prepared. Doubled: it is parsed more often; halved:
statements that run once are prepared, too."""
_AGAIN_S = 4.0
"""A read whose connection is lost later than this is not retried: its caller has waited long enough."""
_CONNECT_S = 5
"""Doubled: callers wait twice as long for an unreachable database; halved: a busy one seems unreachable."""
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Rows are found by keys with few matches: a table that looks small to a planner without statistics may have a
# million rows by the time a prepared plan is used. A pooler may drop these options: statements that are not
# prepared are planned for the tables as they are. Planning a check again for each list of names would take
# longer than running it.
_OPTIONS = (
    "-c enable_hashjoin=off -c enable_mergejoin=off -c enable_seqscan=off -c jit=off"
    " -c plan_cache_mode=force_generic_plan"
)
# A server whose machine stops or hangs within a transaction holds its locks until then. Halved, it may end
# transactions of a very busy server; doubled, others wait longer.
_ASYNC_OPTIONS = _OPTIONS + " -c idle_in_transaction_session_timeout=10s"
# Defaults that the operator can override. Without them, a network that drops everything is noticed after
# hours.
_DEFAULTS = {
    "connect_timeout": _CONNECT_S,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "application_name": "memory-service",
}


@contextmanager
def translated() -> Iterator[None]:
    """Raise Unavailable or StorageFull in place of the database's errors."""
    try:
        yield
    except DiskFull as error:
        raise StorageFull from error
    except psycopg.Error as error:
        raise Unavailable.storage() from error


def is_lost(error: BaseException) -> bool:
    """Return whether an error may come from the connection rather than from a statement."""
    return isinstance(error, OperationalError | InterfaceError) and not is_refusal(error)


def is_refusal(error: BaseException) -> bool:
    """Return whether the database rejected a statement and keeps the connection usable."""
    return isinstance(error, psycopg.Error) and error.diag.severity_nonlocalized == "ERROR"


def may_be_repeated(error: BaseException) -> bool:
    """Return whether the database rolled back a transaction that would succeed if repeated."""
    return isinstance(error, DatabaseError) and getattr(error, "sqlstate", None) in _REPEATABLE


@dataclass
class Database:
    """The location of the records: a database and a schema in it.

    `dsn` is any libpq connection string, "" for environment variables only; it may hold a password and is
    never logged.
    """

    dsn: str
    schema: str = "memory_service"
    _statements: dict[str, bytes] = field(default_factory=dict)
    _is_beside: bool = False
    _closed: bool = False
    _sends_options: bool = True
    _idle: list[Async] = field(default_factory=list)
    _idle_sync: list[Sync] = field(default_factory=list)
    _free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_READERS_MAX))

    def __post_init__(self) -> None:
        self._answers = Answers(self._connect)

    def beside(self) -> Database:
        """Return a copy with its own connections, which must be closed before this one."""
        other = Database(self.dsn, self.schema)
        other._answers = self._answers
        other._is_beside = True
        return other

    def sql(self, text: str) -> bytes:
        """Return a statement in which `$.` is replaced by the schema."""
        found = self._statements.get(text)
        if found is None:
            found = self._statements[text] = text.replace("$.", f'"{self.schema}".').encode()
        return found

    async def connect(self) -> Async:
        """Return a new connection, in autocommit. Raises psycopg's errors."""
        connection = await self._connect()
        connection.made_s, connection.awaited = time.monotonic(), self._answers.awaited
        if not self._closed:
            self._answers.begin()
        try:
            cursor = await connection.execute("SELECT pg_backend_pid()")
            if await cursor.fetchone() == (connection.info.backend_pid,):
                connection.backend = connection.info.backend_pid
                connection.prepare_threshold = _PREPARE_THRESHOLD
        except BaseException:
            await close(connection)
            raise
        return connection

    async def connect_unwatched(self) -> Async:
        """Return a connection whose answers may take any time. Raises psycopg's errors."""
        return await self._connect()

    async def _connect(self) -> WatchedAsync:
        try:
            return await WatchedAsync.connect(self.dsn, autocommit=True, **self._settings(_ASYNC_OPTIONS))
        except OperationalError as error:
            self._leave_options_out(error)
        return await WatchedAsync.connect(self.dsn, autocommit=True, **self._settings(_ASYNC_OPTIONS))

    def _leave_options_out(self, error: OperationalError) -> None:
        """Send no options from now on if a pooler rejected them. Raises the error otherwise."""
        if not self._sends_options or "unsupported startup parameter: options" not in str(error):
            raise error
        self._sends_options = False

    def connect_sync(self) -> Sync:
        """Return a new connection for threads. Raises psycopg's errors."""
        connection = self._connect_sync()
        connection.made_s, connection.awaited = time.monotonic(), self._answers.awaited
        try:
            if connection.execute("SELECT pg_backend_pid()").fetchone() == (connection.info.backend_pid,):
                connection.backend = connection.info.backend_pid
                connection.prepare_threshold = _PREPARE_THRESHOLD
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_sync(self) -> WatchedSync:
        try:
            return WatchedSync.connect(self.dsn, autocommit=True, **self._settings(_OPTIONS))
        except OperationalError as error:
            self._leave_options_out(error)
        return WatchedSync.connect(self.dsn, autocommit=True, **self._settings(_OPTIONS))

    def _settings(self, options: str) -> dict[str, Any]:
        told = conninfo_to_dict(self.dsn)
        settings: dict[str, Any] = {name: value for name, value in _DEFAULTS.items() if name not in told}
        # Of several hosts, or addresses of one name, use the one that accepts writes: others may have old
        # data.
        return {
            **settings,
            **({"options": options} if self._sends_options else {}),
            "prepare_threshold": None,
            "target_session_attrs": "read-write",
        }

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Async]:
        """Lend a connection for exclusive use; a connection that fails is closed."""
        async with self._free:
            with translated():
                idled = await self._idled()
                connection = idled if idled is not None else await aside(self.connect())
                try:
                    yield connection
                except BaseException:
                    # Its transaction or statement may be unfinished.
                    await close(connection)
                    raise
            await self._keep(connection)

    async def _keep(self, connection: Async) -> None:
        # A read that was under way during `close` returns its connection afterwards.
        if self._closed:
            await close(connection)
        else:
            self._idle.append(connection)

    async def _idled(self) -> Async | None:
        while self._idle:
            connection = self._idle.pop()
            if is_usable(connection):
                return connection
            await close(connection)
        return None

    async def fetch(self, statement: str, values: Any = ()) -> list[Row]:
        """Return the rows of one statement, repeated if the connection was lost."""

        async def read() -> list[Row]:
            async with self.reading() as connection:
                cursor = await aside(connection.execute(self.sql(statement), values, binary=True))
                return await cursor.fetchall()

        return await self.repeated(read)

    async def repeated(self, read: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `read`, repeated on a new connection if one was lost. Raises Unavailable."""
        loop = asyncio.get_running_loop()
        again_until = loop.time() + _AGAIN_S
        try:
            return await read()
        except Unavailable as error:
            if loop.time() > again_until or not is_lost(error.__cause__ or error):
                raise
        await self._forget_idle()
        return await read()

    async def _forget_idle(self) -> None:
        while self._idle:
            await close(self._idle.pop())

    @contextmanager
    def reading_sync(self) -> Iterator[Sync]:
        """The same for a thread, in a transaction that sees one snapshot."""
        with translated():
            connection = self._begun_sync()
            try:
                yield connection
                connection.rollback()
            except BaseException:
                connection.close()
                raise
            if self._closed:
                connection.close()
            else:
                self._idle_sync.append(connection)

    def _begun_sync(self) -> Sync:
        while (idled := self._idled_sync()) is not None:
            try:
                idled.execute(BEGIN_READING)
            except psycopg.Error as error:
                idled.close()
                if not is_lost(error):
                    raise
            else:
                return idled
        connection = self.connect_sync()
        connection.execute(BEGIN_READING)
        return connection

    def _idled_sync(self) -> Sync | None:
        while self._idle_sync:
            connection = self._idle_sync.pop()
            if is_usable(connection):
                return connection
            connection.close()
        return None

    async def close(self) -> None:
        """Close all idle connections now, and those in use when they are returned."""
        self._closed = True
        if not self._is_beside:
            await self._answers.close()
        await self._forget_idle()
        while self._idle_sync:
            self._idle_sync.pop().close()


async def close(connection: Async) -> None:
    """Close a connection in any state."""
    with suppress(psycopg.Error, OSError):
        await connection.close()
