"""SQLite: the one file that imports apsw. Opens connections and turns its errors into ours."""

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

# What a column holds is known from the statement: rows are not typed further.
Connection = Any
Row = tuple[Any, ...]

KIB = 1024
PAGE_BYTES = 4096
"""Of databases that are made here: SQLite's default."""
CHECKPOINT_PAGES = 8192
_WRITER_CACHE_KIB = 64 * KIB
# Those who read go through many rows once: what they keep serves nobody again.
_READER_CACHE_KIB = 8 * KIB
_BUSY_MS = 10_000
_BACKUP_STEP_PAGES = 1024
_REWRITE_IN_MEMORY_BYTES = 256 * KIB * KIB


class _Writer(apsw.Connection):
    """A connection that knows how long the write-ahead log is."""

    log_pages = 0

    def note_log(self, _: apsw.Connection, database: str, pages: int) -> int:
        """Called by SQLite after each commit."""
        self.log_pages = pages
        return int(apsw.SQLITE_OK)


class StorageFailed(Unavailable):
    """The disk gave an error. What the operating system still holds of earlier writes is not known."""

    def __init__(self) -> None:
        super().__init__("STORAGE_UNAVAILABLE", "the records cannot be read or written at the moment")


def connect(path: Path, *, writer: bool = False, key: bytes | None = None) -> Connection:
    """Open a database in WAL mode; only the writer writes and checkpoints. `key`: 32 bytes, if it has one."""
    with translated():
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if writer else 0)
        kind: Any = _Writer if writer else apsw.Connection
        connection = kind(str(path), flags=flags, statementcachesize=256)
        _unlock(connection, key)
        connection.set_busy_timeout(_BUSY_MS)
        if writer:
            # What is deleted is overwritten, not only forgotten.
            connection.execute("PRAGMA secure_delete = ON")
            if connection.pragma("journal_mode", "wal") != "wal":
                raise StorageFailed  # SQLite keeps to the old mode where the disk fails, and says no more.
            # FULL syncs the log at each commit: what is acknowledged survives a loss of power.
            connection.execute("PRAGMA synchronous = FULL")
            # In the place of SQLite's own checkpoints, which keep to themselves that the disk failed.
            connection.set_wal_hook(connection.note_log)
        else:
            connection.execute("PRAGMA query_only = ON")
        connection.execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KIB if writer else _READER_CACHE_KIB}")
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection


def open_unchanged(path: Path, key: bytes | None = None) -> Connection:
    """Open a database that nobody else has open, to read it without a change to it or beside it."""
    with translated():
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(f"file:{quote(str(path))}?immutable=1", flags=flags)
        _unlock(connection, key)
        return connection


def _unlock(connection: Connection, key: bytes | None) -> None:
    """Tell a connection its key, before anything else is asked of it."""
    if key is not None:
        if connection.pragma("cipher", "chacha20") != "chacha20":
            # It would take the key without a word and write in the clear.
            raise CannotOpen(
                "the SQLite that is installed cannot encrypt: reinstall apsw-sqlite3mc, without apsw"
            )
        # "raw": 32 random bytes need no derivation, which would take a tenth of a second each time.
        connection.pragma("key", f"raw:{key.hex()}")


class _Translated:
    """Written out: entered for every write, and a generator's context takes four times as long."""

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
    """Raise our errors in the place of SQLite's. Its texts, which may hold paths, go to the log only."""
    return _TRANSLATED


def begin(connection: Connection) -> None:
    """Begin a write transaction."""
    with translated():
        connection.execute("BEGIN IMMEDIATE")


def commit(connection: Connection) -> None:
    """Make the transaction durable. When it raises, the transaction is undone."""
    with translated():
        connection.execute("COMMIT")


def hold_view(connection: Connection) -> None:
    """Begin a read transaction: until its end, by `rollback`, the connection sees what there is now."""
    connection.execute("BEGIN")
    # It is the first read that begins it.
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()


def rollback(connection: Connection) -> None:
    """Undo the transaction, if one is open."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def checkpoint(connection: Connection) -> None:
    """Move the write-ahead log into the database file, and empty it."""
    reach("checkpoint.before")
    with translated():
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    reach("checkpoint.after")


def checkpoint_due(connection: Connection, pages: int = CHECKPOINT_PAGES) -> bool:
    """Whether so much was written to the log since the last checkpoint."""
    return bool(connection.log_pages >= pages)


def checkpoint_some(connection: Connection, *, shrink: bool = False) -> None:
    """Move what nobody reads any more of the log into the database file; waits for nobody.

    `shrink` gives the room of the log back, if nobody reads.
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
    """Return how much of the database file holds something."""
    return database_bytes(connection) - free_page_bytes(connection)


def free_page_bytes(connection: Connection) -> int:
    """Return what the database file has room for before it grows."""
    with translated():
        return int(connection.pragma("freelist_count")) * int(connection.pragma("page_size"))


def rewrite(connection: Connection) -> None:
    """Write the whole database anew. What was deleted is then nowhere in it: `secure_delete` alone leaves
    bits in pages that were split or joined."""
    with translated():
        page_count, page_bytes = connection.pragma("page_count"), connection.pragma("page_size")
        # The new one is made in memory as long as that is no burden, else in a file of the system's.
        in_memory = page_count * page_bytes <= _REWRITE_IN_MEMORY_BYTES
        connection.execute(f"PRAGMA temp_store = {'MEMORY' if in_memory else 'FILE'}")
        try:
            connection.execute("VACUUM")
        finally:
            connection.execute("PRAGMA temp_store = MEMORY")


def write_anew(source: Path, source_key: bytes | None, target: Path, key: bytes | None) -> None:
    """Write what is in a database that nobody else has open to another file, with another key or none."""
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
    """Return "ok", or what is wrong with a database."""
    with translated():
        return str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])


def copy_database(
    source: Connection, target: Path, progress: Callable[[int, int], None], key: bytes | None = None
) -> None:
    """Copy a database online, consistently. Calls progress(done_bytes, total_bytes) after each step.

    `key` is that of the source: the copy has the same.
    """
    with translated():
        page_bytes = int(source.pragma("page_size"))
        destination = apsw.Connection(str(target))
        _unlock(destination, key)
        # One read transaction for the whole copy: writers go on, and the copy is of one moment.
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
