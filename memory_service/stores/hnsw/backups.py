"""Backups: consistent copies of the records, each of them a data directory of its own, with a manifest."""

from __future__ import annotations

import errno
import hashlib
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
from memory_service.failpoints import reach
from memory_service.files import make_folder, sync
from memory_service.stores.base import BackupReport, CannotOpen
from memory_service.stores.encryption import MARKER, check_key, is_encrypted, mark
from memory_service.stores.hnsw.folder_lock import lock_folder
from memory_service.stores.hnsw.schema import FORMAT
from memory_service.stores.hnsw.snapshots import checksum
from memory_service.stores.sqlite import (
    Connection,
    check_whole,
    copy_database,
    database_bytes,
    open_unchanged,
    write_anew,
)

MANIFEST = "manifest.json"
RECORDS = "records.db"
_MANIFEST_FORMAT = 1
_COUNTS = "SELECT count(*), coalesce(sum(item_count), 0), coalesce(sum(revision), 0) FROM namespaces"


class NotRestorable(Exception):
    """A folder is no backup, or is not whole, or there is no place to restore it to. Its text says which."""


class BackupFile(msgspec.Struct):
    """A file of a backup."""

    name: str
    size_bytes: int
    checksum: str


class Manifest(msgspec.Struct):
    """What a backup is and holds.

    `revision` is the sum of the revisions of all namespaces, `checksum` that of the database as `Backup`
    has answered it.
    """

    manifest_format: int
    name: str
    time: str
    server_version: str
    records_format: int
    encrypted: bool
    namespace_count: int
    item_count: int
    revision: int
    checksum: str
    files: list[BackupFile]


def remove_partial_backups(folder: Path) -> None:
    """Remove what a crash left of backups that were being written; nobody may write one meanwhile."""
    for partial_folder in folder.glob(".*.partial"):
        shutil.rmtree(partial_folder, ignore_errors=True)


def write_backup(
    folder: Path,
    progress: Callable[[int, int], None],
    key: DataKey | None,
    demand: Callable[[int], None],
    db: Connection,
) -> BackupReport:
    """Copy the records to a folder that is itself a data directory. Appears whole or not at all.

    `demand` raises StorageFull where the disk has no room for so many bytes. Raises Unavailable, too.
    """
    demand(database_bytes(db))
    try:
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
        namespaces, items, revision = copied.execute(_COUNTS).fetchone()
        records_format = copied.pragma("user_version")
    finally:
        copied.close()
    manifest = Manifest(
        _MANIFEST_FORMAT,
        name,
        datetime.now(UTC).isoformat(timespec="seconds"),
        __version__,
        records_format,
        key is not None,
        namespaces,
        items,
        revision,
        f"xxh3_128:{checksum(target)}",
        [_describe(path) for path in sorted(folder.iterdir())],
    )
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
    _sync_all(folder)
    return manifest


def verify_backup(folder: Path, key: DataKey | None) -> Manifest:
    """Check every file of a backup against its manifest, and the database in it. Raises NotRestorable.

    An encrypted backup without its key: the files are compared, the database is not opened.
    """
    manifest = _read_manifest(folder)
    _compare_files(folder, manifest)
    if manifest.encrypted != is_encrypted(folder):
        raise NotRestorable(f"{folder} is damaged: {MARKER} and {MANIFEST} do not agree")
    if key is None and manifest.encrypted:
        return manifest
    try:
        check_key(folder, folder / RECORDS, key)
    except CannotOpen as error:
        raise NotRestorable(str(error)) from error
    _check_records(folder, manifest, key)
    return manifest


def _read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    if not path.is_file():
        raise NotRestorable(f"{folder} is no backup: there is no {MANIFEST} in it")
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except msgspec.DecodeError as error:
        raise NotRestorable(f"{path} is damaged, or of an earlier release: {error}") from error
    if manifest.manifest_format > _MANIFEST_FORMAT or manifest.records_format > FORMAT:
        raise NotRestorable(f"{folder} was written by a newer release: use that release, or a newer one")
    return manifest


def _compare_files(folder: Path, manifest: Manifest) -> None:
    names = [file.name for file in manifest.files]
    if RECORDS not in names or any(Path(name).name != name for name in names):
        raise NotRestorable(f"{folder / MANIFEST} is damaged: it names no {RECORDS}")
    for file in manifest.files:
        path = folder / file.name
        if not path.is_file():
            raise NotRestorable(f"{folder} is not whole: {file.name} is missing")
        if _describe(path) != file:
            raise NotRestorable(f"{path} is damaged: it is not as {MANIFEST} says")
    # SQLite would take it for a part of the database.
    for suffix in ("-wal", "-journal"):
        leftover = folder / f"{RECORDS}{suffix}"
        if leftover.exists() and leftover.stat().st_size:
            raise NotRestorable(f"{leftover} does not belong to the backup: was a server run on it?")


def _check_records(folder: Path, manifest: Manifest, key: DataKey | None) -> None:
    try:
        db = open_unchanged(folder / RECORDS, key.derive("records") if key else None)
        try:
            found = (*db.execute(_COUNTS).fetchone(), db.pragma("user_version"))
            whole = check_whole(db)
        finally:
            db.close()
    except Unavailable as error:
        raise NotRestorable(f"{folder / RECORDS} cannot be read: {error.__cause__}") from error
    told = (manifest.namespace_count, manifest.item_count, manifest.revision, manifest.records_format)
    if whole != "ok" or found != told:
        raise NotRestorable(f"{folder / RECORDS} is damaged: {whole}, holds {found} and should {told}")


def restore_backup(folder: Path, data_dir: Path, key: DataKey | None) -> Manifest:
    """Copy a backup to a new data directory, which appears whole or not at all. Raises NotRestorable.

    The backup is verified first, and what was copied again.
    """
    manifest = verify_backup(folder, key)
    _check_vacant(data_dir)
    with _partial(data_dir) as partial_folder:
        for file in manifest.files:
            shutil.copyfile(folder / file.name, partial_folder / file.name)
        _compare_files(partial_folder, manifest)
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
    """Write the records of a data directory that no server works on to a new one, with another key or none.

    `write_others` writes what else belongs into the new one, given where that is made. The source stays as
    it is. Raises NotRestorable, CannotOpen and what `write_others` raises.
    """
    records = source / RECORDS
    if not records.exists():
        raise NotRestorable(f"{source} is no data directory: there is no {RECORDS} in it")
    _check_vacant(target)
    with lock_folder(source / "LOCK"):
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
        # Graphs' files were of the old directory; they are built again.
        if (whole := check_whole(copied)) != "ok":
            raise NotRestorable(f"what was written is not whole: {whole}")
    finally:
        copied.close()


def _check_vacant(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise NotRestorable(f"{folder} is not empty: nothing is written over what is there")


@contextmanager
def _partial(folder: Path) -> Iterator[Path]:
    """Make the folder that is renamed to `folder` when all is in it."""
    partial_folder = folder.absolute().with_name(f".{folder.absolute().name}.partial")
    shutil.rmtree(partial_folder, ignore_errors=True)
    make_folder(partial_folder.parent)
    partial_folder.mkdir(0o700)
    try:
        yield partial_folder
    finally:
        # Of a copy that failed nothing may stay: the disk may be full of it.
        shutil.rmtree(partial_folder, ignore_errors=True)


def _sync_all(folder: Path) -> None:
    for path in (*folder.iterdir(), folder):
        sync(path)


def _rename(partial_folder: Path, folder: Path) -> None:
    """Give the folder its name, for good."""
    os.rename(partial_folder, folder.absolute())
    sync(partial_folder.parent)


def _describe(path: Path) -> BackupFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return BackupFile(path.name, path.stat().st_size, f"sha256:{digest}")
