"""Disk space: a limit below which the records do not grow, and a ballast for a full disk.

On a full disk nothing can be deleted either, since deleting a row takes space in the write-ahead log. So a
file, the ballast, reserves some space. It is released when a write finds the disk full: writes that shrink
the records continue in its space, and writes that enlarge them are rejected until there is space again.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
from dataclasses import dataclass
from pathlib import Path

from memory_service.errors import StorageFull
from memory_service.records.sqlite.connection import Connection, free_page_bytes
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.log_causes import cause_of

_SLACK_BYTES = 4 << 20
_LOG_BYTES_MIN = 1 << 20
_log = EventLog(__name__)


@dataclass(frozen=True)
class SpaceSettings:
    """How much of the disk to leave free."""

    free_bytes_min: int = 0
    """Below this, only writes that shrink the records are accepted."""
    ballast_bytes: int = 0
    """Space reserved for them; 0 for none."""


class DiskSpace:
    """The free space of a data folder. Only one group of writes at a time may call it, except `tight` and
    `demand`.
    """

    def __init__(self, folder: Path, settings: SpaceSettings) -> None:
        self._folder = folder
        self._free_bytes_min = settings.free_bytes_min
        self._ballast_bytes = settings.ballast_bytes
        self._ballast = folder / "ballast"
        self._held = False
        self.tight = False
        """Whether only writes that shrink the records are accepted."""

    def open(self) -> None:
        """Check the ballast of an earlier run; release what is needed to open the records."""
        with contextlib.suppress(OSError):
            size = self._ballast.stat().st_size
            self._held = 0 < size == self._ballast_bytes
            if not self._held or self._free_bytes() < _SLACK_BYTES:
                self.release()

    def look(self, connection: Connection) -> None:
        """Measure the free space, create the ballast if there is enough, and set `tight`."""
        if not (self._free_bytes_min or self._ballast_bytes):
            return
        free = self._free_bytes()
        if self._ballast_bytes and not self._held and free >= self._ballast_bytes + self._slack_bytes:
            self._make_ballast()
            free = self._free_bytes()
        self._set_tight(self._lacking(free, connection), free)

    @property
    def _slack_bytes(self) -> int:
        return min(_SLACK_BYTES, self._ballast_bytes // 4)

    def _lacking(self, free: int, connection: Connection) -> bool:
        if self._ballast_bytes and not self._held:
            return True
        if free >= self._free_bytes_min:
            return False
        # Pages freed by deletions are space for the records, but not for the log.
        return free < self._free_bytes_min // 4 or free + free_page_bytes(connection) < self._free_bytes_min

    def _set_tight(self, tight: bool, free: int) -> None:
        if tight and not self.tight:
            _log.error("disk_space_low", free_bytes=free, ballast=self._held)
        elif self.tight and not tight:
            _log.info("disk_space_back", free_bytes=free)
        self.tight = tight

    @property
    def log_bytes_max(self) -> float:
        """The maximum length of the log: the space of the ballast must suffice to move the log into the
        database, or a full disk would keep both.
        """
        return max(_LOG_BYTES_MIN, self._ballast_bytes // 2) if self._ballast_bytes else math.inf

    def release(self) -> bool:
        """Release the ballast because the disk is full; return whether there was one."""
        with contextlib.suppress(OSError):
            self._ballast.unlink()
        held, self._held = self._held, False
        if held:
            _log.warning("disk_ballast_released", ballast_bytes=self._ballast_bytes)
            self._set_tight(True, self._free_bytes())
        return held

    def is_of(self, folder: Path) -> bool:
        """Return whether a folder is on this disk."""
        with contextlib.suppress(OSError):
            return folder.stat().st_dev == self._folder.stat().st_dev
        return False

    def demand(self, nbytes: int) -> None:
        """Check for space for files beside the records. Raises StorageFull."""
        if self.tight or (self._free_bytes_min and self._free_bytes() - nbytes < self._free_bytes_min):
            raise StorageFull

    def _free_bytes(self) -> int:
        found = os.statvfs(self._folder)
        return found.f_bavail * found.f_frsize

    def _make_ballast(self) -> None:
        try:
            descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._ballast_bytes)
            finally:
                os.close(descriptor)
            self._held = True
        except OSError as error:
            self._ballast.unlink(missing_ok=True)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                # The file system cannot reserve space: a full disk then also stops deletions.
                _log.error("disk_ballast_impossible", cause=cause_of(error))
                self._ballast_bytes = 0
