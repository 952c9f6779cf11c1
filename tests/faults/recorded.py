"""Processes that run on a recorded disk, and its possible contents after a loss of power at some time."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from functools import cached_property
from pathlib import Path

from faults.disk import Disk
from faults.power_loss import FATES, LostPower, Record, read_trace


class RecordedDisk:
    """Records everything written to the folder `data_dir`, which must not exist yet."""

    def __init__(self, folder: Path) -> None:
        self.data_dir = folder / "disk" / "data"
        self.data_dir.parent.mkdir(parents=True)
        self._trace = folder / "trace"
        self.disk = Disk(self.data_dir.parent, folder / "control", trace=self._trace)

    def run(self, module: str, *arguments: object) -> None:
        """Run a module on the disk."""
        ended = subprocess.run(
            [sys.executable, "-m", module, *map(str, arguments)],
            cwd=Path(__file__).parents[1],
            env={**os.environ, **self.disk.env},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr

    @cached_property
    def records(self) -> list[Record]:
        """The whole record of the disk; use it only at the end."""
        return read_trace(self._trace)

    def lose_power(self, into: Path, chance: random.Random, cut: int | None = None) -> int:
        """Write possible contents of the disk after losing power after that many records; return how many.

        None: at any time.
        """
        shutil.rmtree(into, ignore_errors=True)
        cut = chance.randint(0, len(self.records)) if cut is None else cut
        LostPower(self.records[:cut], self.data_dir, chance.choice(FATES), chance).write_image(into)
        return cut
