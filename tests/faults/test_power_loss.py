"""Loss of power: what was acknowledged is on the disk, whatever became of all that was not synced."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from faults.disk import Disk
from faults.power_loss import FATES, LostPower, Record, read_trace
from faults.recovery import look_at, losses
from faults.scale import drawn, rounds
from faults.store_workload import Operation

IMAGES = rounds(100, 1000)
CONTROLS = rounds(20, 200)
WORKLOADS = rounds(1, 4)


class Recorded:
    """A workload that was run, and all that came to the disk meanwhile."""

    def __init__(self, folder: Path, number: int, *rest: str) -> None:
        self.data_dir = folder / "disk" / "data"
        self.data_dir.parent.mkdir(parents=True)
        disk = Disk(self.data_dir.parent, folder / "control", trace=folder / "trace")
        report = folder / "report.json"
        command = ["faults.store_workload", str(self.data_dir), str(report), str(number), *rest]
        tests = Path(__file__).parents[1]
        run([sys.executable, "-m", *command], tests, disk)
        self.operations = msgspec.json.decode(report.read_bytes(), type=list[Operation])
        self.records: list[Record] = read_trace(folder / "trace")

    def lose_power(self, into: Path, chance: random.Random, until: int | None = None) -> int:
        """Write what a disk may hold after a loss of power at any time, `until` one; return at which."""
        shutil.rmtree(into, ignore_errors=True)
        cut = chance.randrange((len(self.records) if until is None else until) + 1)
        LostPower(self.records[:cut], self.data_dir, chance.choice(FATES), chance).write_image(into)
        return cut


def run(command: list[str], folder: Path, disk: Disk) -> None:
    """Run a process on a disk."""
    ended = subprocess.run(
        command, cwd=folder, env={**os.environ, **disk.env}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def check_image(image: Path, recorded: Recorded, cut: int) -> list[str]:
    """Open what is on a disk, look at all of it and return what was lost."""
    found, known = asyncio.run(look_at(image, recorded.operations))
    return losses(recorded.operations, cut, found, known)


@pytest.mark.timeout(1800)
def test_a_loss_of_power_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    chance = drawn("power")
    acknowledged = 0
    for number in range(WORKLOADS):
        recorded = Recorded(tmp_path / str(number), chance.randrange(1 << 32))
        for at in range(IMAGES // WORKLOADS):
            cut = recorded.lose_power(tmp_path / "image", chance)
            assert check_image(tmp_path / "image", recorded, cut) == [], f"image {at}, cut after {cut}"
            acknowledged += sum(operation.done(cut) for operation in recorded.operations)
    print(f"{IMAGES} losses of power, {acknowledged} acknowledged writes looked for, none lost")
    assert acknowledged > IMAGES  # or the test says nothing


def test_a_loss_of_power_at_the_first_start_leaves_a_folder_that_opens(tmp_path: Path) -> None:
    """Of a database whose first page came to the disk in part nothing was acknowledged."""
    chance = drawn("first start")
    recorded = Recorded(tmp_path / "new", chance.randrange(1 << 32))
    first = min(operation.begun for operation in recorded.operations)
    for at in range(rounds(10, 600)):
        cut = recorded.lose_power(tmp_path / "image", chance, first)
        assert check_image(tmp_path / "image", recorded, cut) == [], f"image {at}, cut after {cut}"


def test_without_a_sync_at_each_commit_the_same_test_finds_losses(tmp_path: Path) -> None:
    """The control: a test that finds nothing has to be one that would."""
    chance = drawn("control")
    recorded = Recorded(tmp_path / "normal", chance.randrange(1 << 32), "--normal")
    lost = []
    for _ in range(CONTROLS):
        cut = recorded.lose_power(tmp_path / "image", chance)
        lost.append(len(check_image(tmp_path / "image", recorded, cut)))
    print(f"{CONTROLS} losses of power: {sum(map(bool, lost))} with losses, {sum(lost)} subjects lost")
    assert any(lost)
