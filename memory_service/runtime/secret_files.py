"""Files that hold a secret: one that others could read or change is not taken."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_ROOT = 0


class OpenToOthers(ValueError):
    """Others could read or change a file with a secret; tells its mode and what helps."""


def read_secret(path: Path, bytes_max: int = -1) -> bytes:
    """Return what is in a file, of a large one no more than so many bytes. Raises OpenToOthers and OSError.

    It is for its owner alone. Of what root owns a group may read: so secrets are mounted into containers,
    where the group is the one that was given to them for that. Pipes and devices have no mode that counts.
    """
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        mode = stat.S_IMODE(found.st_mode)
        private = stat.S_IRWXU | (stat.S_IRGRP if found.st_uid == _ROOT else 0)
        if stat.S_ISREG(found.st_mode) and mode & ~private & 0o777:
            raise OpenToOthers(
                f"{path} has mode {mode:04o}, by which others than its owner could read or change it:"
                f" chmod 600 {path}, or, of a secret that is mounted, give it mode 0400"
            )
        return file.read(bytes_max)
