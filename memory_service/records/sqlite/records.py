"""The whole store and its life cycle."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from memory_service.errors import InvalidArgument, StorageFull, Unavailable
from memory_service.records.base import BackupReport, CannotOpen, Capabilities, Records
from memory_service.records.folder_lock import locked_folder
from memory_service.records.sqlite.backups import remove_partial_backups, write_backup
from memory_service.records.sqlite.change_log import SqliteChangeLog
from memory_service.records.sqlite.commit_queue import CommitQueue
from memory_service.records.sqlite.connection import (
    Connection,
    StorageFailed,
    checkpoint,
    connect,
    translated,
    used_page_bytes,
)
from memory_service.records.sqlite.encryption import check_key, is_encrypted, mark
from memory_service.records.sqlite.erasure import begin_erasing, finish_erasing, forget_snapshots
from memory_service.records.sqlite.item_store import SqliteItemStore
from memory_service.records.sqlite.kept_copy import keep_copy, remove_old_copies
from memory_service.records.sqlite.namespace_bytes import prepare_sums
from memory_service.records.sqlite.namespace_store import SqliteNamespaceStore
from memory_service.records.sqlite.pending_store import SqlitePendingStore
from memory_service.records.sqlite.quarantine_store import SqliteQuarantineStore
from memory_service.records.sqlite.row_source import SqliteRowSource
from memory_service.records.sqlite.schema import prepare
from memory_service.records.sqlite.state_store import SqliteStateStore
from memory_service.records.sqlite.undo_store import SqliteUndoStore
from memory_service.records.sqlite.version_store import SqliteVersionStore
from memory_service.records.sqlite.write_store import SqliteWriteStore
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.failpoints import reach
from memory_service.runtime.files import InPlace, make_folder, sync
from memory_service.runtime.log_causes import cause_of

_log = EventLog(__name__)

_READERS = 2


class SqliteRecords(
    SqliteWriteStore,
    SqliteItemStore,
    SqlitePendingStore,
    SqliteStateStore,
    SqliteQuarantineStore,
    SqliteUndoStore,
    SqliteVersionStore,
    SqliteChangeLog,
    SqliteNamespaceStore,
    SqliteRowSource,
    Records,
):
    """Records in one SQLite database."""

    capabilities = Capabilities(durable=True, backup=True, shared=False, files=True)

    async def open(self) -> None:
        path = self._data_dir / "records.db"
        opened = ExitStack()
        try:
            make_folder(self._data_dir)
            opened.enter_context(locked_folder(self._data_dir))
            check_key(self._data_dir, path, self._key)
            self._space.open()
            if self._key is not None and not is_encrypted(self._data_dir):
                mark(self._data_dir, self._key)
            # For its owner only, even if others can read the folder; the log gets the same mode.
            path.touch(0o600)
            # Recovers the write-ahead log, if the last process left one.
            self._writer = connect(path, writer=True, key=self._records_key)
            opened.callback(self._writer.close)
            reach("open.after_recovery")
            prepare(self._writer, partial(keep_copy, path, self._records_key))
            remove_old_copies(self._data_dir)
            self._keep_sums(self._writer)
            self._space.look(self._writer)
            self._reader = self._connect()
            opened.callback(self._reader.close)
            self._spare_readers = SimpleQueue()
            for _ in range(_READERS):
                self._spare_readers.put(self._connect())
                opened.callback(lambda: self._spare_readers.get().close())
            remove_partial_backups(self._data_dir / "backups")
            # Makes the names of database and log durable; SQLite ignores a failure of this.
            sync(self._data_dir)
        except (Unavailable, StorageFull, OSError) as error:
            _close_all(opened)
            raise CannotOpen(f"cannot open {path}: {error.__cause__ or error}") from error
        except BaseException:
            _close_all(opened)
            raise
        self._opened = opened
        self._threads = ThreadPoolExecutor(_READERS, thread_name_prefix="read")
        # Every connection has both open by now.
        in_place = InPlace(path, path.with_name(f"{path.name}-wal"))
        self._queue = CommitQueue(
            self._writer,
            self._space,
            self._ledger.write_back,
            self._ledger.forget_all,
            self._reader,
            in_place,
            queued_writes_max=self._queued_writes_max,
        )

    def demand(self, nbytes: int) -> None:
        """Check for space for a snapshot. Raises StorageFull and Unavailable."""
        # Without sound files it could not be recorded, and the folder may belong to another server.
        if not self._queue.is_sound():
            raise StorageFailed
        self._space.demand(nbytes)

    def _connect(self) -> Connection:
        return connect(self._data_dir / "records.db", key=self._records_key)

    def refuse(self) -> None:
        """Accept no more writes; those under way continue."""
        self._signal.close()
        self._queue.refuse()

    async def close(self) -> None:
        self.refuse()
        await self._queue.close()
        reach("close.before_checkpoint")
        self._threads.shutdown()
        try:
            checkpoint(self._writer)
        except (Unavailable, StorageFull) as error:
            # Everything acknowledged is in the log, which the next start reads.
            _log.error("last_checkpoint_failed", cause=cause_of(error))
        _close_all(self._opened)

    async def flush(self) -> None:
        try:
            await self._erase()
        except OSError as error:
            raise Unavailable.storage() from error

    async def _erase(self) -> None:
        """Make a checkpoint, and remove deleted data from all files."""
        remove_old_copies(self._data_dir)
        # First, because on a full disk there is no space for anything else.
        await self._queue.run(checkpoint)
        erased = await self._queue.run(self._begin_erasing)
        if not erased:
            return
        # The rewritten database first goes into the log.
        self._space.demand(await self._read(used_page_bytes))
        unsaved = erased - await self._follower.save_again(erased)
        await self._queue.record(lambda db: forget_snapshots(db, unsaved))
        self._follower.remove_files(unsaved)
        await self._queue.run(self._finish_erasing)

    def _begin_erasing(self, db: Connection) -> set[int]:
        uids = begin_erasing(db)
        self._ledger.forget_erasures()
        return uids

    def _finish_erasing(self, db: Connection) -> None:
        try:
            finish_erasing(db)
        finally:
            # A rewrite through a file drops temporary tables.
            self._keep_sums(db)

    def _keep_sums(self, db: Connection) -> None:
        self._counted.clear()
        if self._namespace_bytes_max:
            with translated():
                prepare_sums(db)

    async def backup(self, name: str, progress: Callable[[int, int], None]) -> BackupReport:
        folder = self._data_dir / "backups" / name
        if folder.exists():
            raise InvalidArgument("name", "a backup with this name exists")
        return await self._read(partial(write_backup, folder, progress, self._key, self._space.demand))

    def is_sound(self) -> bool:
        return self._queue.is_sound()

    @property
    def tight(self) -> bool:
        return self._space.tight

    async def make_room(self, folder: Path) -> None:
        if self._space.is_of(folder):
            await self._queue.make_room()


def _close_all(opened: ExitStack) -> None:
    """Close connections and lock, ignoring errors of the disk."""
    try:
        with translated():
            opened.close()
    except (Unavailable, StorageFull, OSError) as error:
        _log.error("close_failed", cause=cause_of(error))
