"""Loss of power: what was acknowledged is on the disk, whatever became of all that was not synced."""

from __future__ import annotations

import asyncio
from functools import cached_property
from pathlib import Path

import msgspec
import pytest

from contract.cases import ENCRYPTED
from faults.recorded import RecordedDisk
from faults.recovery import look_at, losses
from faults.scale import drawn, rounds
from faults.store_workload import CASE, Operation

IMAGES = rounds(40, 1000)
CONTROLS = rounds(10, 200)
WORKLOADS = rounds(1, 4)


class Worked(RecordedDisk):
    """A disk on which a store was worked."""

    def __init__(self, folder: Path, number: int, case: str, *rest: str) -> None:
        super().__init__(folder)
        self._case = case
        report = folder / "report.json"
        self.run("faults.store_workload", self.data_dir, report, number, case, *rest)
        self.operations = msgspec.json.decode(report.read_bytes(), type=list[Operation])

    @cached_property
    def saving(self) -> list[int]:
        """When snapshots were being written."""
        # A number may have been that of another file: one that is not of a snapshot does no harm here.
        files = {record.inode for record in self.records if "/indexes/" in record.path} - {0}
        return [at for at, record in enumerate(self.records) if record.inode in files]

    def wrong(self, image: Path, cut: int) -> list[str]:
        """Open what is on a disk, look at all of it and return what was lost or damaged."""
        found, known, damaged = asyncio.run(look_at(image, self.operations, self._case))
        return losses(self.operations, cut, found, known) + damaged


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", [CASE, ENCRYPTED.name])
def test_a_loss_of_power_loses_nothing_that_was_acknowledged(tmp_path: Path, case: str) -> None:
    chance = drawn(f"power {case}")
    acknowledged = with_snapshots = 0
    for number in range(WORKLOADS):
        worked = Worked(tmp_path / str(number), chance.randrange(1 << 32), case)
        for at in range(IMAGES // WORKLOADS):
            # Every second one while a snapshot is saved.
            cuts = worked.saving if at % 2 else range(len(worked.records) + 1)
            cut = worked.lose_power(tmp_path / "image", chance, chance.choice(cuts))
            with_snapshots += any((tmp_path / "image" / "indexes").glob("*.graph"))
            assert worked.wrong(tmp_path / "image", cut) == [], f"image {at}, cut after {cut}"
            acknowledged += sum(operation.done(cut) for operation in worked.operations)
    print(f"{IMAGES} losses of power, {acknowledged} acknowledged writes looked for, none lost;")
    print(f"{with_snapshots} times there were snapshots")
    assert acknowledged > IMAGES and with_snapshots  # or the test says nothing


@pytest.mark.parametrize("case", [CASE, ENCRYPTED.name])
def test_a_loss_of_power_at_the_first_start_leaves_a_folder_that_opens(tmp_path: Path, case: str) -> None:
    """Of a database whose first page came to the disk in part nothing was acknowledged."""
    chance = drawn(f"first start {case}")
    worked = Worked(tmp_path / "new", chance.randrange(1 << 32), case)
    first = min(operation.begun for operation in worked.operations)
    for at in range(rounds(6, 600)):
        cut = worked.lose_power(tmp_path / "image", chance, chance.randint(0, first))
        assert worked.wrong(tmp_path / "image", cut) == [], f"image {at}, cut after {cut}"


@pytest.mark.parametrize("case", [CASE, ENCRYPTED.name])
def test_without_a_sync_at_each_commit_the_same_test_finds_losses(tmp_path: Path, case: str) -> None:
    """The control: a test that finds nothing has to be one that would."""
    chance = drawn(f"control {case}")
    worked = Worked(tmp_path / "normal", chance.randrange(1 << 32), case, "--normal")
    lost = []
    for _ in range(CONTROLS):
        cut = worked.lose_power(tmp_path / "image", chance)
        lost.append(len(worked.wrong(tmp_path / "image", cut)))
    print(f"{CONTROLS} losses of power: {sum(map(bool, lost))} with losses, {sum(lost)} subjects lost")
    assert any(lost)
