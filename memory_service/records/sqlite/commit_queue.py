"""Group commit: writes that arrive together share a transaction and its fsync.

Small writes are applied on the event loop, where a statement costs a few microseconds; the commit, which
waits for the disk, runs in a separate thread. Writes that arrive in the meantime, or at about the same time,
form the next group. A heavy write is also applied in that thread, to keep the loop free, and is a group by
itself. Owners take turns, so that heavy writers delay only themselves.

On a full disk the group is rolled back, and those of its writes that shrink the records are repeated in the
space of the ballast.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

from memory_service.errors import MemoryServiceError, Overloaded, StorageFull, Unavailable
from memory_service.records.sqlite.connection import (
    CHECKPOINT_PAGES,
    PAGE_BYTES,
    Connection,
    StorageFailed,
    begin,
    checkpoint_due,
    checkpoint_some,
    commit,
    hold_view,
    rollback,
    translated,
)
from memory_service.records.sqlite.disk_space import DiskSpace
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.failpoints import reach
from memory_service.runtime.fair_queue import FairQueue
from memory_service.runtime.files import InPlace
from memory_service.runtime.log_causes import cause_of
from memory_service.runtime.yielding import aside

T = TypeVar("T")
_log = EventLog(__name__)

Owner = tuple[str, str]
"""The caller of a write ("" where callers have no names) and its namespace."""
_NOBODY = ("", "")

GROUP_WRITES_MAX = 256
HEAVY_ITEMS = 64
"""A write of more items and states than this is heavy."""
# A commit costs as much as several writes, so a group smaller than this waits for writes about to arrive.
_TOGETHER = 24
_QUIET_TURNS = 3
# On a full disk the log must fit into the room left by the ballast.
_TIGHT_CHECKPOINT_PAGES = 256
_LOOK_AGAIN_S = 1.0


@dataclass(eq=False)
class _Write(Generic[T]):
    """`apply` changes the database, or raises one of our errors before it changed anything; `publish`
    runs on the loop once the change is durable, in the order of the writes."""

    apply: Callable[[Connection], T]
    publish: Callable[[T], None]
    done: asyncio.Future[T]
    heavy: bool
    shrinks: bool = False
    alone: bool = False
    has_waited_for_room: bool = False
    result: Any = None
    error: BaseException | None = None


class CommitQueue:
    """Applies writes one after another and commits them in groups."""

    def __init__(
        self,
        connection: Connection,
        space: DiskSpace,
        before_commit: Callable[[Connection], None],
        after_rollback: Callable[[], None],
        reader: Connection,
        in_place: InPlace | None = None,
        *,
        queued_writes_max: int,
    ) -> None:
        """`reader` is for the loop only, and sees only published commits.

        `in_place` checks the location of the files; None skips that check.
        """
        self._connection = connection
        self._reader = reader
        self._in_place = in_place or InPlace()
        self._space = space
        self._queued_writes_max = queued_writes_max
        self._before_commit = before_commit
        self._after_rollback = after_rollback
        self._loop = asyncio.get_running_loop()
        self._work = SimpleQueue[Callable[[], None] | None]()
        self._begun = SimpleQueue[None]()
        self._thread = Thread(target=self._work_off, name="commit", daemon=True)
        self._thread.start()
        # Runs before all waiting writes: the queue's own work, and repeated writes.
        self._first: deque[_Write[Any]] = deque()
        self._turns = FairQueue[str, _Write[Any]]()
        self._group: list[_Write[Any]] = []
        self._running = False
        self._failed = False
        self._committing = False
        self._published = asyncio.Event()
        self._refusing = False
        self._again: list[_Write[Any]] = []
        self._shrink_log = False
        self._checkpoint: _Write[None] | None = None
        self._look_again: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    async def write(
        self,
        apply: Callable[[Connection], T],
        publish: Callable[[T], None],
        *,
        owner: Owner = _NOBODY,
        heavy: bool = False,
        shrinks: bool = False,
    ) -> T:
        """Apply a write and return the result of `apply` once it is durable and published.

        The writes of an owner stay in order. With `shrinks`, the write does not enlarge the records and is
        accepted even on a full disk. If the caller is cancelled, the write continues.
        """
        if self._refusing:
            raise Unavailable.shutting_down()
        if self._failed:
            raise Unavailable.storage()
        if self._space.tight and not shrinks:
            raise StorageFull
        if len(self._turns) >= self._queued_writes_max:
            raise Overloaded("queued_writes_max", self._queued_writes_max)
        write = _Write(apply, publish, self._loop.create_future(), heavy, shrinks)
        return await aside(self._enqueue(write, owner))

    async def record(self, apply: Callable[[Connection], T]) -> T:
        """Write the store's own data, even while closing."""
        if self._failed:
            raise StorageFailed
        done: asyncio.Future[T] = self._loop.create_future()
        return await self._enqueue(_Write(apply, lambda _: None, done, heavy=True))

    def refuse(self) -> None:
        """Accept no more writes."""
        self._refusing = True

    async def published(self) -> None:
        """Wait until everything committed so far is published.

        A reader with a separate connection may have seen a commit before others do: they would then read
        older data after it.
        """
        if self._committing:
            await self._published.wait()

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Run `work` with the connection between two transactions, in the commit thread."""
        if self._failed:
            raise StorageFailed
        return await self._enqueue(self._between(work))

    def is_sound(self) -> bool:
        """Return whether writes are accepted; False once the files are not where the next start will look for
        them.

        Checked after each commit, before it is acknowledged, at a few microseconds per group.
        """
        if not self._failed and (lost := self._in_place.lost()):
            self._failed = True
            _log.error("data_folder_lost", file=lost, effect="no writes are accepted until a restart")
        return not self._failed

    async def make_room(self) -> None:
        """Release the ballast for another writer that found the disk full."""

        def release(_: Connection) -> None:
            # The log also takes up space that is needed.
            self._shrink_log |= self._space.release()

        await self.run(release)

    def _between(self, work: Callable[[Connection], T]) -> _Write[T]:
        return _Write(work, lambda _: None, self._loop.create_future(), heavy=True, alone=True)

    def _enqueue(self, write: _Write[T], owner: Owner = _NOBODY) -> asyncio.Future[T]:
        self._turns.put(owner, write)
        if not self._running:
            self._running = True
            self._idle.clear()
            # After the other callbacks of this turn of the loop, which may bring more writes.
            self._loop.call_soon(self._gather, len(self._turns), 0)
        return write.done

    def _gather(self, count: int, quiet_turns: int) -> None:
        """Begin the next group once no more writes arrive, or enough have."""
        waiting = len(self._turns)
        quiet_turns = quiet_turns + 1 if waiting == count else 0
        if 0 < waiting < _TOGETHER and quiet_turns <= _QUIET_TURNS and not self._first:
            self._loop.call_soon(self._gather, waiting, quiet_turns)
        else:
            self._next_group()

    def _next_group(self) -> None:
        if self._failed:
            self._refuse_waiting()
        self._group = self._take_group()
        if not self._group:
            self._running = False
            self._idle.set()
            return
        if self._group[0].alone:
            self._work.put(self._run_alone)
            self._begun.get()
            return
        work = self._prepare_group()
        # New readers can see the commit. The loop publishes it a little later.
        self._published.clear()
        self._attempt(self._hold_reader)
        self._work.put(work)
        # The thread cannot begin while the loop holds the interpreter's lock, up to half a millisecond
        # longer. The loop gets it back as soon as the thread waits for the disk.
        self._begun.get()

    def _hold_reader(self) -> None:
        with translated():
            hold_view(self._reader)

    def _work_off(self) -> None:
        """The thread's main loop."""
        while (work := self._work.get()) is not None:
            self._begun.put(None)
            self._attempt(work)
            self._loop.call_soon_threadsafe(self._committed)

    def _attempt(self, work: Callable[[], None]) -> None:
        """Do something for the group, failing the group on any exception, so that no call waits forever."""
        try:
            work()
        except BaseException as error:
            # Unexpected. Possibly logging itself failed.
            self._failed = True
            for write in self._group:
                write.error = write.error or Unavailable.storage()
            with suppress(Exception):
                _log.error("commit_failed", cause=cause_of(error))

    def _take(self) -> _Write[Any] | None:
        return self._first.popleft() if self._first else self._turns.take()

    def _take_group(self) -> list[_Write[Any]]:
        """Return the next writes: one heavy write, or all light ones before the next heavy one."""
        group: list[_Write[Any]] = []
        while len(group) < GROUP_WRITES_MAX and (write := self._take()) is not None:
            if write.heavy and group:
                self._first.appendleft(write)
                break
            group.append(write)
            if write.heavy:
                break
        return group

    def _refuse_waiting(self) -> None:
        """Fail the writes that were waiting when the disk failed, so that none is written after that."""
        while (write := self._take()) is not None:
            if not write.done.done():
                write.done.set_exception(StorageFailed())

    def _prepare_group(self) -> Callable[[], None]:
        if self._group[0].heavy:
            return self._apply_and_commit
        self._attempt(self._apply_group)
        return self._commit_group

    def _run_alone(self) -> None:
        (only,) = self._group
        try:
            try:
                only.result = only.apply(self._connection)
            except StorageFull:
                rollback(self._connection)
                # Its log takes up the space that deletions need.
                self._shrink_log |= not only.shrinks
                if not self._space.release():
                    raise
                only.result = only.apply(self._connection)
            self._space.look(self._connection)
        except BaseException as error:
            self._failed = self._failed or isinstance(error, StorageFailed)
            only.error = error
            with suppress(Exception):
                rollback(self._connection)

    def _apply_and_commit(self) -> None:
        self._apply_group()
        self._commit_group()

    def _apply_group(self) -> None:
        reach("commit.before_begin")
        try:
            begin(self._connection)
        except BaseException as error:
            self._fail_group(error)
            return
        for write in self._group:
            try:
                with translated():
                    write.result = write.apply(self._connection)
                reach("commit.after_write")
            except (StorageFull, Unavailable) as error:
                self._fail_group(error)
                return
            except MemoryServiceError as error:
                write.error = error
            except BaseException as error:
                # The write may be half applied, and others share the transaction.
                write.error = error
                self._fail_group(Unavailable.storage())
                return
        # Here rather than in the commit thread, which for each statement would wait for the loop's
        # interpreter lock.
        try:
            with translated():
                reach("commit.after_statements")
                self._before_commit(self._connection)
        except BaseException as error:
            self._fail_group(error)

    def _commit_group(self) -> None:
        if self._failed or not self._connection.in_transaction:
            return
        try:
            reach("commit.before_commit")
            self._committing = True
            commit(self._connection)
            reach("commit.after_commit")
        except BaseException as error:
            self._fail_group(error)
            return
        try:
            was_tight = self._space.tight
            self._space.look(self._connection)
            self._shrink_log |= self._space.tight and not was_tight
        except Exception as error:
            _log.error("disk_space_unknown", cause=cause_of(error))

    def _fail_group(self, error: BaseException) -> None:
        for write in self._group:
            write.error = write.error or error
        if isinstance(error, StorageFailed):
            # After an I/O error the content of the disk is unknown: a later fsync that succeeds proves
            # nothing about this one. Only a restart, which reads the log again, can recover.
            self._failed = True
        _log.error("write_failed", writes=len(self._group), cause=cause_of(error))
        try:
            rollback(self._connection)
            self._after_rollback()
            if isinstance(error, StorageFull) and not self._failed:
                self._make_room()
        except Exception as rollback_error:
            self._failed = True
            _log.error("rollback_failed", cause=cause_of(rollback_error))

    def _make_room(self) -> None:
        """Release the ballast and repeat the writes that a full disk must not stop."""
        fewer = not all(write.shrinks for write in self._group)
        more_room = self._space.release() or fewer
        # Without space for the checkpoint nothing changes, and a second attempt would fail as well.
        maybe = checkpoint_due(self._connection, 1)
        for write in self._group:
            if write.shrinks and (more_room or (maybe and not write.has_waited_for_room)):
                write.has_waited_for_room |= not more_room
                self._again.append(write)
        self._shrink_log |= bool(self._again)

    def _committed(self) -> None:
        # Nothing else runs on the loop until everything is published.
        self._attempt(partial(rollback, self._reader))
        if not self.is_sound():
            for write in self._group:
                write.error = write.error or StorageFailed()
        group, self._group = self._group, []
        for write in self._again:
            group.remove(write)
            write.error = None
        for write in group:
            self._publish(write)
        self._committing = False
        self._published.set()
        self._first.extendleft(reversed(self._again))
        self._again = []
        # A checkpoint that failed for lack of space is not repeated before another write was tried.
        if not any(write is self._checkpoint and write.error is not None for write in group):
            self._care_for_log()
        self._look_from_time_to_time()
        self._gather(len(self._turns), 0)

    def _publish(self, write: _Write[Any]) -> None:
        if write.error is None:
            try:
                write.publish(write.result)
            except Exception as error:
                write.error = error
                with suppress(Exception):
                    _log.exception("publish_failed")
        reach("commit.before_answer")
        if write.done.done():
            return
        if write.error is not None:
            write.done.set_exception(write.error)
        else:
            write.done.set_result(write.result)

    def _care_for_log(self) -> None:
        """Queue a checkpoint before the waiting writes, if one is due."""
        if self._failed:
            return
        if self._shrink_log or checkpoint_due(self._connection, self._log_pages_max):
            shrink, self._shrink_log = self._shrink_log or self._space.tight, False
            self._checkpoint = work = self._between(partial(checkpoint_some, shrink=shrink))
            work.shrinks = True
            # Waiting calls learn of a failure from `_failed`.
            work.done.add_done_callback(lambda done: done.exception())
            self._first.appendleft(work)

    def _look_from_time_to_time(self) -> None:
        """Check the disk periodically while it is full."""
        if self._space.tight and self._look_again is None and not (self._refusing or self._failed):
            self._look_again = self._loop.call_later(_LOOK_AGAIN_S, self._look)

    @property
    def _log_pages_max(self) -> int:
        if self._space.tight:
            return _TIGHT_CHECKPOINT_PAGES
        return int(min(CHECKPOINT_PAGES, self._space.log_bytes_max // PAGE_BYTES))

    def _look(self) -> None:
        self._look_again = None
        work = self._between(lambda _: None)
        work.done.add_done_callback(lambda done: done.exception())
        self._enqueue(work)

    async def close(self) -> None:
        """Finish the waiting writes, then stop."""
        if self._look_again is not None:
            self._look_again.cancel()
        await self._idle.wait()
        self._work.put(None)
        self._thread.join()
