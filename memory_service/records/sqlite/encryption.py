"""Encryption at rest: how a data folder is marked as encrypted, and how a wrong key is detected.

One key of 32 bytes opens a data folder and its backups. The database, the other files and the check each
use a separate derived key, so that none reveals another. The key is checked before any file is touched: with
a wrong key or none, SQLite may take the write-ahead log left by a crash for empty and remove it.
"""

from __future__ import annotations

import hmac
from pathlib import Path

import msgspec

from memory_service.data_key import DataKey
from memory_service.records.base import CannotOpen
from memory_service.runtime.files import write_whole

MARKER = "encryption.json"
_SQLITE_MAGIC = b"SQLite format 3\0"
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


class _Marker(msgspec.Struct):
    """Marks a directory as encrypted and proves a key without revealing it."""

    format: int
    database: str
    files: str
    key_check: str


def is_encrypted(folder: Path) -> bool:
    """Return whether a directory is marked as encrypted."""
    return (folder / MARKER).exists()


def mark(folder: Path, key: DataKey) -> None:
    """Mark a directory as encrypted with this key. On disk when this returns."""
    marker = _Marker(1, "SQLite3MultipleCiphers chacha20", "AES-256-GCM", key.derive("key check").hex())
    write_whole(folder / MARKER, msgspec.json.format(msgspec.json.encode(marker)))


def check_key(folder: Path, records: Path, key: DataKey | None) -> None:
    """Reject a missing key or one that is not the directory's. Raises CannotOpen; changes nothing.

    `records` is the database, which need not exist.
    """
    marker = folder / MARKER
    if marker.exists():
        _check_marker(marker, key)
        return
    if not records.exists() or not records.stat().st_size:
        return
    with records.open("rb") as file:
        plain = file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    if not plain and not (key is None and _is_unmade(records)):
        raise CannotOpen(f"{records} is not a database, or it is encrypted and {MARKER} is missing beside it")
    if key is not None:
        raise CannotOpen(
            f"{folder} is not encrypted, but a key was given: make an encrypted copy with"
            " `memory-service rekey`, or omit the key"
        )


def _is_unmade(records: Path) -> bool:
    """Return whether a crash interrupted the first transaction of a new database.

    SQLite empties it by the journal, which records how many pages there were before: none.
    """
    try:
        with records.with_name(records.name + "-journal").open("rb") as journal:
            head = journal.read(20)
    except FileNotFoundError:
        return False
    return head.startswith(_JOURNAL_MAGIC) and head[16:] == bytes(4)


def _check_marker(marker: Path, key: DataKey | None) -> None:
    if key is None:
        raise CannotOpen(
            f"{marker.parent} is encrypted: give its key with --encryption-key-file or"
            " MEMORY_SERVICE_ENCRYPTION_KEY"
        )
    try:
        found = msgspec.json.decode(marker.read_bytes(), type=_Marker)
    except (msgspec.DecodeError, RecursionError) as error:
        raise CannotOpen(f"{marker} is damaged: copy it from a backup with the same key") from error
    if found.format != 1:
        raise CannotOpen(f"{marker} was written by a newer release: use that release or a newer one")
    if not hmac.compare_digest(found.key_check.encode(), key.derive("key check").hex().encode()):
        raise CannotOpen(f"{marker.parent} is encrypted with another key")
