"""Files that outlive a loss of power, and files that others change or take away."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

import xxhash

_READ_BYTES = 1 << 20
Stamp = tuple[int, ...] | None


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, so that they last. Raises OSError.

    They are for their owner only; one that is there keeps its mode.
    """
    if not path.is_dir():
        if not path.parent.is_dir():
            make_folder(path.parent)
        path.mkdir(0o700, exist_ok=True)
    # A file can be synced as often as one likes: it is lost with the name of its folder. Also of one that
    # is there: whoever made it may have failed to.
    with suppress(PermissionError):
        sync(path.parent)


def write_whole(path: Path, raw: bytes) -> None:
    """Write a file for its owner only, whole: who reads it meets all of the old or all of the new.

    So it is after a crash, too, and on disk when this returns. Raises OSError.
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
    """Return what differs once a file was changed; None for one that is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode


class InPlace:
    """Files that are open, and whether their paths still name them.

    What is written to a file whose name is gone, or names another one, is lost with the process.
    """

    def __init__(self, *paths: Path) -> None:
        self._known = [(str(path), _identity_of(str(path))) for path in paths]

    def lost(self) -> str:
        """Return the name of a file that is not in its place any more; "": all are."""
        for path, known in self._known:
            if known is None or _identity_of(path) != known:
                return os.path.basename(path)
        return ""


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        # Also one that may not be looked at: somebody has put a folder of theirs in its place.
        return None
    return found.st_dev, found.st_ino


def checksum(path: Path) -> str:
    """Return the xxh3_128 of a file, in hexadecimal."""
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
