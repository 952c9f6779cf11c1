"""Checks that a backup is complete: its manifest, its files and the contents of its database.

A backup may come from anywhere. Whatever is in the folder, the result is a manifest or NotRestorable.
"""

from __future__ import annotations

import hashlib
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from memory_service.data_key import DataKey
from memory_service.errors import StorageFull, Unavailable
from memory_service.records.base import CannotOpen
from memory_service.records.sqlite.connection import Connection, check_whole, open_unchanged, translated
from memory_service.records.sqlite.encryption import MARKER, check_key, is_encrypted
from memory_service.records.sqlite.schema import FORMAT, TABLES, TRIGGERS
from memory_service.runtime.files import checksum

MANIFEST = "manifest.json"
RECORDS = "records.db"
MANIFEST_FORMAT = 1
# A manifest has about 1 KiB. Doubled: up to twice as much is read of a file that is not a manifest.
_MANIFEST_BYTES_MAX = 1 << 20
_COUNTS = "SELECT count(*), coalesce(sum(item_count), 0), coalesce(sum(revision), 0) FROM namespaces"
_SCHEMA = "SELECT type, tbl_name, sql FROM sqlite_schema"
_MISCOUNTED = """SELECT count(*) FROM namespaces AS n
    WHERE item_count IS NOT (SELECT count(*) FROM items WHERE uid = n.uid)
    OR state_count IS NOT (SELECT count(*) FROM states WHERE uid = n.uid)"""


class NotRestorable(Exception):
    """A folder is not a backup, is incomplete, or cannot be restored there. The message says which."""


class BackupFile(msgspec.Struct):
    """A file of a backup."""

    name: str
    size_bytes: int
    checksum: str


class Manifest(msgspec.Struct):
    """The description of a backup.

    `revision` is the sum of the revisions of all namespaces, `checksum` the database's as reported by
    `Backup`, `rows` the row count of each table; None if an earlier release did not count them.
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
    rows: dict[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """The contents of a backup's database, as recorded in a manifest."""

    records_format: int
    namespace_count: int
    item_count: int
    revision: int
    rows: dict[str, int]


def held_by(db: Connection) -> Held:
    """Return the contents of a database. Raises Unavailable."""
    with translated():
        namespaces, items, revision = db.execute(_COUNTS).fetchone()
        there = {table for _, table, _ in db.execute(_SCHEMA)}
        counted = [table for table in TABLES if table in there]
        rows = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in counted}
        return Held(db.pragma("user_version"), namespaces, items, revision, rows)


def describe(path: Path) -> BackupFile:
    """Return a file's entry in a manifest."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return BackupFile(path.name, path.stat().st_size, f"sha256:{digest}")


def checksum_of(records: Path) -> str:
    """Return the checksum of a database as reported by `Backup`."""
    return f"xxh3_128:{checksum(records)}"


def verify_backup(folder: Path, key: DataKey | None) -> Manifest:
    """Check every file of a backup against its manifest, and the database in it. Raises NotRestorable.

    Without the key of an encrypted backup, the files are compared but the database is not opened.
    """
    try:
        manifest = _read_manifest(folder)
        compare_files(folder, manifest)
        if manifest.encrypted != is_encrypted(folder):
            raise NotRestorable(f"{folder} is damaged: {MARKER} and {MANIFEST} do not agree")
        if manifest.checksum != checksum_of(folder / RECORDS):
            raise NotRestorable(f"{folder} is damaged: the checksum of {RECORDS} does not match {MANIFEST}")
        if key is None and manifest.encrypted:
            return manifest
        check_key(folder, folder / RECORDS, key)
        _check_records(folder / RECORDS, manifest, key)
    except (CannotOpen, OSError) as error:
        raise NotRestorable(str(error)) from error
    return manifest


def _read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    if not path.is_file():
        raise NotRestorable(f"{folder} is not a backup: it has no {MANIFEST}")
    if path.stat().st_size > _MANIFEST_BYTES_MAX:
        raise NotRestorable(f"{path} is damaged: it has more than {_MANIFEST_BYTES_MAX} bytes")
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotRestorable(f"{path} is damaged, or was written by an earlier release: {error}") from error
    if manifest.manifest_format > MANIFEST_FORMAT or manifest.records_format > FORMAT:
        raise NotRestorable(f"{folder} was written by a newer release: use that release or a newer one")
    return manifest


def compare_files(folder: Path, manifest: Manifest) -> None:
    """Check that a folder's files are those in a manifest. Raises NotRestorable and OSError."""
    names = sorted(file.name for file in manifest.files)
    # No others: a restored folder gets every file named here.
    if names != sorted([RECORDS, MARKER] if manifest.encrypted else [RECORDS]):
        raise NotRestorable(f"{folder / MANIFEST} is damaged: it does not list the files of a backup")
    for file in manifest.files:
        path = folder / file.name
        if not path.is_file():
            raise NotRestorable(f"{folder} is incomplete: {file.name} is missing")
        if describe(path) != file:
            raise NotRestorable(f"{path} is damaged: its size or checksum does not match {MANIFEST}")
    # SQLite would treat it as part of the database.
    for suffix in ("-wal", "-journal"):
        leftover = folder / f"{RECORDS}{suffix}"
        if leftover.exists() and leftover.stat().st_size:
            raise NotRestorable(f"{leftover} does not belong to the backup: was a server started on it?")


def _check_records(path: Path, manifest: Manifest, key: DataKey | None) -> None:
    try:
        with closing(open_unchanged(path, key.derive("records") if key else None)) as db, translated():
            if not all(_is_ours(*entry) for entry in db.execute(_SCHEMA)):
                raise NotRestorable(f"{path} is damaged: it has a schema of no release")
            if (whole := check_whole(db)) != "ok":
                raise NotRestorable(f"{path} is damaged: {whole}")
            _compare_held(path, manifest, held_by(db), db.execute(_MISCOUNTED).fetchone()[0])
    except (Unavailable, StorageFull, UnicodeDecodeError) as error:
        raise NotRestorable(f"{path} cannot be read: {error.__cause__ or error}") from error


def _is_ours(kind: str, table: str, sql: str | None) -> bool:
    """Return whether our databases have this object: counting what only looks like a table may never end."""
    if kind == "trigger":
        return sql in TRIGGERS
    virtual = (sql or "").upper().startswith("CREATE VIRTUAL")
    return kind in ("table", "index") and not virtual and (table in TABLES or table.startswith("sqlite_"))


def _compare_held(path: Path, manifest: Manifest, held: Held, miscounted: int) -> None:
    """Check that a database has the contents in its manifest, and each namespace its counts."""
    told = Held(
        manifest.records_format,
        manifest.namespace_count,
        manifest.item_count,
        manifest.revision,
        held.rows if manifest.rows is None else manifest.rows,
    )
    for name in Held.__slots__:
        found, wanted = getattr(held, name), getattr(told, name)
        if found != wanted:
            raise NotRestorable(f"{path} is damaged: its {name} is {found}, not {wanted}")
    if miscounted or held.rows["items"] != held.item_count:
        raise NotRestorable(f"{path} is damaged: counts of namespaces do not match their items and states")
