"""The audit log of a running server: entries from the event loop, written in groups by one thread."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import structlog

from memory_service.audit.entries import Entry
from memory_service.audit.known_keys import KnownKeys, read_known_keys
from memory_service.audit.log_file import CannotOpenLog, LogFile
from memory_service.data_key import DataKey
from memory_service.errors import MemoryServiceError, StorageFull, Unavailable
from memory_service.runtime.clock import now_us

FILE_BYTES_MAX = 16 * 1024 * 1024
"""About where a file ends and the next begins."""
QUEUED_ENTRIES_MAX = 10_000
"""Entries that wait for the disk, above which writes are refused."""
SPARED_ENTRIES_MAX = QUEUED_ENTRIES_MAX // 2
"""Entries that wait for the disk, above which refusals and reads are counted and not kept."""
REFUSALS_PER_SECOND_MAX = 100
"""Refused calls that are kept one by one; what is more is counted, or anybody could fill the disk."""
_GROUP_ENTRIES_MAX = 512
_SYNC_AFTER_S = 0.2

_log = structlog.get_logger(__name__)
_Waiting = tuple[Entry, asyncio.Future[None] | None]


class Room(Protocol):
    """Whoever holds some room back on the disk for when it is full."""

    @property
    def tight(self) -> bool:
        """Whether there is so little room that what is held back is all that is left, or soon will be."""

    async def make_room(self, folder: Path) -> None:
        """Give up what is held back, if it is of the disk that a folder is on."""


class AuditLog:
    """Takes entries in their order. For one event loop.

    An entry is in the file within a turn of the writing thread, which outlives the process; it is on disk
    within `_SYNC_AFTER_S`. One that is written ahead is on disk when `write_ahead` returns. With a `key`
    entries are sealed.
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
        """`version` and `server` are noted of who opens it."""
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
        """Whether the disk refused the last entries. They wait, and are tried again with the next."""

    def open(self) -> None:
        """Take the folder, and begin. Raises CannotOpenLog."""
        for wrong in self._file.open(self._version, self._server):
            _log.error("audit_log_damaged", problem=wrong)
        self._loop = asyncio.get_running_loop()
        self._idle = asyncio.Event()
        self._idle.set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="audit")

    def known_keys(self) -> KnownKeys:
        """Return what the log tells of API keys. To be asked for before anything is added.

        Raises CannotOpenLog.
        """
        try:
            return read_known_keys(self._folder, self._file.head.sequence, self._key)
        except OSError as error:
            raise CannotOpenLog(f"cannot tell what the audit log knows of keys: {error}") from error

    async def is_sound(self) -> bool:
        """Whether it can be written; False: no more until a restart, and so nothing is changed."""
        sound = await self._loop.run_in_executor(self._thread, self._file.is_sound)
        self.failing = self.failing or not sound
        return sound

    @property
    def tight(self) -> bool:
        """Whether the disk is so full that its room is for entries of what is done, and of no refusals."""
        return self._room is not None and self._room.tight

    @property
    def full(self) -> bool:
        """Whether so many entries wait for the disk that no more writes may be let in."""
        return len(self._waiting) >= QUEUED_ENTRIES_MAX

    def append(self, entry: Entry) -> None:
        """Add what a call did. It is kept even if much waits: how much, `full` bounds."""
        self._enqueue(entry, None)

    def append_spared(self, entry: Entry) -> None:
        """Add what did nothing, a refusal or a read, if there is room for it.

        On a disk that is nearly full it is counted, and told with the next entry of another kind: or who is
        refused again and again would use up the room that deletions need.
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
            self._sync_later()  # At the latest then it is told how many there were.
        else:
            self._enqueue(entry, None)

    async def write_ahead(self, entry: Entry) -> None:
        """Add an entry, and return once it is on disk. Raises StorageFull and Unavailable."""
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
            # After the other callbacks of this turn of the loop, which may bring more.
            self._loop.call_soon(self._next_group)

    def _next_group(self) -> None:
        if not self._waiting and not self._sync_wanted and not self._missed:
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
        """Write what met a full disk with the room that is held back for it."""
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
        # What is not written ahead has happened: it waits. The others have been refused.
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
        """Write what waits, and let go."""
        if self._sync_timer is not None:
            self._sync_timer.cancel()
        try:
            await self.write_ahead(Entry(event="closed", time_us=now_us()))
            await self._idle.wait()
        except MemoryServiceError as error:
            _log.error("audit_log_incomplete", reason=error.reason, waiting=len(self._waiting))
        self._thread.shutdown()
        self._file.close()
