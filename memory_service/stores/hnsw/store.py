"""The store itself: writes through the commit queue, reads through views, the item cache and SQL."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

import msgspec
import structlog

from memory_service.caller import present_caller
from memory_service.clock import now_us as present_us
from memory_service.data_key import DataKey
from memory_service.errors import InvalidArgument, StorageFull, Unavailable
from memory_service.failpoints import reach
from memory_service.files import make_folder, sync
from memory_service.giving_way import each
from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.neighbours import neighbours
from memory_service.indexes.selection import scan
from memory_service.indexes.settings import IndexSettings
from memory_service.log_causes import cause_of
from memory_service.predicates import column_fields
from memory_service.records import (
    Around,
    Change,
    ChangeType,
    HeldWrite,
    Hits,
    IndexInfo,
    Item,
    ItemFilter,
    ItemWrite,
    NamespaceInfo,
    OnDuplicate,
    Receipt,
    RequestKey,
    SearchQuery,
    StateEntry,
    StateWrite,
    TextPart,
    UndoStep,
    VectorFill,
    WritesBy,
)
from memory_service.stores.base import HISTORY_US, BackupReport, CannotOpen, Capabilities, Store
from memory_service.stores.change_signal import ChangeSignal
from memory_service.stores.encryption import check_key, is_encrypted, mark
from memory_service.stores.hnsw import (
    item_writes,
    namespace_writes,
    quarantine_writes,
    state_writes,
    undo_writes,
    vector_writes,
)
from memory_service.stores.hnsw.backups import remove_partial_backups, write_backup
from memory_service.stores.hnsw.commit_queue import CommitQueue
from memory_service.stores.hnsw.disk_space import DiskSpace, SpaceSettings
from memory_service.stores.hnsw.effects import effect_of
from memory_service.stores.hnsw.erasure import begin_erasing, finish_erasing, forget_snapshots
from memory_service.stores.hnsw.folder_lock import lock_folder
from memory_service.stores.hnsw.heavy_turns import HeavyTurns
from memory_service.stores.hnsw.item_cache import ItemCache
from memory_service.stores.hnsw.kept_copy import keep_copy, remove_old_copies
from memory_service.stores.hnsw.ledger import Ledger, Outcome, earlier, finish, received
from memory_service.stores.hnsw.namespace_bytes import bytes_of, check_namespace, prepare_sums
from memory_service.stores.hnsw.rows import (
    ITEM_COLUMNS,
    NAMESPACE_COLUMNS,
    STATE_COLUMNS,
    item_of,
    namespace_of,
    state_of,
)
from memory_service.stores.hnsw.schema import POSITION_MAX, key_of, prepare, vector_key
from memory_service.stores.hnsw.search_queue import SearchQueue
from memory_service.stores.hnsw.snapshots import Snapshots
from memory_service.stores.hnsw.view_cache import ViewCache
from memory_service.stores.sqlite import Connection, checkpoint, connect, translated, used_page_bytes

T = TypeVar("T")
_log = structlog.get_logger(__name__)

_READERS = 2
_HEAVY_ITEMS = 64
_AT_ONCE = nullcontext()
_INLINE_READS_MAX = 64
_READ_TOGETHER = 64
_KNOWN_NAMESPACES_MAX = 50_000


class HnswStore(Store):
    """Records in one SQLite database, which are the truth; views of them in memory."""

    capabilities = Capabilities(durable=True, backup=True)

    def __init__(
        self,
        data_dir: Path,
        settings: IndexSettings | None = None,
        key: DataKey | None = None,
        *,
        history_us: int = HISTORY_US,
        space: SpaceSettings | None = None,
        namespace_bytes_max: int = 0,
    ) -> None:
        """`key` None: the data directory is not encrypted. `namespace_bytes_max` 0: no limit."""
        self._data_dir = data_dir
        self._space = DiskSpace(data_dir, space or SpaceSettings())
        self._key = key
        self._records_key = key.derive("records") if key else None
        self._settings = settings or IndexSettings()
        self._history_us = history_us
        self._ledger = Ledger(keeps_history=history_us > 0)
        self._analyzer = Analyzer()
        self._signal = ChangeSignal()
        self._items = ItemCache(self._settings.items_bytes_max, _content_bytes)
        self._known: OrderedDict[str, NamespaceInfo] = OrderedDict()
        self._searches = SearchQueue()
        self._heavy_turns = HeavyTurns()
        self._namespace_bytes_max = namespace_bytes_max
        # Namespaces whose bytes were counted; some that were may be missing.
        self._counted: set[int] = set()

    # --- life ---------------------------------------------------------------------------------

    async def open(self) -> None:
        path = self._data_dir / "records.db"
        opened = ExitStack()
        try:
            make_folder(self._data_dir)
            opened.enter_context(lock_folder(self._data_dir / "LOCK"))
            check_key(self._data_dir, path, self._key)
            self._space.open()
            if self._key is not None and not is_encrypted(self._data_dir):
                mark(self._data_dir, self._key)
            # For its owner only, in a folder that others may look into, too; its log gets the same mode.
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
            with translated():
                manifests = [row[0] for row in self._reader.execute("SELECT manifest FROM snapshots")]
            self._spare_readers: SimpleQueue[Connection] = SimpleQueue()
            for _ in range(_READERS):
                self._spare_readers.put(self._connect())
                opened.callback(lambda: self._spare_readers.get().close())
            self._snapshots = Snapshots(self._data_dir / "indexes", self._key, demand=self._space.demand)
            self._snapshots.sweep(manifests)
            remove_partial_backups(self._data_dir / "backups")
            reach("open.after_sweep")
            # The names of database and log; SQLite does without where that fails.
            sync(self._data_dir)
        except (Unavailable, StorageFull, OSError) as error:
            _close_all(opened)
            raise CannotOpen(f"cannot open {path}: {error.__cause__ or error}") from error
        except BaseException:
            _close_all(opened)
            raise
        self._opened = opened
        self._threads = ThreadPoolExecutor(_READERS, thread_name_prefix="read")
        self._queue = CommitQueue(
            self._writer, self._space, self._ledger.write_back, self._ledger.forget_all, self._reader
        )
        self._views = ViewCache(
            self._settings, self._snapshots, self._analyzer, self._read, self._record_snapshot
        )

    def _connect(self) -> Connection:
        return connect(self._data_dir / "records.db", key=self._records_key)

    async def close(self) -> None:
        self._signal.close()
        self._queue.refuse()
        await self._views.close()
        self._searches.close()
        await self._queue.close()
        reach("close.before_checkpoint")
        self._threads.shutdown()
        try:
            checkpoint(self._writer)
        except (Unavailable, StorageFull) as error:
            # All that was acknowledged is in the log, which the next start reads.
            _log.error("last_checkpoint_failed", cause=cause_of(error))
        _close_all(self._opened)

    async def flush(self) -> None:
        await self._views.settle()
        try:
            await self._erase()
        except OSError as error:
            raise Unavailable.storage() from error

    async def _erase(self) -> None:
        """Make a checkpoint, and let nothing that was deleted be in any file."""
        remove_old_copies(self._data_dir)
        # First of all: on a full disk there is no room for more than this.
        await self._queue.run(checkpoint)
        erased = await self._queue.run(self._begin_erasing)
        if not erased:
            return
        # The log takes what is left once more.
        self._space.demand(await self._read(used_page_bytes))
        unsaved = erased - await self._views.save_again(erased)
        await self._queue.record(lambda db: forget_snapshots(db, unsaved))
        for uid in unsaved:
            self._snapshots.remove(uid)
        await self._queue.run(self._finish_erasing)

    def _begin_erasing(self, db: Connection) -> set[int]:
        uids = begin_erasing(db)
        self._ledger.forget_erasures()
        return uids

    def _finish_erasing(self, db: Connection) -> None:
        try:
            finish_erasing(db)
        finally:
            # A database that is written anew through a file loses what is temporary.
            self._keep_sums(db)

    def _keep_sums(self, db: Connection) -> None:
        self._counted.clear()
        if self._namespace_bytes_max:
            with translated():
                prepare_sums(db)

    async def backup(self, name: str, progress: Callable[[int, int], None]) -> BackupReport:
        folder = self._data_dir / "backups" / name
        if folder.exists():
            raise InvalidArgument("name", "a backup of this name exists")
        return await self._read(partial(write_backup, folder, progress, self._key, self._space.demand))

    async def _record_snapshot(self, uid: int, manifest: str) -> bool:
        return await self._queue.record(lambda db: namespace_writes.record_snapshot(db, uid, manifest))

    # --- reading the database -----------------------------------------------------------------

    async def _read(self, work: Callable[[Connection], T]) -> T:
        """Read in a thread, with a connection that nobody else uses meanwhile."""
        found = await asyncio.get_running_loop().run_in_executor(self._threads, self._read_now, work)
        await self._queue.published()
        return found

    def _read_now(self, work: Callable[[Connection], T]) -> T:
        connection = self._spare_readers.get()
        try:
            with translated():
                return work(connection)
        finally:
            self._spare_readers.put(connection)

    def _info(self, namespace: str) -> NamespaceInfo | None:
        """Return a namespace as of the last commit. Reads one row at most."""
        info = self._known.get(namespace)
        if info is not None:
            self._known.move_to_end(namespace)
            return info
        with translated():
            row = self._reader.execute(
                f"SELECT {NAMESPACE_COLUMNS} FROM namespaces WHERE name = ?", (namespace,)
            ).fetchone()
        # Not remembered here: a commit that is done but not yet published would be newer.
        return namespace_of(row) if row else None

    def _remember(self, info: NamespaceInfo) -> None:
        self._known[info.name] = info
        self._known.move_to_end(info.name)
        if len(self._known) > _KNOWN_NAMESPACES_MAX:
            self._known.popitem(last=False)

    # --- writing ------------------------------------------------------------------------------

    async def _write(
        self,
        namespace: str,
        apply: Callable[[Connection], Outcome],
        *,
        heavy: bool = False,
        shrinks: bool = False,
    ) -> Receipt:
        outcome = await self._queue.write(apply, self._publish, owner=namespace, heavy=heavy, shrinks=shrinks)
        return outcome.receipt

    async def _grow(
        self,
        namespace: str,
        apply: Callable[[Connection], Outcome],
        request: RequestKey | None,
        *,
        heavy: bool = False,
    ) -> Receipt:
        """Do a write that puts something into a namespace, if there is room in it."""
        limit = self._namespace_bytes_max
        if not limit:
            return await self._write(namespace, apply, heavy=heavy)
        await self._count_bytes(namespace)

        def apply_within_limit(db: Connection) -> Outcome:
            check_namespace(db, self._ledger, namespace, limit, request)
            return apply(db)

        return await self._write(namespace, apply_within_limit, heavy=heavy)

    async def _count_bytes(self, namespace: str) -> None:
        """Count a namespace that was not, in the thread of the writer, however many items there are."""
        info = self._info(namespace)
        if info is None or info.uid in self._counted:
            return
        uid = info.uid
        await self._queue.write(
            lambda db: bytes_of(db, uid), lambda _: None, owner=namespace, heavy=True, shrinks=True
        )
        if len(self._counted) >= _KNOWN_NAMESPACES_MAX:
            self._counted.clear()
        self._counted.add(uid)

    def _publish(self, outcome: Outcome) -> None:
        """Make a durable write visible to reads; runs in the order of commits."""
        info = outcome.info
        if info is None:
            return  # A repeated request changed nothing.
        self._remember(info)
        if outcome.began or outcome.emptied:
            self._views.begin(info)
        if outcome.emptied or outcome.moved:
            self._items.clear()
            self._snapshots.remove(info.uid)
        for position in (*outcome.removed, *(fill.position for fill in outcome.filled)):
            self._items.discard(key_of(info.uid, position))
        # Before the items are kept, which is without their vectors.
        effect = effect_of(outcome, info)
        for write, _ in (*outcome.added, *outcome.replaced):
            self._keep(info.uid, write.item)
        repeatable = bool(outcome.filled or outcome.moved)
        self._views.publish(info.name, info.revision, effect, repeatable=repeatable)
        self._signal.fire(info.name)

    def _keep(self, uid: int, item: Item) -> None:
        item.embedded = item.embedded or item.embedding is not None
        item.embedding = None
        self._items.put(key_of(uid, item.position), item)

    async def add_items(
        self,
        namespace: str,
        writes: Sequence[ItemWrite],
        *,
        states: Sequence[StateWrite] = (),
        removals: Sequence[str] = (),
        on_duplicate: OnDuplicate = OnDuplicate.FAIL,
        request: RequestKey | None = None,
        released: str = "",
    ) -> Receipt:
        remover = present_caller()
        heavy = len(writes) + len(states) + len(removals) > _HEAVY_ITEMS
        async with self._heavy_turns.turn(namespace) if heavy else _AT_ONCE:
            terms = await each(self._analyzer.item_terms, writes)

            def apply(db: Connection) -> Outcome:
                return item_writes.add_items(
                    db, self._ledger, namespace, writes, terms, states, removals, on_duplicate, request,
                    remover, released,
                )  # fmt: skip

            # What goes may leave changes behind in what stays: that, too, is forgetting.
            if len(writes) <= len(removals) and not states:
                return await self._write(namespace, apply, heavy=heavy, shrinks=True)
            return await self._grow(namespace, apply, request, heavy=heavy)

    async def find_receipt(self, namespace: str, request: RequestKey) -> Receipt | None:
        info = self._info(namespace)
        if info is None:
            return None
        with translated():
            return received(self._reader, info.uid, request)

    async def replace_item(
        self,
        namespace: str,
        write: ItemWrite,
        *,
        expected_revision: int | None = None,
        request: RequestKey | None = None,
    ) -> Receipt:
        terms = self._analyzer.item_terms(write)

        def apply(db: Connection) -> Outcome:
            return item_writes.replace_item(
                db, self._ledger, namespace, write, terms, expected_revision, request
            )

        return await self._grow(namespace, apply, request)

    async def delete_item(
        self,
        namespace: str,
        item_id: str,
        *,
        now_us: int,
        expected_revision: int | None = None,
        request: RequestKey | None = None,
    ) -> Receipt:
        remover = present_caller()

        def apply(db: Connection) -> Outcome:
            return item_writes.delete_item(
                db, self._ledger, namespace, item_id, now_us, expected_revision, request, remover
            )

        return await self._write(namespace, apply, shrinks=True)

    # --- finding items ------------------------------------------------------------------------

    async def get_items(
        self, namespace: str, ids: Sequence[str], *, with_embedding: bool = False
    ) -> dict[str, Item]:
        info = self._info(namespace)
        if info is None:
            return {}
        columns = f"{ITEM_COLUMNS}, embedding" if with_embedding else ITEM_COLUMNS
        statement = f"SELECT {columns} FROM items WHERE uid = ? AND id = ?"
        with translated():
            rows = [self._reader.execute(statement, (info.uid, item_id)).fetchone() for item_id in ids]
        none = vector_key(info.vector_epoch, 0)
        return {item.id: item for item in (item_of(row, none) for row in rows if row)}

    async def load_items(
        self, namespace: str, positions: Sequence[int], *, with_embedding: bool = False
    ) -> list[Item | None]:
        info = self._info(namespace)
        if info is None:
            return [None] * len(positions)
        first, none = key_of(info.uid, 0), vector_key(info.vector_epoch, 0)
        keys = [first + position for position in positions]
        if with_embedding:
            columns = f"{ITEM_COLUMNS}, embedding"
            return await self._read(lambda db: _load(db, keys, columns, none))
        items = self._items.get_all(keys)
        if all(items):
            return items
        missing = [at for at, item in enumerate(items) if item is None]
        wanted = [keys[at] for at in missing]
        if len(missing) <= _INLINE_READS_MAX:
            with translated():
                loaded = _load(self._reader, wanted, ITEM_COLUMNS, none)
        else:
            loaded = await self._read(lambda db: _load(db, wanted, ITEM_COLUMNS, none))
        fresh = len(missing) <= _INLINE_READS_MAX
        for at, item in zip(missing, loaded, strict=True):
            items[at] = item
            # One read in a thread may be older than a commit that was published meanwhile.
            if item is not None and fresh:
                self._items.put(keys[at], item)
        return items

    async def scan(self, namespace: str, item_filter: ItemFilter, limit: int, *, newest: bool) -> list[int]:
        view = await self._views.get(namespace, column_fields(item_filter.predicate))
        return [] if view is None else scan(view, item_filter, limit, newest=newest)

    async def search(self, namespace: str, query: SearchQuery) -> Hits:
        if query.filter.predicate is None:
            view = self._views.get_loaded(namespace) or await self._views.get(namespace)
            return Hits() if view is None else await self._searches.search(view, query)
        fields = column_fields(query.filter.predicate)
        view = await self._views.get(namespace, fields)
        if view is None:
            return Hits()
        with view.columns.used(fields):
            return await self._searches.search(view, query)

    async def neighbours(
        self, namespace: str, positions: Sequence[int], count: int, *, now_us: int
    ) -> list[Around]:
        view = await self._views.get(namespace)
        return [Around()] * len(positions) if view is None else neighbours(view, positions, count, now_us)

    async def record_uses(self, namespace: str, positions: Sequence[int]) -> None:
        def publish(use_counts: dict[int, int]) -> None:
            self._views.publish_uses(namespace, use_counts)

        await self._queue.write(
            lambda db: item_writes.record_uses(db, self._ledger, namespace, positions),
            publish,
            owner=namespace,
            shrinks=True,
        )

    # --- pending vectors ----------------------------------------------------------------------

    async def begin_reembedding(
        self, namespace: str, model: str, dimension: int, *, replace_client_vectors: bool
    ) -> NamespaceInfo:
        def apply(db: Connection) -> Outcome:
            return vector_writes.begin_reembedding(
                db, self._ledger, namespace, model, dimension, replace_client_vectors
            )

        info = (await self._queue.write(apply, self._publish, owner=namespace)).info
        assert info is not None
        return info

    async def namespaces_with_pending(self, after: str, limit: int) -> list[str]:
        statement = "SELECT name FROM namespaces WHERE pending_count > 0 AND name > ? ORDER BY name LIMIT ?"
        rows = await self._read(lambda db: db.execute(statement, (after, limit)).fetchall())
        return [name for (name,) in rows]

    async def pending_items(self, namespace: str, after_position: int, limit: int) -> list[Item]:
        info = self._info(namespace)
        if info is None:
            return []
        uid = info.uid
        rows, none = await self._read(lambda db: vector_writes.select_pending(db, uid, after_position, limit))
        return [item_of(row, none) for row in rows]

    async def fill_vectors(self, namespace: str, uid: int, model: str, fills: Sequence[VectorFill]) -> int:
        def apply(db: Connection) -> Outcome:
            return vector_writes.fill_vectors(db, self._ledger, namespace, uid, model, fills)

        # Nobody waits for it, but others do for the event loop.
        return len((await self._queue.write(apply, self._publish, owner=namespace, heavy=True)).filled)

    # --- state --------------------------------------------------------------------------------

    async def save_state(
        self, namespace: str, write: StateWrite, *, request: RequestKey | None = None
    ) -> Receipt:
        return await self._grow(
            namespace,
            lambda db: state_writes.save_state(db, self._ledger, namespace, write, request),
            request,
        )

    async def load_states(self, namespace: str, keys: Sequence[str]) -> dict[str, StateEntry]:
        info = self._info(namespace)
        if info is None:
            return {}
        statement = f"SELECT {STATE_COLUMNS} FROM states WHERE uid = ? AND key = ?"
        with translated():
            rows = [self._reader.execute(statement, (info.uid, key)).fetchone() for key in keys]
        return {row[0]: state_of(row) for row in rows if row}

    async def scan_states(
        self, namespace: str, after_key: str, limit: int, *, now_us: int
    ) -> list[StateEntry]:
        info = self._info(namespace)
        if info is None:
            return []
        statement = (
            f"SELECT {STATE_COLUMNS} FROM states WHERE uid = ? AND key > ?"
            " AND (expire_us IS NULL OR expire_us > ?) ORDER BY key LIMIT ?"
        )
        values = (info.uid, after_key, now_us, limit)
        rows = await self._read(lambda db: db.execute(statement, values).fetchall())
        return [state_of(row) for row in rows]

    async def delete_state(
        self,
        namespace: str,
        key: str,
        *,
        now_us: int,
        expected_version: int | None = None,
        request: RequestKey | None = None,
    ) -> Receipt:
        remover = present_caller()

        def apply(db: Connection) -> Outcome:
            return state_writes.delete_state(
                db, self._ledger, namespace, key, now_us, expected_version, request, remover
            )

        return await self._write(namespace, apply, shrinks=True)

    async def clear_states(self, namespace: str, *, request: RequestKey | None = None) -> Receipt:
        remover = present_caller()
        return await self._write(
            namespace,
            lambda db: state_writes.clear_states(db, self._ledger, namespace, request, remover),
            heavy=True,
            shrinks=True,
        )

    # --- quarantine ---------------------------------------------------------------------------

    async def hold(self, namespace: str, held: Sequence[HeldWrite]) -> list[HeldWrite]:
        def apply(db: Connection) -> tuple[list[HeldWrite], Outcome]:
            return quarantine_writes.hold(db, self._ledger, namespace, held)

        def publish(done: tuple[list[HeldWrite], Outcome]) -> None:
            self._publish(done[1])

        heavy = len(held) > _HEAVY_ITEMS
        return (await self._queue.write(apply, publish, owner=namespace, heavy=heavy))[0]

    async def held_writes(self, namespace: str, after: str, limit: int, *, now_us: int) -> list[HeldWrite]:
        if (info := self._info(namespace)) is None:
            return []
        uid = info.uid
        return await self._read(lambda db: quarantine_writes.select_held(db, uid, after, limit, now_us))

    async def held_write(self, namespace: str, held_id: str) -> HeldWrite | None:
        if (info := self._info(namespace)) is None:
            return None
        uid = info.uid
        return await self._read(lambda db: quarantine_writes.find_held(db, uid, held_id))

    async def count_held(self, namespace: str, by: WritesBy | None = None) -> int:
        if (info := self._info(namespace)) is None:
            return 0
        uid = info.uid
        return await self._read(lambda db: quarantine_writes.count_held(db, uid, by))

    async def drop_held(self, namespace: str, held_id: str) -> None:
        def apply(db: Connection) -> Outcome:
            return quarantine_writes.drop_held(db, self._ledger, namespace, held_id)

        await self._write(namespace, apply, shrinks=True)

    async def drop_held_by(self, namespace: str, by: WritesBy) -> int:
        def apply(db: Connection) -> Outcome:
            return quarantine_writes.drop_held_by(db, self._ledger, namespace, by)

        return (await self._write(namespace, apply, heavy=True, shrinks=True)).removed_count

    # --- undoing ------------------------------------------------------------------------------

    async def undo_items(
        self, namespace: str, by: WritesBy, after_position: int, limit: int, *, dry_run: bool
    ) -> UndoStep:
        at_us = present_us()
        if dry_run:
            return await self._undone(namespace, partial(_would_undo_items, by, after_position, limit, at_us))

        def apply(db: Connection) -> tuple[UndoStep, Outcome]:
            if (book := self._ledger.find(db, namespace)) is None:
                return UndoStep(), Outcome(Receipt(0))
            return undo_writes.undo_items(db, self._ledger, book, by, after_position, limit, at_us)

        return await self._write_step(namespace, apply)

    async def undo_states(
        self, namespace: str, by: WritesBy, after_key: str, limit: int, *, dry_run: bool
    ) -> UndoStep:
        at_us = present_us()
        if dry_run:
            return await self._undone(namespace, partial(_would_undo_states, by, after_key, limit, at_us))

        def apply(db: Connection) -> tuple[UndoStep, Outcome]:
            if (book := self._ledger.find(db, namespace)) is None:
                return UndoStep(), Outcome(Receipt(0))
            return undo_writes.undo_states(db, self._ledger, book, by, after_key, limit, at_us)

        return await self._write_step(namespace, apply)

    async def _write_step(
        self, namespace: str, apply: Callable[[Connection], tuple[UndoStep, Outcome]]
    ) -> UndoStep:
        done = await self._queue.write(apply, self._publish_step, owner=namespace, heavy=True, shrinks=True)
        return done[0]

    def _publish_step(self, done: tuple[UndoStep, Outcome]) -> None:
        self._publish(done[1])

    async def _undone(self, namespace: str, tell: Callable[[int, Connection], UndoStep]) -> UndoStep:
        """Return what an undo would do."""
        info = self._info(namespace)
        return UndoStep() if info is None else await self._read(partial(tell, info.uid))

    async def count_removals(self, namespace: str, by: WritesBy) -> int:
        info = self._info(namespace)
        if info is None:
            return 0
        uid = info.uid
        return await self._read(lambda db: undo_writes.count_removals(db, uid, by))

    async def record_undo(self, namespace: str, receipt: Receipt, request: RequestKey) -> Receipt:
        def apply(db: Connection) -> Outcome:
            book = self._ledger.find_or_begin(db, namespace)
            return earlier(db, book, request) or finish(db, book, request, Outcome(receipt))

        return await self._write(namespace, apply, shrinks=True)

    # --- changes ------------------------------------------------------------------------------

    async def read_changes(self, namespace: str, after_revision: int, limit: int) -> list[Change]:
        info = self._info(namespace)
        if info is None or after_revision >= info.revision:
            return []
        statement = "SELECT key, type, subject FROM changes WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?"
        # Only what is published: a commit is not visible before its views are.
        first, last = key_of(info.uid, after_revision + 1), key_of(info.uid, info.revision)
        values = (first, last, limit)
        rows = await self._read(lambda db: db.execute(statement, values).fetchall())
        return [Change(ChangeType(kind), key & POSITION_MAX, subject) for key, kind, subject in rows]

    async def wait_for_change(self, namespace: str, after_revision: int) -> None:
        before = self._info(namespace)

        def happened() -> bool:
            found = self._info(namespace)
            if before is not None and (found is None or found.uid != before.uid):
                return True
            return found is not None and found.revision > after_revision

        await self._signal.wait_until(namespace, happened)

    # --- namespaces ---------------------------------------------------------------------------

    async def namespace(self, namespace: str) -> NamespaceInfo | None:
        return self._info(namespace)

    async def scan_namespaces(self, prefix: str, after: str, limit: int) -> list[NamespaceInfo]:
        statement = (
            f"SELECT {NAMESPACE_COLUMNS} FROM namespaces WHERE name > ? AND name >= ?"
            " AND substr(name, 1, ?) = ? ORDER BY name LIMIT ?"
        )
        # Names begin with the prefix up to the first name that is greater and does not.
        values = (after, prefix, len(prefix), prefix, limit)
        rows = await self._read(lambda db: db.execute(statement, values).fetchall())
        return [namespace_of(row) for row in rows]

    async def index_info(self, namespace: str) -> IndexInfo:
        view = self._views.peek(namespace)
        return view.index_info() if view else IndexInfo()

    async def reset(self, namespace: str, *, request: RequestKey | None = None) -> Receipt:
        return await self._write(
            namespace,
            lambda db: namespace_writes.reset(db, self._ledger, namespace, request),
            heavy=True,
            shrinks=True,
        )

    async def delete_namespace(self, namespace: str) -> Receipt:
        def publish(outcome: Outcome) -> None:
            info = outcome.info
            assert info is not None
            self._known.pop(namespace, None)
            self._views.drop(namespace)
            self._items.clear()
            self._snapshots.remove(info.uid)
            self._signal.fire(namespace)

        outcome = await self._queue.write(
            lambda db: namespace_writes.delete_namespace(db, self._ledger, namespace),
            publish,
            owner=namespace,
            heavy=True,
            shrinks=True,
        )
        return outcome.receipt

    async def remove_expired(self, now_us: int, forget_requests_before_us: int, limit: int) -> int:
        def apply(db: Connection) -> list[Outcome]:
            return namespace_writes.remove_expired(
                db, self._ledger, now_us, forget_requests_before_us, now_us - self._history_us, limit
            )

        def publish(outcomes: list[Outcome]) -> None:
            for outcome in outcomes:
                self._publish(outcome)
                reach("sweep.after_publish")

        outcomes = await self._queue.write(apply, publish, heavy=True, shrinks=True)
        return sum(o.receipt.removed_count + o.receipt.removed_state_count for o in outcomes)


def _close_all(opened: ExitStack) -> None:
    """Close connections and lock, whatever the disk says to it."""
    try:
        with translated():
            opened.close()
    except (Unavailable, StorageFull, OSError) as error:
        _log.error("close_failed", cause=cause_of(error))


def _load(db: Connection, keys: Sequence[int], columns: str, no_vector_key: int) -> list[Item | None]:
    """Return the items of these keys, whose first column is the key; None for those that are not there."""
    found: dict[int, Item] = {}
    for start in range(0, len(keys), _READ_TOGETHER):
        some = keys[start : start + _READ_TOGETHER]
        # One statement: to begin and end one takes longer than to find a row.
        places = ",".join("?" * len(some))
        for row in db.execute(f"SELECT {columns} FROM items WHERE key IN ({places})", some):
            found[row[0]] = item_of(row, no_vector_key)
    return [found.get(key) for key in keys]


def _would_undo_items(by: WritesBy, after: int, limit: int, at_us: int, uid: int, db: Connection) -> UndoStep:
    step, keys = UndoStep(), undo_writes.touched_items(db, uid, by, after, limit)
    for key in keys:
        undo_writes.count(step, *undo_writes.plan_item(db, key, by, at_us))
    step.following = keys[-1] & POSITION_MAX if len(keys) == limit else None
    return step


def _would_undo_states(
    by: WritesBy, after: str, limit: int, at_us: int, uid: int, db: Connection
) -> UndoStep:
    step, keys = UndoStep(), undo_writes.touched_states(db, uid, by, after, limit)
    for key in keys:
        undo_writes.count(step, key, undo_writes.plan_state(db, uid, key, by, at_us)[1])
    step.following = keys[-1] if len(keys) == limit else None
    return step


def _content_bytes(item: Item) -> int:
    """Return about how much an item's content takes."""
    content = item.content
    if isinstance(content, TextPart):
        return len(content.text) + 64 * len(item.labels)
    return len(msgspec.json.encode(content)) + 64 * len(item.labels)
