"""One server at a time works on a data folder."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memory_service.records.base import CannotOpen

# File systems that lock no folders, such as NFS, which wants what is locked open for writing.
_LOCKS_NO_FOLDERS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Keep the data directory for this process. Raises CannotOpen while another has it.

    The folder itself is locked: such a lock cannot be removed, and goes along where the folder is renamed.
    The file LOCK in it is for file systems that lock no folders, and for earlier releases.
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
        raise CannotOpen(f"another server is working on {folder}") from error
    except OSError as error:
        if error.errno not in forgiven:
            raise
