"""Reading files with secrets; files that other users could read or change are rejected."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_ROOT = 0


class OpenToOthers(ValueError):
    """Other users could read or change a file with a secret; the message has its mode and a remedy."""


def read_secret(path: Path, bytes_max: int = -1) -> bytes:
    """Return the content of a file, at most `bytes_max` bytes. Raises OpenToOthers and OSError.

    Only the owner may have access. If root owns the file, a group may read it, because secrets are mounted
    into containers like that, with a group given to the container for this purpose. The mode of pipes and
    devices does not matter.
    """
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        mode = stat.S_IMODE(found.st_mode)
        private = stat.S_IRWXU | (stat.S_IRGRP if found.st_uid == _ROOT else 0)
        if stat.S_ISREG(found.st_mode) and mode & ~private & 0o777:
            raise OpenToOthers(
                f"{path} has mode {mode:04o}, with which other users could read or change it:"
                f" chmod 600 {path}, or mount the secret with mode 0400"
            )
        return file.read(bytes_max)
