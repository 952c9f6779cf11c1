"""Loss of power: acknowledged writes are on the disk, whatever happened to unsynced ones."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import msgspec
import pytest

from contract.cases import ENCRYPTED
from faults.recorded import RecordedDisk
from faults.recovery import look_at, losses
from faults.scale import drawn, rounds
from faults.store_workload import CASE, Operation, Work

IMAGES = rounds(16, 1000)
CONTROLS = rounds(1, 200)
CONTROLS_MAX = 100 + 10 * CONTROLS
"""Draws of a control until something is lost: a few on average. Doubled, a control that finds nothing fails
after twice the time; a tenth of it would make it fail by chance.
"""
WORKLOADS = rounds(1, 4)
# Starts after a loss of power, and how often it is lost again in each.
STARTS = rounds(2, 150)
CUTS_OF_A_START = rounds(6, 20)
_NEVER = 1 << 62


class Worked(RecordedDisk):
    """A disk on which a store was worked."""

    def __init__(self, folder: Path, number: int, case: str, *rest: object) -> None:
        super().__init__(folder)
        self.case = case
        report = folder / "report.json"
        self.run("faults.store_workload", self.data_dir, report, number, case, *rest)
        done = msgspec.json.decode(report.read_bytes(), type=Work)
        self.operations, self.opening, self.opened = done.operations, done.opening, done.opened

    @cached_property
    def saving(self) -> list[int]:
        """When snapshots were being written."""
        # A number may have been that of another file: one that is not of a snapshot does no harm here.
        files = {record.inode for record in self.records if "/indexes/" in record.path} - {0}
        return [at for at, record in enumerate(self.records) if record.inode in files]

    def cuts(self, at: int) -> Sequence[int]:
        """Return when to lose the power: every second time while a snapshot is saved, if one is."""
        return (self.saving if at % 2 else []) or range(len(self.records) + 1)

    def wrong(self, image: Path, cut: int) -> list[str]:
        """Open what is on a disk, look at all of it and return what was lost or damaged."""
        found, known, damaged = asyncio.run(look_at(image, self.operations, self.case))
        return losses(self.operations, cut, found, known) + damaged


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", [CASE, ENCRYPTED.name])
def test_a_loss_of_power_loses_nothing_that_was_acknowledged(tmp_path: Path, case: str) -> None:
    chance = drawn(f"power {case}")
    acknowledged = with_snapshots = 0
    for number in range(WORKLOADS):
        worked = Worked(tmp_path / str(number), chance.randrange(1 << 32), case)
        for at in range(10 * IMAGES):
            # Which disks have a snapshot is left to chance: more of them, until there is one.
            if at >= IMAGES // WORKLOADS and with_snapshots:
                break
            cut = worked.lose_power(tmp_path / "image", chance, chance.choice(worked.cuts(at)))
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
    for at in range(rounds(3, 600)):
        cut = worked.lose_power(tmp_path / "image", chance, chance.randint(0, first))
        assert worked.wrong(tmp_path / "image", cut) == [], f"image {at}, cut after {cut}"


@pytest.mark.parametrize("case", [CASE, ENCRYPTED.name])
def test_without_a_sync_at_each_commit_the_same_test_finds_losses(tmp_path: Path, case: str) -> None:
    """The control: a test that finds nothing has to be one that would."""
    chance = drawn(f"control {case}")
    worked = Worked(tmp_path / "normal", chance.randrange(1 << 32), case, "--normal")
    _assert_some_lose(worked, tmp_path, lambda: worked.lose_power(tmp_path / "image", chance))


def _assert_some_lose(worked: Worked, folder: Path, lose_power: Callable[[], int]) -> None:
    """Loses the power some times, and more often where nothing is lost at first: that depends on the hour."""
    lost: list[int] = []
    while len(lost) < CONTROLS or (len(lost) < CONTROLS_MAX and not any(lost)):
        lost.append(len(worked.wrong(folder / "image", lose_power())))
    print(f"{len(lost)} losses of power: {sum(map(bool, lost))} with losses, {sum(lost)} subjects lost")
    assert any(lost)


# --- again, during recovery ------------------------------------------------------------------------


class WorkedOn(Worked):
    """A disk on which a store was opened as a loss of power left it, and worked."""

    def __init__(self, folder: Path, image: Path, before: Worked, chance: random.Random, *rest: str) -> None:
        super().__init__(folder, chance.randrange(1 << 32), before.case, *rest, "--on", image)
        self.own = self.operations
        shutil.copytree(image, folder / "look")
        known = asyncio.run(look_at(folder / "look", before.operations, before.case)).known
        self.operations = [
            settled(one, there) for one, there in zip(before.operations, known, strict=True)
        ] + self.own

    def cuts(self, at: int) -> Sequence[int]:
        """In turn while the store opens, before the first write is acknowledged, and after it."""
        first = self.own[0].acknowledged
        assert first is not None
        begin, end = (
            (self.opening, self.opened),
            (self.opening, first + 1),
            (first, len(self.records) + 1),
        )[at % 3]
        return range(begin, end)


def settled(operation: Operation, there: bool) -> Operation:
    """Return a write as the next start finds it: from there on it lasts, or was never made."""
    if there:
        return msgspec.structs.replace(operation, begun=0, acknowledged=0)
    return msgspec.structs.replace(operation, begun=_NEVER, acknowledged=None)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", [CASE, ENCRYPTED.name])
def test_a_loss_of_power_while_one_is_recovered_loses_nothing_either(tmp_path: Path, case: str) -> None:
    chance = drawn(f"power again {case}")
    first = Worked(tmp_path / "first", chance.randrange(1 << 32), case)
    worked = first
    not_open = acknowledged = 0
    for number in range(STARTS):
        # Every second one after a start that was cut short itself.
        found = worked if number % 2 else first
        found.lose_power(left := tmp_path / "left", chance, chance.choice(found.cuts(number // 2)))
        shutil.rmtree(tmp_path / f"{number % 2}", ignore_errors=True)
        worked = again = WorkedOn(tmp_path / f"{number % 2}", left, found, chance)
        for at in range(CUTS_OF_A_START):
            cut = again.lose_power(tmp_path / "image", chance, chance.choice(again.cuts(at)))
            assert again.wrong(tmp_path / "image", cut) == [], f"start {number}, cut after {cut}"
            not_open += cut < again.opened
            acknowledged += sum(operation.done(cut) for operation in again.own)
    print(f"{STARTS * CUTS_OF_A_START} losses of power, {not_open} before the store was open;")
    print(f"{acknowledged} writes acknowledged after a recovery were looked for, none lost")
    assert not_open and acknowledged >= STARTS * (CUTS_OF_A_START // 3)  # or the test says nothing


@pytest.mark.parametrize("case", [CASE, ENCRYPTED.name])
def test_what_is_not_synced_after_a_recovery_is_lost_with_the_power(tmp_path: Path, case: str) -> None:
    """The control."""
    chance = drawn(f"control again {case}")
    first = Worked(tmp_path / "first", chance.randrange(1 << 32), case)
    first.lose_power(left := tmp_path / "left", chance)
    worked = WorkedOn(tmp_path / "second", left, first, chance, "--normal")
    _assert_some_lose(
        worked,
        tmp_path,
        lambda: worked.lose_power(tmp_path / "image", chance, chance.choice(worked.cuts(2))),
    )
