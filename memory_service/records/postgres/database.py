"""Connections to the database, and their errors in the words of the domain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.errors import DatabaseError, DiskFull, InterfaceError, OperationalError

from memory_service.errors import StorageFull, Unavailable
from memory_service.runtime.yielding import aside

Row = tuple[Any, ...]
Async = AsyncConnection[Row]
Sync = Connection[Row]

# Deadlock, serialization failure, lock not available.
_REPEATABLE = ("40P01", "40001", "55P03")
_READERS_MAX = 8
_CONNECT_S = 10
# Rows are found by keys, of which there are few: what a planner without statistics takes for a small table
# may have a million rows by the time at which its plan is used.
_OPTIONS = (
    "-c enable_hashjoin=off -c enable_mergejoin=off -c enable_seqscan=off -c jit=off"
    " -c default_transaction_isolation=read\\ committed -c client_min_messages=warning"
)


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
    prepared: bool = True
    """Statements are prepared. Poolers that cannot keep them apart need it off."""
    _statements: dict[str, bytes] = field(default_factory=dict)
    _idle: list[Async] = field(default_factory=list)
    _idle_sync: list[Sync] = field(default_factory=list)
    _free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_READERS_MAX))

    def sql(self, text: str) -> bytes:
        """Return a statement in which `$.` stands for the schema."""
        found = self._statements.get(text)
        if found is None:
            found = self._statements[text] = text.replace("$.", f'"{self.schema}".').encode()
        return found

    async def connect(self) -> Async:
        """Return a new connection, in autocommit. Raises psycopg's errors."""
        connection = await AsyncConnection.connect(self.dsn, autocommit=True, **self._settings())
        connection.prepare_threshold = self._prepare_threshold
        return connection

    def connect_sync(self) -> Sync:
        """Return a new connection for threads. Raises psycopg's errors."""
        connection = Connection.connect(self.dsn, autocommit=True, **self._settings())
        connection.prepare_threshold = self._prepare_threshold
        return connection

    def _settings(self) -> dict[str, Any]:
        return {"options": _OPTIONS, "connect_timeout": _CONNECT_S, "application_name": "memory-service"}

    @property
    def _prepare_threshold(self) -> int | None:
        return 2 if self.prepared else None

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Async]:
        """Give a connection that nobody else uses meanwhile; one that fails is closed."""
        async with self._free:
            with translated():
                connection = self._idle.pop() if self._idle else await aside(self.connect())
                try:
                    yield connection
                except BaseException:
                    # What is under way on it is of no use to others.
                    await close(connection)
                    raise
            self._idle.append(connection)

    async def fetch(self, statement: str, values: Any = ()) -> list[Row]:
        """Return the rows of one statement. It is made again where a connection was lost while it idled."""
        for attempt in (1, 2):
            idled = bool(self._idle)
            try:
                async with self.reading() as connection:
                    cursor = await aside(connection.execute(self.sql(statement), values, binary=True))
                    return await cursor.fetchall()
            except Unavailable as error:
                if attempt == 2 or not idled or not is_lost(error.__cause__ or error):
                    raise
                await self._forget_idle()
        raise AssertionError

    async def _forget_idle(self) -> None:
        while self._idle:
            await close(self._idle.pop())

    @contextmanager
    def reading_sync(self) -> Iterator[Sync]:
        """The same for a thread."""
        with translated():
            connection = self._idle_sync.pop() if self._idle_sync else self.connect_sync()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            if connection.closed:
                return
            self._idle_sync.append(connection)

    async def close(self) -> None:
        """Close every connection that idles."""
        await self._forget_idle()
        while self._idle_sync:
            self._idle_sync.pop().close()


async def close(connection: Async) -> None:
    """Close a connection, whatever its state."""
    with suppress(psycopg.Error, OSError):
        await connection.close()
