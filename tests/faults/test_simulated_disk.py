"""Tests of the simulated loss of power: what it must and must not treat as synced."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.power_loss import _CREATE, _MKDIR, _SYNC, _UNLINK, _WRITE, LostPower, Record

ROOT = "/disk"
ABOVE, TOP, REUSED, FILE = 1, 2, 5, 6


def _made(kind: int, inode: int, name: str) -> Record:
    return Record(kind, inode, f"{ROOT}/{name}", 0, b"")


def _synced(inode: int) -> Record:
    return Record(_SYNC, inode, "", 0, b"")


# The first folder, whose own name is durable.
TOP_MADE = [Record(_MKDIR, TOP, ROOT, 0, b""), _synced(ABOVE)]


def _image(records: list[Record], into: Path) -> dict[str, bytes]:
    """Return the contents of a disk to which no unsynced writes came."""
    LostPower(records, Path(ROOT), "dropped", random.Random(1)).write_image(into)
    return {str(path.relative_to(into)): path.read_bytes() for path in _files(into)}


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "number", [REUSED, 7], ids=["the number of a file that is gone", "a number of its own"]
)
def test_what_is_synced_in_a_new_folder_lasts(tmp_path: Path, number: int) -> None:
    records = [
        *TOP_MADE,
        _made(_CREATE, REUSED, "old"),
        _synced(REUSED),
        _made(_UNLINK, REUSED, "old"),
        _made(_MKDIR, number, "folder"),
        _made(_CREATE, FILE, "folder/new"),
        Record(_WRITE, FILE, "", 0, b"kiwi"),
        _synced(FILE),
        _synced(number),
    ]
    assert _image([*records, _synced(TOP)], tmp_path / "all synced") == {"folder/new": b"kiwi"}
    assert _image(records, tmp_path / "the folder's name unsynced") == {}


def test_a_file_with_the_number_of_a_folder_that_is_gone_is_not_that_folder(tmp_path: Path) -> None:
    records = [
        *TOP_MADE,
        _made(_MKDIR, REUSED, "folder"),
        _made(_UNLINK, REUSED, "folder"),
        _made(_CREATE, REUSED, "new"),
        Record(_WRITE, REUSED, "", 0, b"kiwi"),
        _synced(TOP),
    ]
    # Its name is durable, its contents are not.
    assert _image(records, tmp_path / "contents unsynced") == {"new": b""}
    assert _image([*records, _synced(REUSED)], tmp_path / "contents synced") == {"new": b"kiwi"}
