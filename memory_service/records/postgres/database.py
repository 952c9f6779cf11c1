"""Connections to the database, and their errors in the words of the domain."""

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
"""Reads on the event loop at a time. Doubled, a server holds eight more connections; halved, reads that are
not of cached items wait for each other."""
_PREPARE_THRESHOLD = 2
"""A statement is prepared when it is made so often on a connection. Doubled, it is parsed more often before;
halved, statements that are made once are prepared, too."""
_AGAIN_S = 4.0
"""A read whose connection was lost later is not made again: its caller has waited long enough."""
_CONNECT_S = 5
"""Doubled, callers wait twice as long for a database that does not answer; halved, a busy one is refused."""
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Rows are found by keys, of which there are few: what a planner without statistics takes for a small table
# may have a million rows by the time at which a plan is used that was prepared. A pooler may leave these out:
# what is not prepared is planned for the tables as they are.
# And to plan a check anew for each list of names takes longer than to make it.
_OPTIONS = (
    "-c enable_hashjoin=off -c enable_mergejoin=off -c enable_seqscan=off -c jit=off"
    " -c plan_cache_mode=force_generic_plan"
)
# A server whose machine stops, or hangs, in the middle of a transaction holds locks until then. Half of it
# may end transactions of a server that is very busy, with twice as much others wait for longer.
_ASYNC_OPTIONS = _OPTIONS + " -c idle_in_transaction_session_timeout=10s"
# What the operator may say otherwise. Without it a network that drops everything is noticed after hours.
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
    """Raise Unavailable or StorageFull for what the database raises."""
    try:
        yield
    except DiskFull as error:
        raise StorageFull from error
    except psycopg.Error as error:
        raise Unavailable.storage() from error


def is_lost(error: BaseException) -> bool:
    """Whether an error may be of the connection, and not of a statement."""
    return isinstance(error, OperationalError | InterfaceError) and not is_refusal(error)


def is_refusal(error: BaseException) -> bool:
    """Whether the database answered that a statement failed, and goes on with the connection."""
    return isinstance(error, psycopg.Error) and error.diag.severity_nonlocalized == "ERROR"


def may_be_repeated(error: BaseException) -> bool:
    """Whether the database has rolled a transaction back that would succeed if made again."""
    return isinstance(error, DatabaseError) and getattr(error, "sqlstate", None) in _REPEATABLE


@dataclass
class Database:
    """Where the records are: a database and a schema in it.

    `dsn` is what libpq takes, "" for the environment alone; it may hold a password and is never logged.
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
        """Return the same with connections of its own; it is closed first."""
        other = Database(self.dsn, self.schema)
        other._answers = self._answers
        other._is_beside = True
        return other

    def sql(self, text: str) -> bytes:
        """Return a statement in which `$.` stands for the schema."""
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
        """Return one whose answers may take as long as they like. Raises psycopg's errors."""
        return await self._connect()

    async def _connect(self) -> WatchedAsync:
        try:
            return await WatchedAsync.connect(self.dsn, autocommit=True, **self._settings(_ASYNC_OPTIONS))
        except OperationalError as error:
            self._leave_options_out(error)
        return await WatchedAsync.connect(self.dsn, autocommit=True, **self._settings(_ASYNC_OPTIONS))

    def _leave_options_out(self, error: OperationalError) -> None:
        """Send no more options, if it is a pooler that takes none. Raises the error otherwise."""
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
        # Of several hosts, or behind one name, the one that takes writes: another tells what was.
        return {
            **settings,
            **({"options": options} if self._sends_options else {}),
            "prepare_threshold": None,
            "target_session_attrs": "read-write",
        }

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Async]:
        """Give a connection that nobody else uses meanwhile; one that fails is closed."""
        async with self._free:
            with translated():
                idled = await self._idled()
                connection = idled if idled is not None else await aside(self.connect())
                try:
                    yield connection
                except BaseException:
                    # What is under way on it is of no use to others.
                    await close(connection)
                    raise
            await self._keep(connection)

    async def _keep(self, connection: Async) -> None:
        # Who was under way at the end gives its connection back behind it.
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
        """Return the rows of one statement, which is made again where the connection was lost."""

        async def read() -> list[Row]:
            async with self.reading() as connection:
                cursor = await aside(connection.execute(self.sql(statement), values, binary=True))
                return await cursor.fetchall()

        return await self.repeated(read)

    async def repeated(self, read: Callable[[], Awaitable[T]]) -> T:
        """Return what is read, once more with a new connection where one was lost. Raises Unavailable."""
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
        """The same for a thread, in a transaction that sees one state."""
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
        """Close every connection that idles, and those in use once they are given back."""
        self._closed = True
        if not self._is_beside:
            await self._answers.close()
        await self._forget_idle()
        while self._idle_sync:
            self._idle_sync.pop().close()


async def close(connection: Async) -> None:
    """Close a connection, whatever its state."""
    with suppress(psycopg.Error, OSError):
        await connection.close()
