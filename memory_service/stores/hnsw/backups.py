"""Backups: consistent copies of the records, each of them a data directory of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from memory_service.failpoints import reach
from memory_service.stores.base import BackupReport
from memory_service.stores.hnsw.snapshots import checksum
from memory_service.stores.sqlite import Connection, connect, copy_database


def remove_partial_backups(folder: Path) -> None:
    """Remove what a crash left of backups that were being written; nobody may write one meanwhile."""
    for partial_folder in folder.glob(".*.partial"):
        shutil.rmtree(partial_folder, ignore_errors=True)


def write_backup(folder: Path, progress: Callable[[int, int], None], db: Connection) -> BackupReport:
    """Copy the records to a folder that is itself a data directory. Appears whole or not at all."""
    partial_folder = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial_folder, ignore_errors=True)
    partial_folder.mkdir(parents=True)
    target = partial_folder / "records.db"
    reach("backup.before_copy")
    copy_database(db, target, progress)
    reach("backup.after_copy")
    counts = "SELECT count(*), coalesce(sum(item_count), 0) FROM namespaces"
    copied = connect(target)
    try:
        namespaces, items = copied.execute(counts).fetchone()
    finally:
        copied.close()
    report = BackupReport(
        folder.name, target.stat().st_size, f"xxh3_128:{checksum(target)}", namespaces, items
    )
    (partial_folder / "manifest.json").write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    for path in (target, partial_folder / "manifest.json", partial_folder):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    reach("backup.before_rename")
    partial_folder.rename(folder)
    reach("backup.after_rename")
    return report
