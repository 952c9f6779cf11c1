"""The audit log of a running server: entries from the event loop, written in groups by one thread."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from memory_service.audit.entries import Entry
from memory_service.audit.known_keys import KnownKeys, read_known_keys
from memory_service.audit.log_file import CannotOpenLog, LogFile
from memory_service.data_key import DataKey
from memory_service.errors import MemoryServiceError, StorageFull, Unavailable
from memory_service.runtime.clock import now_us
from memory_service.runtime.event_log import EventLog

FILE_BYTES_MAX = 16 * 1024 * 1024
"""Approximate size of a file, after which the next one begins."""
QUEUED_ENTRIES_MAX = 10_000
"""Waiting entries above which writes are rejected."""
SPARED_ENTRIES_MAX = QUEUED_ENTRIES_MAX // 2
"""Waiting entries above which rejected calls and reads are only counted."""
REFUSALS_PER_SECOND_MAX = 100
"""Rejected calls that are recorded; more are only counted, so that no client can fill the disk."""
_GROUP_ENTRIES_MAX = 512
_SYNC_AFTER_S = 0.2

_log = EventLog(__name__)
_Waiting = tuple[Entry, asyncio.Future[None] | None]


class Room(Protocol):
    """A holder of disk space that is reserved for a full disk."""

    @property
    def tight(self) -> bool:
        """Whether only the reserved space is left, or soon will be."""

    async def make_room(self, folder: Path) -> None:
        """Release the reserved space, if it is on the disk of this folder."""


class AuditLog:
    """Records entries in order. For one event loop.

    An entry is in the file, and so survives the process, within a turn of the writing thread; it is on disk
    within `_SYNC_AFTER_S`. An entry written ahead is on disk when `write_ahead` returns. With a `key` entries
    are sealed.
    """

    def __init__(
        self,
        folder: Path,
        version: str,
        file_bytes_max: int = FILE_BYTES_MAX,
        key: DataKey | None = None,
        room: Room | None = None,
        server: str = "",
    ) -> None:
        """`version` and `server` are recorded in the entry "opened"."""
        self._room = room
        self._file = LogFile(folder, file_bytes_max, key)
        self._folder, self._key = folder, key
        self._version, self._server = version, server
        self._waiting: deque[_Waiting] = deque()
        self._running = False
        self._sync_timer: asyncio.TimerHandle | None = None
        self._sync_wanted = False
        self._missed = 0
        self._refusals: tuple[int, int] = (0, 0)
        self.failing = False
        """Whether the last entries could not be written. They wait, and are retried with the next."""

    def open(self) -> None:
        """Lock the folder and open the log. Raises CannotOpenLog."""
        for wrong in self._file.open(self._version, self._server):
            _log.error("audit_log_damaged", problem=wrong)
        self._loop = asyncio.get_running_loop()
        self._idle = asyncio.Event()
        self._idle.set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="audit")

    def known_keys(self) -> KnownKeys:
        """Return the log's record of API keys. Call this before adding entries.

        Raises CannotOpenLog.
        """
        try:
            return read_known_keys(self._folder, self._file.head.sequence, self._key)
        except OSError as error:
            raise CannotOpenLog(f"cannot read the API keys recorded in the audit log: {error}") from error

    async def is_sound(self) -> bool:
        """Return whether the log accepts entries; False: not before a restart, and writes are rejected."""
        sound = await self._loop.run_in_executor(self._thread, self._file.is_sound)
        self.failing = self.failing or not sound
        return sound

    @property
    def tight(self) -> bool:
        """Whether the disk is so full that rejected calls are not recorded."""
        return self._room is not None and self._room.tight

    @property
    def full(self) -> bool:
        """Whether so many entries wait that no more writes may be admitted."""
        return len(self._waiting) >= QUEUED_ENTRIES_MAX

    def append(self, entry: Entry) -> None:
        """Add the outcome of a call, even if many entries wait; `full` bounds their number."""
        self._enqueue(entry, None)

    def append_spared(self, entry: Entry) -> None:
        """Add an entry of a call without effect, a rejected one or a read, if there is room.

        On a nearly full disk it is only counted, and the count is recorded with the next entry of another
        kind. Otherwise rejected clients could use up the space that deletions need.
        """
        if self.tight:
            self._missed += 1
            return
        second = int(time.monotonic())
        since, count = self._refusals
        self._refusals = (second, count + 1 if second == since else 1)
        refused = entry.decision != "allowed"
        if len(self._waiting) >= SPARED_ENTRIES_MAX or (
            refused and self._refusals[1] > REFUSALS_PER_SECOND_MAX
        ):
            self._missed += 1
            self._sync_later()  # Records the count at the latest then.
        else:
            self._enqueue(entry, None)

    async def write_ahead(self, entry: Entry) -> None:
        """Add an entry, and return when it is on disk. Raises StorageFull and Unavailable."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._enqueue(entry, done)
        await done

    def _enqueue(self, entry: Entry, done: asyncio.Future[None] | None) -> None:
        self._waiting.append((entry, done))
        if not self.failing or done is not None:
            self._start()

    def _start(self) -> None:
        if not self._running:
            self._running = True
            self._idle.clear()
            # After the other callbacks of this turn of the loop, which may add entries.
            self._loop.call_soon(self._next_group)

    def _next_group(self) -> None:
        # A count alone waits for another entry: on a full disk each group could otherwise add an entry.
        if not self._waiting and not self._sync_wanted:
            self._stop()
            return
        group = [self._waiting.popleft() for _ in range(min(len(self._waiting), _GROUP_ENTRIES_MAX))]
        if self._missed:
            group.append((Entry(event="missed", time_us=now_us(), count=self._missed), None))
            self._missed = 0
        sync = self._sync_wanted or any(done is not None for _, done in group)
        sync = sync or time.monotonic() > self._file.synced_at_s + _SYNC_AFTER_S
        self._sync_wanted = False
        writing = self._write(group, sync)
        writing.add_done_callback(lambda ended: self._ended(group, sync, ended.exception()))

    def _write(self, group: list[_Waiting], sync: bool) -> asyncio.Future[None]:
        entries = [entry for entry, _ in group]
        return self._loop.run_in_executor(self._thread, lambda: self._file.write(entries, sync=sync))

    def _ended(self, group: list[_Waiting], sync: bool, error: BaseException | None) -> None:
        waited_for = any(done is not None for _, done in group)
        if self._room is not None and waited_for and isinstance(error, StorageFull):
            self._making_room = self._loop.create_task(self._write_again(group, sync, self._room))
        else:
            self._written(group, sync, error)

    async def _write_again(self, group: list[_Waiting], sync: bool, room: Room) -> None:
        """Write a group that found the disk full, using the reserved space."""
        error: BaseException | None = None
        try:
            await room.make_room(self._folder)
            await self._write(group, sync)
        except Exception as raised:
            error = raised
        self._written(group, sync, error)

    def _written(self, group: list[_Waiting], sync: bool, error: BaseException | None) -> None:
        for _, done in group:
            if done is not None and not done.done():
                if error is None:
                    done.set_result(None)
                else:
                    done.set_exception(
                        error if isinstance(error, MemoryServiceError) else Unavailable.storage()
                    )
        if error is None:
            self.failing = False
            if not sync:
                self._sync_later()
            self._next_group()
            return
        if not self.failing:
            _log.error("audit_log_failed", reason=getattr(error, "reason", type(error).__name__))
        self.failing = True
        # Entries that were not written ahead describe finished calls and wait. The other calls were rejected.
        self._waiting.extendleft(reversed([each for each in group if each[1] is None]))
        if any(done is not None for _, done in self._waiting):
            self._next_group()
        else:
            self._stop()

    def _stop(self) -> None:
        self._running = False
        self._idle.set()

    def _sync_later(self) -> None:
        if self._sync_timer is None:
            self._sync_timer = self._loop.call_later(_SYNC_AFTER_S, self._sync)

    def _sync(self) -> None:
        self._sync_timer = None
        self._sync_wanted = True
        if not self.failing:
            self._start()

    async def close(self) -> None:
        """Write the waiting entries and close the log."""
        if self._sync_timer is not None:
            self._sync_timer.cancel()
        try:
            await self.write_ahead(Entry(event="closed", time_us=now_us()))
            await self._idle.wait()
        except MemoryServiceError as error:
            _log.error("audit_log_incomplete", reason=error.reason, waiting=len(self._waiting))
        self._thread.shutdown()
        self._file.close()
