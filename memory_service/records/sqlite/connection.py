"""The only module that imports apsw. Opens connections and translates SQLite's errors into ours."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from memory_service.errors import StorageFull, Unavailable
from memory_service.records.base import CannotOpen
from memory_service.runtime.failpoints import reach

# The types of columns follow from the statement: rows are not typed further.
Connection = Any
Row = tuple[Any, ...]

KIB = 1024
PAGE_BYTES = 4096
"""Page size of databases created here, SQLite's default."""
CHECKPOINT_PAGES = 8192
_WRITER_CACHE_KIB = 64 * KIB
# Readers pass over many rows once, so caching them is of little use.
_READER_CACHE_KIB = 8 * KIB
_BUSY_MS = 10_000
_BACKUP_STEP_PAGES = 1024
_REWRITE_IN_MEMORY_BYTES = 256 * KIB * KIB


class _Writer(apsw.Connection):
    """A connection that tracks the length of the write-ahead log."""

    log_pages = 0

    def note_log(self, _: apsw.Connection, database: str, pages: int) -> int:
        """Called by SQLite after each commit."""
        self.log_pages = pages
        return int(apsw.SQLITE_OK)


class StorageFailed(Unavailable):
    """The disk reported an error. The state of earlier writes in the operating system's cache is unknown."""

    def __init__(self) -> None:
        super().__init__("STORAGE_UNAVAILABLE", "the records cannot be read or written at the moment")


def connect(path: Path, *, writer: bool = False, key: bytes | None = None) -> Connection:
    """Open a database in WAL mode; only the writer writes and checkpoints. `key`: 32 bytes, if encrypted."""
    with translated():
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if writer else 0)
        kind: Any = _Writer if writer else apsw.Connection
        connection = kind(str(path), flags=flags, statementcachesize=256)
        _unlock(connection, key)
        connection.set_busy_timeout(_BUSY_MS)
        if writer:
            # Overwrite deleted data.
            connection.execute("PRAGMA secure_delete = ON")
            if connection.pragma("journal_mode", "wal") != "wal":
                raise StorageFailed  # If the disk fails, SQLite silently keeps the old mode.
            # FULL syncs the log at each commit: acknowledged writes survive a power loss.
            connection.execute("PRAGMA synchronous = FULL")
            # Replaces SQLite's own checkpoints, which do not report disk failures.
            connection.set_wal_hook(connection.note_log)
        else:
            connection.execute("PRAGMA query_only = ON")
        connection.execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KIB if writer else _READER_CACHE_KIB}")
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection


def open_unchanged(path: Path, key: bytes | None = None) -> Connection:
    """Open a database that is not open elsewhere, to read it without changing it or its folder."""
    with translated():
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(f"file:{quote(str(path))}?immutable=1", flags=flags)
        _unlock(connection, key)
        return connection


def _unlock(connection: Connection, key: bytes | None) -> None:
    """Set a connection's key, before any other statement."""
    if key is not None:
        if connection.pragma("cipher", "chacha20") != "chacha20":
            # It would silently accept the key and write in the clear.
            raise CannotOpen("the installed SQLite cannot encrypt: reinstall apsw-sqlite3mc, without apsw")
        # "raw": 32 random bytes need no key derivation, which would take a tenth of a second each time.
        connection.pragma("key", f"raw:{key.hex()}")


class _Translated:
    """A class, because it is entered for every write, and a generator's context takes four times as long."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            return
        if isinstance(error, apsw.FullError):
            raise StorageFull from error
        if isinstance(error, apsw.IOError | apsw.CorruptError | apsw.NotADBError):
            raise StorageFailed from error
        if isinstance(error, apsw.Error):
            raise Unavailable.storage() from error


_TRANSLATED = _Translated()


def translated() -> AbstractContextManager[None]:
    """Raise our errors in place of SQLite's. SQLite's messages, which may hold paths, only go to the log."""
    return _TRANSLATED


def begin(connection: Connection) -> None:
    """Begin a write transaction."""
    with translated():
        connection.execute("BEGIN IMMEDIATE")


def commit(connection: Connection) -> None:
    """Make the transaction durable. If it raises, the transaction is rolled back."""
    with translated():
        connection.execute("COMMIT")


def hold_view(connection: Connection) -> None:
    """Begin a read transaction: until `rollback`, the connection sees the present state."""
    connection.execute("BEGIN")
    # The first read begins it.
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()


def rollback(connection: Connection) -> None:
    """Undo the transaction, if one is open."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def checkpoint(connection: Connection) -> None:
    """Move the write-ahead log into the database file and empty the log."""
    reach("checkpoint.before")
    with translated():
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    reach("checkpoint.after")


def checkpoint_due(connection: Connection, pages: int = CHECKPOINT_PAGES) -> bool:
    """Return whether this many pages were logged since the last checkpoint."""
    return bool(connection.log_pages >= pages)


def checkpoint_some(connection: Connection, *, shrink: bool = False) -> None:
    """Move the parts of the log that no reader needs into the database file, without waiting.

    With `shrink`, truncate the log if there are no readers.
    """
    with translated():
        connection.set_busy_timeout(0)
        try:
            mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if shrink else apsw.SQLITE_CHECKPOINT_PASSIVE
            connection.wal_checkpoint(mode=mode)
        except (apsw.BusyError, apsw.LockedError):
            pass
        finally:
            connection.set_busy_timeout(_BUSY_MS)
    connection.log_pages = 0


def database_bytes(connection: Connection) -> int:
    """Return the size of the database file."""
    with translated():
        return int(connection.pragma("page_count")) * int(connection.pragma("page_size"))


def used_page_bytes(connection: Connection) -> int:
    """Return how many bytes of the database file are in use."""
    return database_bytes(connection) - free_page_bytes(connection)


def free_page_bytes(connection: Connection) -> int:
    """Return how many free bytes the database file has before it grows."""
    with translated():
        return int(connection.pragma("freelist_count")) * int(connection.pragma("page_size"))


def rewrite(connection: Connection) -> None:
    """Rewrite the whole database so that no deleted data remains: `secure_delete` alone leaves traces in
    pages that were split or joined.
    """
    with translated():
        page_count, page_bytes = connection.pragma("page_count"), connection.pragma("page_size")
        # Build the new database in memory while it is small enough, otherwise in a temporary file.
        in_memory = page_count * page_bytes <= _REWRITE_IN_MEMORY_BYTES
        connection.execute(f"PRAGMA temp_store = {'MEMORY' if in_memory else 'FILE'}")
        try:
            connection.execute("VACUUM")
        finally:
            connection.execute("PRAGMA temp_store = MEMORY")


def write_anew(source: Path, source_key: bytes | None, target: Path, key: bytes | None) -> None:
    """Copy a database that is not open elsewhere to another file, with another key or none."""
    with translated():
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(str(source), flags=flags)
        try:
            _unlock(connection, source_key)
            secret = f"cipher=chacha20&key=raw:{key.hex()}" if key else "key="
            connection.execute("VACUUM INTO ?", (f"file:{quote(str(target))}?{secret}",))
        finally:
            connection.close()


def check_whole(connection: Connection) -> str:
    """Return "ok", or a description of the damage to a database."""
    with translated():
        return str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])


def copy_database(
    source: Connection, target: Path, progress: Callable[[int, int], None], key: bytes | None = None
) -> None:
    """Copy a database online, consistently. Calls progress(done_bytes, total_bytes) after each step.

    `key` is the source's key; the copy has the same.
    """
    with translated():
        page_bytes = int(source.pragma("page_size"))
        destination = apsw.Connection(str(target))
        _unlock(destination, key)
        # One read transaction for the whole copy: writers continue, and the copy is a snapshot.
        source.execute("BEGIN")
        try:
            with destination.backup("main", source, "main") as copy:
                while not copy.done:
                    copy.step(_BACKUP_STEP_PAGES)
                    reach("backup.step")
                    done = copy.page_count - copy.remaining
                    progress(done * page_bytes, copy.page_count * page_bytes)
            destination.execute("PRAGMA journal_mode = DELETE")
        finally:
            source.execute("COMMIT")
            destination.close()
