"""Writing the audit log from one thread at a time: hash chain, rotation, repair of the end, head."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Sequence
from pathlib import Path

from memory_service.audit.entries import SEALED_FOR, Entry, line_of
from memory_service.audit.files import (
    FIRST,
    HEAD,
    Head,
    file_name,
    files_of,
    has_entry,
    is_begun_behind,
    last_entry,
    read_head,
    written_head,
)
from memory_service.data_key import DataKey
from memory_service.errors import MemoryServiceError, StorageFull, Unavailable
from memory_service.runtime.clock import now_us
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.files import InPlace, make_folder, sync, write_whole
from memory_service.sealing import Seal

_log = EventLog(__name__)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class CannotOpenLog(RuntimeError):
    """The audit log cannot be written in its folder."""


class LogFile:
    """The end of the chain. A method that raises has added nothing and can be retried, unless `broken`."""

    def __init__(self, folder: Path, file_bytes_max: int, key: DataKey | None = None) -> None:
        self._folder = folder
        self._key = key
        self._seal = self._new_seal()
        self._file_bytes_max = file_bytes_max
        self._file = -1
        self._size_bytes = 0
        self._unsynced = False
        self.synced_at_s = time.monotonic()
        self.broken = False
        """The content on disk is unknown: an fsync failed, half a line remains, or a file is gone."""

    def open(self, version: str, server: str) -> list[str]:
        """Lock the log, continue its chain, and return the problems found. Raises CannotOpenLog.

        The server and its version are recorded.
        """
        try:
            return self._open(version, server)
        except OSError as error:
            raise CannotOpenLog(f"cannot open the audit log: {error}") from error
        except MemoryServiceError as error:
            raise CannotOpenLog(f"cannot write the audit log: {error.message}") from error

    def _new_seal(self) -> Seal | None:
        return None if self._key is None else Seal(self._key, SEALED_FOR)

    def _open(self, version: str, server: str) -> list[str]:
        make_folder(self._folder)
        files = files_of(self._folder)
        if not files and not (self._folder / HEAD).exists():
            # Written atomically, because an empty head shows that something is missing.
            write_whole(self._folder / HEAD, written_head(FIRST))
        head = read_head(self._folder)
        self._head_file = os.open(self._folder / HEAD, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._head_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CannotOpenLog(f"another server uses {self._folder}") from error
        self._in_place = InPlace(*([files[-1][1]] if files else []), self._folder / HEAD)
        events, wrong = self._go_on(files, head)
        events.append(Entry(event="opened", time_us=now_us(), version=version, server=server))
        self.write(events, sync=True)
        return wrong

    def _go_on(self, files: list[tuple[int, Path]], head: Head | None) -> tuple[list[Entry], list[str]]:
        """Find the end of the chain. Missing entries stay visible in the log forever."""
        last, torn_bytes = last_entry(files, head)
        events: list[Entry] = []
        wrong: list[str] = []
        if torn_bytes:
            path = files[-1][1]
            os.truncate(path, path.stat().st_size - torn_bytes)
            events.append(Entry(event="healed", time_us=now_us(), count=torn_bytes))
            wrong.append(f"an unfinished end of {torn_bytes} bytes was cut off")
        if head is None:
            events.append(Entry(event="head_missing", time_us=now_us()))
            wrong.append("its head is missing")
        elif is_begun_behind(files, head):
            last = head
        elif head.sequence > (last or FIRST).sequence:
            wrong.append(f"it ends before entry {head.sequence}, which was on disk")
            last = head
        elif head != FIRST and not has_entry(files, head):
            wrong.append(f"entry {head.sequence} is not the one that was on disk")
            last = Head((last or head).sequence, head.hash)
        self._head = last or head or FIRST
        if files:
            self._file = os.open(files[-1][1], os.O_WRONLY | os.O_APPEND)
            self._size_bytes = os.fstat(self._file).st_size
            # The truncation, and the writes of a killed server, must be on disk before any other file.
            os.fsync(self._file)
            sync(self._folder)
        return events, wrong

    @property
    def head(self) -> Head:
        """The last entry."""
        return self._head

    def write(self, entries: Sequence[Entry], *, sync: bool) -> None:
        """Add entries; with `sync` all entries are then on disk. Raises StorageFull and Unavailable."""
        if self.broken:
            raise Unavailable.storage()
        head, lines = self._head, []
        for entry in entries:
            line, digest = line_of(entry, head.sequence + 1, head.hash, self._seal)
            head = Head(head.sequence + 1, digest)
            lines.append(line)
        try:
            if lines:
                self._append(b"".join(lines))
                self._head = head
                self._unsynced = True
            if sync:
                self.sync()
                if not self.is_sound():
                    raise Unavailable.storage()
        except OSError as error:
            if error.errno in _FULL and not self.broken:
                raise StorageFull from error
            raise Unavailable.storage() from error

    def is_sound(self) -> bool:
        """Return whether the log can be written; False for good once a file is out of place."""
        if not self.broken and (lost := self._in_place.lost()):
            self.broken = True
            _log.error("audit_log_lost", file=lost, effect="writes are rejected until a restart")
        return not self.broken

    def _append(self, data: bytes) -> None:
        if self._file < 0 or self._size_bytes + len(data) > self._file_bytes_max:
            self._rotate()
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError:
            try:
                os.ftruncate(self._file, self._size_bytes)
            except OSError:
                self.broken = True
            raise
        self._size_bytes += len(data)

    def _rotate(self) -> None:
        if self._file >= 0:
            if not self._size_bytes:
                return  # It is empty, and named after the next entry.
            self.sync()
        path = self._folder / file_name(self._head.sequence + 1)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if self._file >= 0:
            os.close(self._file)
        self._file, self._size_bytes = file, os.fstat(file).st_size
        self._seal = self._new_seal()
        self._in_place = InPlace(path, self._folder / HEAD)
        sync(self._folder)

    def sync(self) -> None:
        """Make all entries durable, then the head, which never names an entry that is not on disk."""
        if self._unsynced:
            try:
                os.fsync(self._file)
                self._write_head(self._head)
            except OSError:
                # A later fsync that succeeds would prove nothing about this one.
                self.broken = True
                raise
            self._unsynced = False
        self.synced_at_s = time.monotonic()

    def _write_head(self, head: Head) -> None:
        os.pwrite(self._head_file, written_head(head), 0)

    def close(self) -> None:
        """Close the files."""
        if self._file >= 0:
            os.close(self._file)
        os.fsync(self._head_file)
        os.close(self._head_file)
