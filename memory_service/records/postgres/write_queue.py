"""Group commit: waiting writes are combined into one transaction of two round trips.

The first round trip locks and looks up, the second writes and commits; in a pipeline the server skips the
statements after a failed one, including COMMIT. A rejected write does not affect the others of its group. If
the database rejects what no rule foresaw, the group fails and its writes are retried one by one. COMMIT is
never cancelled. If the outcome of a COMMIT is unknown, its writes are not acknowledged until it is known;
other groups continue in the meantime.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import psycopg
from psycopg import AsyncCursor
from psycopg.errors import DiskFull, InFailedSqlTransaction

from memory_service.errors import MemoryServiceError, Overloaded, StorageFull, Unavailable
from memory_service.records.postgres.answers import is_usable
from memory_service.records.postgres.database import (
    Async,
    Database,
    Row,
    close,
    is_lost,
    is_refusal,
    may_be_repeated,
)
from memory_service.records.postgres.flushing import flush
from memory_service.records.postgres.lookups import Forgotten, Needs, look_up
from memory_service.records.postgres.outcomes import was_committed
from memory_service.records.postgres.page import Page
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.fair_queue import FairQueue
from memory_service.runtime.log_causes import cause_of
from memory_service.runtime.yielding import aside

T = TypeVar("T")
_log = EventLog(__name__)

GROUP_WRITES_MAX = 256
_REPEATS_MAX = 8


class _Unknown(Exception):
    """The outcome of a COMMIT is unknown, or its pages may not be replicated as required."""

    def __init__(self, pages: list[Page], *, can_be_told: bool) -> None:
        super().__init__()
        self.pages, self.can_be_told = pages, can_be_told


@dataclass(eq=False)
class Write(Generic[T]):
    """`apply` changes a page, or raises one of our errors before changing anything.

    `prepare`, for a write that is made alone, runs its special lookups and statements before `apply`.
    """

    namespace: str
    needs: Needs
    apply: Callable[[Page], T]
    done: asyncio.Future[T]
    prepare: Callable[[Async, Page], Awaitable[None]] | None = None
    result: Any = None
    error: BaseException | None = None


class WriteQueue:
    """Applies writes in order of arrival, with owners taking turns. For the event loop."""

    def __init__(
        self,
        database: Database,
        is_known: Callable[[str], bool],
        publish: Callable[[Iterable[Page]], None],
        forget: Callable[[Iterable[str]], None],
        *,
        queued_writes_max: int,
    ) -> None:
        """`publish` is called with the pages of a group after its commit and before its writes return."""
        self._database = database
        self._is_known = is_known
        self._publish = publish
        self._forget = forget
        self._queued_writes_max = queued_writes_max
        self._turns = FairQueue[str, Write[Any]]()
        self._next: Write[Any] | None = None
        self._connection: Async | None = None
        self._task: asyncio.Task[None] | None = None
        self._settling: set[asyncio.Task[None]] = set()
        self._refusing = False
        self._warned = False

    async def write(
        self,
        owner: tuple[str, str],
        needs: Needs,
        apply: Callable[[Page], T],
        *,
        prepare: Callable[[Async, Page], Awaitable[None]] | None = None,
    ) -> T:
        """Make a write and return the result of `apply`. It continues if the caller is cancelled."""
        if self._refusing:
            raise Unavailable.shutting_down()
        if len(self._turns) >= self._queued_writes_max:
            raise Overloaded("queued_writes_max", self._queued_writes_max)
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._turns.put(owner, Write(owner[1], needs, apply, done, prepare))
        if self._task is None:
            self._task = asyncio.create_task(self._work_off())
        return await aside(asyncio.shield(done))

    def refuse(self) -> None:
        """Accept no more writes; those under way continue."""
        self._refusing = True

    async def close(self) -> None:
        """Finish the writes under way."""
        self.refuse()
        while tasks := {*self._settling, *([self._task] if self._task else ())}:
            await asyncio.wait(tasks)
        if self._connection is not None:
            await close(self._connection)

    async def _work_off(self) -> None:
        try:
            # Writes that arrive in this turn of the loop join the first group.
            await asyncio.sleep(0)
            while group := self._take():
                await self._do(group)
        finally:
            self._task = None

    def _take(self) -> list[Write[Any]]:
        """Return the next group; a write to be made alone is a group by itself."""
        group: list[Write[Any]] = []
        while len(group) < GROUP_WRITES_MAX:
            write = self._next or self._turns.take()
            self._next = None
            if write is None:
                break
            if write.prepare is not None and group:
                self._next = write
                break
            group.append(write)
            if write.prepare is not None:
                break
        return group

    async def _do(self, group: list[Write[Any]]) -> None:
        try:
            await self._try(group)
        except (psycopg.Error, OSError) as error:
            if is_lost(error) or len(group) == 1:
                _log.warning("write_failed", cause=cause_of(error))
                self._fail(group, StorageFull() if isinstance(error, DiskFull) else Unavailable.storage())
                return
            for write in group:
                await self._do([write])
        except Exception as error:
            if len(group) == 1:
                self._fail(group, error)
                return
            for write in group:
                await self._do([write])

    async def _try(self, group: list[Write[Any]]) -> None:
        known = {write.namespace for write in group if self._is_known(write.namespace)}
        for attempt in range(_REPEATS_MAX):
            idled = self._connection is not None
            try:
                pages = await self._transaction(group, known)
            except Forgotten:
                self._forget(known)
                known = set()
            except _Unknown as unknown:
                self._settle(group, unknown)
                return
            except psycopg.Error as error:
                # An idle connection may have been closed in the meantime.
                again = may_be_repeated(error) or (is_lost(error) and idled and attempt == 0)
                if not again or attempt == _REPEATS_MAX - 1:
                    raise
            else:
                self._publish(pages)
                self._finish(group)
                return
        raise Unavailable.storage()

    async def _transaction(self, group: list[Write[Any]], known: set[str]) -> list[Page]:
        needs: dict[str, list[Needs]] = {}
        for write in group:
            needs.setdefault(write.namespace, []).append(write.needs)
            write.result = write.error = None
        connection = await self._connected()
        try:
            pages = await look_up(connection, self._database, needs, known)
            for write in group:
                await self._apply(connection, write, pages[write.namespace])
            touched = [page for page in pages.values() if page.touched]
            if not touched and not any(page.requests for page in pages.values()):
                await connection.execute("ROLLBACK")
                return []
        except BaseException:
            await self._give_up()
            raise
        # After a cancelled wait for standbys, a repeated receipt may not be replicated yet. The COMMIT of a
        # transaction that has locked its namespace waits for everything committed before.
        await self._commit(connection, touched)
        return touched

    async def _apply(self, connection: Async, write: Write[Any], page: Page) -> None:
        try:
            if write.prepare is not None:
                await write.prepare(connection, page)
            write.result = write.apply(page)
        except MemoryServiceError as error:
            write.error = error

    async def _commit(self, connection: Async, pages: list[Page]) -> None:
        """Write and commit the pages. Raises _Unknown, or other errors if nothing was kept."""
        self._warned = False
        commit: AsyncCursor[Row] | None = None
        sent = False
        try:
            async with connection.pipeline():
                await flush(connection, self._database, pages)
                # The call itself may send it and then fail on the response.
                sent = True
                commit = await connection.execute("COMMIT")
        except Exception as error:
            if not sent or is_refusal(error):
                await self._give_up()
                raise
            await self._drop()
            if commit is None or commit.statusmessage != "COMMIT":
                raise _Unknown(pages, can_be_told=True) from error
        if self._warned:
            # Committed here, but perhaps not replicated as required.
            await self._drop()
            raise _Unknown(pages, can_be_told=False)
        if commit.statusmessage != "COMMIT":
            # It rolled back, because an earlier statement had failed.
            await self._give_up()
            raise InFailedSqlTransaction

    def _settle(self, group: list[Write[Any]], unknown: _Unknown) -> None:
        """Let writes return once their outcome is known, or cannot be determined."""

        async def settle() -> None:
            if unknown.can_be_told and unknown.pages and await was_committed(self._database, unknown.pages):
                self._publish(unknown.pages)
                self._finish(group)
            else:
                self._fail(group, Unavailable.storage())

        task = asyncio.create_task(settle())
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _connected(self) -> Async:
        if self._connection is not None and not is_usable(self._connection):
            await self._drop()
        if self._connection is None:
            self._connection = await self._database.connect()
            self._connection.add_notice_handler(self._notice)
        return self._connection

    def _notice(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        self._warned = self._warned or diagnostic.severity_nonlocalized == "WARNING"

    async def _give_up(self) -> None:
        """Roll back, or close a connection that fails even at that."""
        if self._connection is None:
            return
        try:
            await self._connection.rollback()
        except (psycopg.Error, OSError):
            await self._drop()

    async def _drop(self) -> None:
        if self._connection is not None:
            await close(self._connection)
            self._connection = None

    @staticmethod
    def _fail(group: list[Write[Any]], error: BaseException) -> None:
        for write in group:
            # Raising one exception twice would mix their tracebacks.
            write.error = write.error or error
        WriteQueue._finish(group)

    @staticmethod
    def _finish(group: list[Write[Any]]) -> None:
        for write in group:
            if write.done.done():
                continue
            if write.error is None:
                write.done.set_result(write.result)
                continue
            write.done.set_exception(write.error)
            # All waiters may have gone.
            write.done.exception()
