"""Durable files, and detection of files that other processes change or remove."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

import xxhash

_READ_BYTES = 1 << 20
Stamp = tuple[int, ...] | None


def sync(path: Path) -> None:
    """Sync a file, or the entries of a folder, to disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents durably. Raises OSError.

    New folders are private to their owner; an existing one keeps its mode.
    """
    if not path.is_dir():
        if not path.parent.is_dir():
            make_folder(path.parent)
        path.mkdir(0o700, exist_ok=True)
    # A synced file is still lost if its folder's entry in the parent is not on disk. Sync it for existing
    # folders as well, because their creator may have failed to.
    with suppress(PermissionError):
        sync(path.parent)


def write_whole(path: Path, raw: bytes) -> None:
    """Write a file atomically, private to its owner: readers see the old or the new content, never a mix.

    That also holds after a crash. The file is on disk when this returns. Raises OSError.
    """
    made = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        made.replace(path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    sync(path.parent)


def stamp_of(path: Path) -> Stamp:
    """Return a value that differs after every change of a file; None if the file does not exist."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode


class InPlace:
    """Checks that the paths of open files still refer to them.

    If a path is gone or refers to another file, data written to the open file is lost with the process.
    """

    def __init__(self, *paths: Path) -> None:
        self._known = [(str(path), _identity_of(str(path))) for path in paths]

    def lost(self) -> str:
        """Return the name of a file that is no longer in its place; "" if all are."""
        for path, known in self._known:
            if known is None or _identity_of(path) != known:
                return os.path.basename(path)
        return ""


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        # Also if access is denied: another user may have put a folder in its place.
        return None
    return found.st_dev, found.st_ino


def checksum(path: Path) -> str:
    """Return the xxh3_128 checksum of a file, in hexadecimal."""
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
