"""One server at a time works on a data folder."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

from memory_service.stores.base import CannotOpen


def lock_folder(path: Path) -> IO[str]:
    """Take the data directory for this process; the lock ends with it. Raises CannotOpen."""
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise CannotOpen(f"another server is working on {path.parent}") from error
    return file
