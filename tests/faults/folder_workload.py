"""A process that makes a data folder from another one on a recorded disk, and reports when it began and
ended.

Usage: python -m faults.folder_workload migrate|restore SOURCE DATA_DIR REPORT; its environment is that of a
`Disk`. A folder to migrate is on the disk before the migration begins.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec
from click.testing import CliRunner

from contract.cases import GRAPH
from faults.disk import Disk, put
from memory_service.cli import main
from memory_service.stores import SqliteStore


class Span(msgspec.Struct):
    """The first and the last moment of the work, in the disk's record."""

    begun: int
    done: int


async def migrate(data_dir: Path, disk: Disk) -> int:
    """Open a folder of an earlier format; return when that was done."""
    store = SqliteStore(data_dir, GRAPH)
    await store.open()
    done = disk["records"]
    await store.close()
    return done


def restore(backup: Path, data_dir: Path, disk: Disk) -> int:
    """Restore a backup as the command does; return when that was done."""
    told = CliRunner().invoke(main, ["restore", str(backup), "--data-dir", str(data_dir)])
    assert told.exit_code == 0, told.output
    return disk["records"]


def work(what: str, source: Path, data_dir: Path, disk: Disk) -> Span:
    """Migrate or restore."""
    if what == "restore":
        return Span(disk["records"], restore(source, data_dir, disk))
    put(source, data_dir)
    return Span(disk["records"], asyncio.run(migrate(data_dir, disk)))


if __name__ == "__main__":
    what, source, data_dir, report = sys.argv[1:]
    Path(report).write_bytes(msgspec.json.encode(work(what, Path(source), Path(data_dir), Disk.present())))
