"""Ensures that one server at a time uses a data folder."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memory_service.records.base import CannotOpen

# File systems that cannot lock folders, such as NFS, where a locked file must be open for writing.
_LOCKS_NO_FOLDERS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Lock the data folder for this process. Raises CannotOpen while another process holds it.

    The folder itself is locked: that lock cannot be deleted and follows the folder when it is renamed. The
    LOCK file inside is for file systems that cannot lock folders, and for earlier releases.
    """
    with ExitStack() as held:
        _lock(held, folder, folder, os.O_RDONLY | os.O_DIRECTORY, _LOCKS_NO_FOLDERS)
        _lock(held, folder, folder / "LOCK", os.O_RDWR | os.O_CREAT)
        yield


def _lock(held: ExitStack, folder: Path, path: Path, flags: int, forgiven: tuple[int, ...] = ()) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    held.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise CannotOpen(f"another server is using {folder}") from error
    except OSError as error:
        if error.errno not in forgiven:
            raise
