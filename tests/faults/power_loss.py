"""What a disk may hold after a loss of power, computed from a record of its writes and syncs.

A sync makes all earlier writes to the same file durable; names become durable when their folder is synced.
Any part of the rest may be on the disk: each write entirely, in some of its sectors, or not at all, in any
order.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_SECTOR_BYTES = 512
_HEAD = struct.Struct("<IIQQQ")
_CREATE, _WRITE, _TRUNCATE, _SYNC, _SYNC_FAILED, _UNLINK, _RENAME, _MKDIR = range(1, 9)


@dataclass(frozen=True, slots=True)
class Record:
    """One call, as it was recorded."""

    kind: int
    inode: int
    path: str
    offset: int
    data: bytes


def read_trace(path: Path) -> list[Record]:
    """Return what a process recorded."""
    content, at, records = path.read_bytes(), 0, []
    while at < len(content):
        kind, path_bytes, inode, offset, data_bytes = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        name = content[at : at + path_bytes].decode()
        at += path_bytes
        records.append(Record(kind, inode, name, offset, content[at : at + data_bytes]))
        at += data_bytes
    return records


# The fate of a write: returns the pieces of its bytes that are on the disk.
Fate = Callable[[Record], list[tuple[int, bytes]]]


def whole(record: Record) -> list[tuple[int, bytes]]:
    """Keep all of a synced write."""
    return [(record.offset, record.data)]


def fate(name: str, chance: random.Random) -> Fate:
    """Return the fate of unsynced writes by name: "dropped", "kept", "mixed" or "torn"."""

    def torn(record: Record) -> list[tuple[int, bytes]]:
        """Decide for each sector alone."""
        pieces, start, end = [], record.offset, record.offset + len(record.data)
        while start < end:
            stop = min(start - start % _SECTOR_BYTES + _SECTOR_BYTES, end)
            if chance.random() < 0.5:
                pieces.append((start, record.data[start - record.offset : stop - record.offset]))
            start = stop
        return pieces

    def mixed(record: Record) -> list[tuple[int, bytes]]:
        return chance.choice([whole, torn, lambda _: []])(record)

    return {"dropped": lambda _: [], "kept": whole, "mixed": mixed, "torn": torn}[name]


FATES = ("dropped", "kept", "mixed", "torn")


@dataclass
class _File:
    durable: bytearray = field(default_factory=bytearray)
    unsynced: list[Record] = field(default_factory=list)

    def settle(self, became: Fate) -> None:
        """Apply the fate of unsynced writes."""
        for record in self.unsynced:
            _apply(self.durable, record, became(record))
        self.unsynced.clear()


def _apply(content: bytearray, record: Record, pieces: list[tuple[int, bytes]]) -> None:
    if record.kind == _TRUNCATE:
        if pieces:
            del content[record.offset :]
            content.extend(bytes(record.offset - len(content)))
        return
    for start, data in pieces:
        content.extend(bytes(max(0, start - len(content))))
        content[start : start + len(data)] = data


class LostPower:
    """The disk below a folder that loses power after these records; `became` is the name of a fate."""

    def __init__(self, records: Sequence[Record], folder: Path, became: str, chance: random.Random) -> None:
        self._root = str(folder)
        self._became = fate(became, chance)
        self._odds = {"dropped": 0.0, "kept": 1.0}.get(became, 0.5)
        self._chance = chance
        self._files: dict[int, _File] = {}
        self._created: dict[int, _File] = {}
        self._folders: dict[int, str] = {}
        self._names: list[Record] = []
        self._unsynced_names: list[Record] = []
        for record in records:
            self._take(record)

    def _take(self, record: Record) -> None:
        file = self._files.get(record.inode)
        if record.kind in (_CREATE, _MKDIR, _UNLINK, _RENAME):
            self._unsynced_names.append(record)
            self._take_name(record)
        elif record.kind in (_WRITE, _TRUNCATE):
            if file is not None:
                file.unsynced.append(record)
        elif file is None:
            if record.kind == _SYNC:
                # Only the folder above the first one existed before, and its number is unknown.
                self._sync_folder(self._folders.get(record.inode, self._root.rpartition("/")[0]))
        elif record.kind == _SYNC:
            file.settle(whole)
        else:
            # No later sync covers it: after a failed one the pages count as clean.
            file.settle(self._became)

    def _take_name(self, record: Record) -> None:
        if record.kind == _CREATE:
            # The number may have belonged to a file or folder that is gone.
            self._files[record.inode] = self._created[id(record)] = _File()
        elif record.kind == _MKDIR:
            self._folders[record.inode] = record.path
            # Also here: later syncs of this number sync the folder.
            self._files.pop(record.inode, None)
        elif record.kind == _RENAME:
            source, target = record.path.split("\0")
            self._folders = {n: target if path == source else path for n, path in self._folders.items()}

    def _sync_folder(self, folder: str) -> None:
        synced = [r for r in self._unsynced_names if _parent(r) == folder]
        self._names += synced
        self._unsynced_names = [r for r in self._unsynced_names if _parent(r) != folder]

    def write_image(self, into: Path) -> None:
        """Write the possible contents of the lost disk to a folder. Call it only once."""
        names: dict[str, _File | None] = {}
        kept = [r for r in self._unsynced_names if self._chance.random() < self._odds]
        for record in (*self._names, *kept):
            self._apply_name(names, record)
        into.mkdir(parents=True, exist_ok=True)
        for path, file in names.items():
            if not path.startswith(self._root + "/") or not _reachable(names, path, self._root):
                continue
            target = into / path[len(self._root) + 1 :]
            (target if file is None else target.parent).mkdir(parents=True, exist_ok=True)
            if file is not None:
                file.settle(self._became)
                target.write_bytes(file.durable)
                # Modes are not recorded, and none of the files to check is accessible to others.
                target.chmod(0o600)

    def _apply_name(self, names: dict[str, _File | None], record: Record) -> None:
        if record.kind == _CREATE:
            names[record.path] = self._created[id(record)]
        elif record.kind == _MKDIR:
            names[record.path] = None
        elif record.kind == _UNLINK:
            names.pop(record.path, None)
        else:
            source, target = record.path.split("\0")
            for path in [p for p in names if p == source or p.startswith(source + "/")]:
                names[target + path[len(source) :]] = names.pop(path)


def _parent(record: Record) -> str:
    return record.path.split("\0")[-1].rpartition("/")[0]


def _reachable(names: dict[str, _File | None], path: str, root: str) -> bool:
    """Return whether all folders above a path are on the disk."""
    folder = path
    while folder != root:
        folder = folder.rpartition("/")[0]
        if folder not in names:
            return False
    return True
