"""The copy of the records that is kept when a release migrates them to a newer format.

It is completed and checked before anything is changed, lies beside the records, and is encrypted like them. A
start or a `Flush` removes it after `KEPT_DAYS`. Until then it still contains data erased from the records.
"""

from __future__ import annotations

import time
from pathlib import Path

from memory_service.errors import StorageFull, Unavailable
from memory_service.records.base import CannotOpen
from memory_service.records.sqlite.connection import Connection, check_whole, copy_database, open_unchanged
from memory_service.runtime.files import sync

KEPT_DAYS = 7
_NAMES = "records-before-format-*.db"
_COUNTS = (
    "SELECT (SELECT count(*) FROM namespaces), (SELECT count(*) FROM items), (SELECT count(*) FROM states)"
)


def keep_copy(records: Path, key: bytes | None, connection: Connection, number: int) -> None:
    """Copy the records to a file beside them before a migration to format `number`. Raises CannotOpen."""
    target = records.with_name(_NAMES.replace("*", str(number)))
    partial = records.with_name(f".{target.name}.partial")
    # The file of an earlier attempt may lack later writes.
    partial.unlink(missing_ok=True)
    try:
        copy_database(connection, partial, lambda done_bytes, total_bytes: None, key)
        _compare(connection, partial, key)
        sync(partial)
        partial.rename(target)
        sync(records.parent)
    except (StorageFull, Unavailable, OSError) as error:
        partial.unlink(missing_ok=True)
        raise CannotOpen(
            f"the records must be migrated to format {number}, but no copy of them could be written to"
            f" {target} ({error.__cause__ or error}): nothing was changed"
        ) from error


def _compare(connection: Connection, copy: Path, key: bytes | None) -> None:
    copied = open_unchanged(copy, key)
    try:
        same = copied.execute(_COUNTS).fetchone() == connection.execute(_COUNTS).fetchone()
        if check_whole(copied) != "ok" or not same:
            raise Unavailable.storage()
    finally:
        copied.close()


def remove_old_copies(folder: Path) -> None:
    """Remove copies older than KEPT_DAYS."""
    for path in folder.glob(_NAMES):
        if time.time() - path.stat().st_mtime > KEPT_DAYS * 24 * 3600:
            path.unlink(missing_ok=True)
