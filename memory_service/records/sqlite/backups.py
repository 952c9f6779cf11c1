"""Backups: consistent copies of the records, each a complete data folder with a manifest.

`backup_checks` verifies them.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from memory_service import __version__
from memory_service.data_key import DataKey
from memory_service.errors import StorageFull, Unavailable
from memory_service.records.base import BackupReport
from memory_service.records.folder_lock import locked_folder
from memory_service.records.sqlite.backup_checks import (
    MANIFEST,
    MANIFEST_FORMAT,
    RECORDS,
    Manifest,
    NotRestorable,
    checksum_of,
    compare_files,
    describe,
    held_by,
    verify_backup,
)
from memory_service.records.sqlite.connection import (
    Connection,
    check_whole,
    copy_database,
    database_bytes,
    open_unchanged,
    write_anew,
)
from memory_service.records.sqlite.encryption import check_key, mark
from memory_service.runtime.failpoints import reach
from memory_service.runtime.files import make_folder, sync


def remove_partial_backups(folder: Path) -> None:
    """Remove unfinished backups left by a crash; no backup may be in progress."""
    for partial_folder in folder.glob(".*.partial"):
        shutil.rmtree(partial_folder, ignore_errors=True)


def write_backup(
    folder: Path,
    progress: Callable[[int, int], None],
    key: DataKey | None,
    demand: Callable[[int], None],
    db: Connection,
) -> BackupReport:
    """Copy the records to a folder that is itself a data folder and appears whole or not at all.

    `demand` raises StorageFull if the disk lacks space for this many bytes. Also raises Unavailable.
    """
    try:
        demand(database_bytes(db))
        with _partial(folder) as partial_folder:
            manifest = _write(partial_folder, folder.name, progress, key, db)
            reach("backup.before_rename")
            _rename(partial_folder, folder)
            reach("backup.after_rename")
    except OSError as error:
        raise (StorageFull if error.errno == errno.ENOSPC else Unavailable.storage)() from error
    size_bytes = next(file.size_bytes for file in manifest.files if file.name == RECORDS)
    return BackupReport(
        folder.name, size_bytes, manifest.checksum, manifest.namespace_count, manifest.item_count
    )


def _write(
    folder: Path, name: str, progress: Callable[[int, int], None], key: DataKey | None, db: Connection
) -> Manifest:
    target = folder / RECORDS
    secret = key.derive("records") if key else None
    reach("backup.before_copy")
    copy_database(db, target, progress, secret)
    reach("backup.after_copy")
    if key is not None:
        mark(folder, key)
    copied = open_unchanged(target, secret)
    try:
        held = held_by(copied)
    finally:
        copied.close()
    manifest = Manifest(
        MANIFEST_FORMAT,
        name,
        datetime.now(UTC).isoformat(timespec="seconds"),
        __version__,
        held.records_format,
        key is not None,
        held.namespace_count,
        held.item_count,
        held.revision,
        checksum_of(target),
        [describe(path) for path in sorted(folder.iterdir())],
        held.rows,
    )
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
    _sync_all(folder)
    return manifest


def restore_backup(folder: Path, data_dir: Path, key: DataKey | None) -> Manifest:
    """Copy a backup to a new data folder, which appears whole or not at all. Raises NotRestorable.

    The backup is verified first, and the copy again.
    """
    manifest = verify_backup(folder, key)
    _check_vacant(data_dir)
    with _partial(data_dir) as partial_folder:
        for file in manifest.files:
            shutil.copyfile(folder / file.name, partial_folder / file.name)
        compare_files(partial_folder, manifest)
        _sync_all(partial_folder)
        _rename(partial_folder, data_dir)
    return manifest


def rewrite_with_key(
    source: Path,
    key: DataKey | None,
    target: Path,
    new_key: DataKey | None,
    write_others: Callable[[Path], None] = lambda _: None,
) -> None:
    """Copy the records of a data folder not in use by a server to a new one, with another key or none.

    `write_others` writes the remaining files of the new directory, given the path where it is built. The
    source is unchanged. Raises NotRestorable, CannotOpen and the errors of `write_others`.
    """
    records = source / RECORDS
    if not records.exists():
        raise NotRestorable(f"{source} is not a data folder: it has no {RECORDS}")
    _check_vacant(target)
    with locked_folder(source):
        check_key(source, records, key)
        with _partial(target) as partial_folder:
            try:
                _rewrite(records, key, partial_folder / RECORDS, new_key)
            except (StorageFull, Unavailable) as error:
                raise NotRestorable(f"{records} cannot be rewritten: {error.__cause__}") from error
            if new_key is not None:
                mark(partial_folder, new_key)
            write_others(partial_folder)
            _sync_all(partial_folder)
            _rename(partial_folder, target)


def _rewrite(records: Path, key: DataKey | None, target: Path, new_key: DataKey | None) -> None:
    secret = new_key.derive("records") if new_key else None
    write_anew(records, key.derive("records") if key else None, target, secret)
    copied = open_unchanged(target, secret)
    try:
        # Graph files belong to the old directory; the graphs are rebuilt.
        if (whole := check_whole(copied)) != "ok":
            raise NotRestorable(f"the copy is damaged: {whole}")
    finally:
        copied.close()


def _check_vacant(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise NotRestorable(f"{folder} is not empty: nothing is overwritten")


@contextmanager
def _partial(folder: Path) -> Iterator[Path]:
    """Provide a temporary folder that is renamed to `folder` when complete."""
    partial_folder = folder.absolute().with_name(f".{folder.absolute().name}.partial")
    shutil.rmtree(partial_folder, ignore_errors=True)
    make_folder(partial_folder.parent)
    partial_folder.mkdir(0o700)
    try:
        yield partial_folder
    finally:
        # Leave nothing of a failed copy: it may fill the disk.
        shutil.rmtree(partial_folder, ignore_errors=True)


def _sync_all(folder: Path) -> None:
    for path in (*folder.iterdir(), folder):
        sync(path)


def _rename(partial_folder: Path, folder: Path) -> None:
    """Rename the folder durably."""
    os.rename(partial_folder, folder.absolute())
    sync(partial_folder.parent)
