"""The common base of the store's parts: the database, the commit queue and the caches."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from memory_service.data_key import DataKey
from memory_service.data_model import NamespaceInfo, Receipt, RequestKey
from memory_service.indexes.analysis import Analyzer
from memory_service.records.base import HISTORY_US
from memory_service.records.change_signal import ChangeSignal
from memory_service.records.item_cache import ItemCache
from memory_service.records.row_source import Follower
from memory_service.records.sqlite.commit_queue import CommitQueue
from memory_service.records.sqlite.connection import Connection, translated
from memory_service.records.sqlite.disk_space import DiskSpace, SpaceSettings
from memory_service.records.sqlite.ledger import Ledger, Outcome
from memory_service.records.sqlite.namespace_bytes import bytes_of, check_namespace
from memory_service.records.sqlite.rows import NAMESPACE_COLUMNS, namespace_of
from memory_service.records.sqlite.schema import key_of
from memory_service.runtime.caller import Caller
from memory_service.runtime.yielding import aside

T = TypeVar("T")

_KNOWN_NAMESPACES_MAX = 50_000


class StoreCore:
    """How each part reads and writes. Writes go through the queue and are published after their commit."""

    _writer: Connection
    _reader: Connection
    """For reads of a few rows on the event loop; other reads run in threads."""
    _spare_readers: SimpleQueue[Connection]
    _threads: ThreadPoolExecutor
    _queue: CommitQueue

    def __init__(
        self,
        data_dir: Path,
        key: DataKey | None = None,
        *,
        items_bytes_max: int = 128 << 20,
        history_us: int = HISTORY_US,
        space: SpaceSettings | None = None,
        namespace_bytes_max: int = 0,
        queued_writes_max: int = 10_000,
    ) -> None:
        """`key` None: the data folder is not encrypted. `namespace_bytes_max` 0: no limit."""
        self._data_dir = data_dir
        self._space = DiskSpace(data_dir, space or SpaceSettings())
        self._key = key
        self._records_key = key.derive("records") if key else None
        self._history_us = history_us
        self._ledger = Ledger(keeps_history=history_us > 0)
        self._analyzer = Analyzer()
        self._signal = ChangeSignal()
        self._items = ItemCache(items_bytes_max)
        self._known: OrderedDict[str, NamespaceInfo] = OrderedDict()
        self._follower = Follower()
        self._queued_writes_max = queued_writes_max
        self._namespace_bytes_max = namespace_bytes_max
        # Namespaces whose bytes were counted; may be incomplete.
        self._counted: set[int] = set()

    async def _read(self, work: Callable[[Connection], T]) -> T:
        """Read in a thread, with exclusive use of a connection."""
        found = await aside(asyncio.get_running_loop().run_in_executor(self._threads, self._read_now, work))
        await aside(self._queue.published())
        return found

    def _read_now(self, work: Callable[[Connection], T]) -> T:
        connection = self._spare_readers.get()
        try:
            with translated():
                return work(connection)
        finally:
            self._spare_readers.put(connection)

    def _info(self, namespace: str) -> NamespaceInfo | None:
        """Return a namespace as of the last commit. Reads at most one row.

        A row read here may be newer than the last published commit; publishing replaces it.
        """
        info = self._known.get(namespace)
        if info is not None:
            self._known.move_to_end(namespace)
            return info
        with translated():
            row = self._reader.execute(
                f"SELECT {NAMESPACE_COLUMNS} FROM namespaces WHERE name = ?", (namespace,)
            ).fetchone()
        if row is None:
            return None
        info = namespace_of(row)
        self._remember(info)
        return info

    def _remember(self, info: NamespaceInfo) -> None:
        self._known[info.name] = info
        self._known.move_to_end(info.name)
        if len(self._known) > _KNOWN_NAMESPACES_MAX:
            self._known.popitem(last=False)

    async def _write(
        self,
        namespace: str,
        by: Caller,
        apply: Callable[[Connection], Outcome],
        *,
        heavy: bool = False,
        shrinks: bool = False,
    ) -> Receipt:
        owner = (by.name, namespace)
        outcome = await self._queue.write(apply, self._publish, owner=owner, heavy=heavy, shrinks=shrinks)
        return outcome.receipt

    async def _grow(
        self,
        namespace: str,
        by: Caller,
        apply: Callable[[Connection], Outcome],
        request: RequestKey | None,
        *,
        heavy: bool = False,
    ) -> Receipt:
        """Make a write that adds to a namespace, within its limit of bytes."""
        limit = self._namespace_bytes_max
        if not limit:
            return await self._write(namespace, by, apply, heavy=heavy)
        await self._count_bytes(namespace, by)

        def apply_within_limit(db: Connection) -> Outcome:
            check_namespace(db, self._ledger, namespace, limit, request)
            return apply(db)

        return await self._write(namespace, by, apply_within_limit, heavy=heavy)

    async def _count_bytes(self, namespace: str, by: Caller) -> None:
        """Count the bytes of a namespace, unless already counted, in the commit thread."""
        info = self._info(namespace)
        if info is None or info.uid in self._counted:
            return
        uid = info.uid
        await self._queue.write(
            lambda db: bytes_of(db, uid), lambda _: None, owner=(by.name, namespace), heavy=True, shrinks=True
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
            self._follower.begin(info, emptied=outcome.emptied)
        effect = outcome.effect
        if outcome.emptied or effect.moved:
            self._items.clear()
        for position in (*effect.removed, *effect.expiries, *(fill[0] for fill in effect.filled)):
            self._items.discard(key_of(info.uid, position))
        for entry in (*effect.added, *(entry for entry, _ in effect.replaced)):
            self._items.put_written(key_of(info.uid, entry.position), entry.item)
        effect.uid, effect.revision = info.uid, info.revision
        effect.vector_epoch, effect.dimension = info.vector_epoch, info.dimension
        self._follower.publish(info.name, effect)
        self._signal.fire(info.name)
