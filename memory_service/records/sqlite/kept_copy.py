"""The copy of the records that is kept when a release brings them to a newer format.

It is made whole and checked before anything is changed, lies beside the records, and is encrypted as they
are. A start or a `Flush` removes it after `KEPT_DAYS`. What is erased meanwhile is still in it.
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
    """Copy the records beside themselves before they are brought to format `number`. Raises CannotOpen."""
    target = records.with_name(_NAMES.replace("*", str(number)))
    partial = records.with_name(f".{target.name}.partial")
    # What an earlier attempt has left may be older than what was written since.
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
            f"the records have to be brought to format {number}, and no copy of them could be written to"
            f" {target} before that ({error.__cause__ or error}): nothing was changed"
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
    """Remove the copies that were kept long enough."""
    for path in folder.glob(_NAMES):
        if time.time() - path.stat().st_mtime > KEPT_DAYS * 24 * 3600:
            path.unlink(missing_ok=True)
