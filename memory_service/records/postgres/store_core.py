"""The common base of the store's parts: the database, the write queue and the known namespaces."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from memory_service.data_model import NamespaceInfo
from memory_service.indexes.analysis import Analyzer
from memory_service.records.base import HISTORY_US
from memory_service.records.change_signal import ChangeSignal
from memory_service.records.postgres.database import Async, Database, Row
from memory_service.records.postgres.lookups import Needs
from memory_service.records.postgres.page import Page
from memory_service.records.postgres.rows import NAMESPACE_COLUMNS, columns_of, namespace_of, text_in
from memory_service.records.postgres.schema import part_of
from memory_service.records.postgres.write_queue import WriteQueue
from memory_service.records.row_source import Follower
from memory_service.runtime.caller import Caller

T = TypeVar("T")

_KNOWN_NAMESPACES_MAX = 50_000
OF_NAME = "FROM $.namespaces n WHERE n.part = %s AND n.name = %s"
INFO = f"SELECT {columns_of('n', NAMESPACE_COLUMNS)} {OF_NAME}"


class StoreCore:
    """How each part reads and writes."""

    _queue: WriteQueue

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "memory_service",
        history_us: int = HISTORY_US,
        namespace_bytes_max: int = 0,
        queued_writes_max: int = 10_000,
    ) -> None:
        """`dsn` is a libpq connection string; `namespace_bytes_max` 0: no limit."""
        self._database = Database(dsn, schema)
        self._history_us = history_us
        self._keeps_history = history_us > 0
        self._namespace_bytes_max = namespace_bytes_max
        self._queued_writes_max = queued_writes_max
        self._analyzer = Analyzer()
        self._signal = ChangeSignal()
        self._known: OrderedDict[str, NamespaceInfo] = OrderedDict()
        self._follower = Follower()

    async def _fetch(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return await self._database.fetch(statement, values)

    async def _fetch_of(self, statement: str, namespace: str, *values: Any) -> list[Row]:
        """Return the rows of a statement whose first values are a namespace's part and name."""
        return await self._fetch(statement, (part_of(namespace), text_in(namespace), *values))

    async def _info(self, namespace: str) -> NamespaceInfo | None:
        """Return the present state of a namespace."""
        rows = await self._fetch_of(INFO, namespace)
        info = namespace_of(rows[0]) if rows else None
        self._remember(namespace, info)
        return info

    def _remember(self, namespace: str, info: NamespaceInfo | None) -> None:
        """Remember the last seen state of a namespace; None if it does not exist."""
        if info is None:
            self._known.pop(namespace, None)
            return
        self._known[namespace] = info
        self._known.move_to_end(namespace)
        if len(self._known) > _KNOWN_NAMESPACES_MAX:
            self._known.popitem(last=False)

    def _forget_known(self, namespaces: Iterable[str]) -> None:
        for namespace in namespaces:
            self._known.pop(namespace, None)

    async def _write(self, namespace: str, by: Caller, needs: Needs, apply: Callable[[Page], T]) -> T:
        """Make a write, grouped with others."""
        return await self._queue.write((by.name, namespace), needs, apply)

    async def _write_alone(
        self,
        namespace: str,
        by: Caller,
        prepare: Callable[[Async, Page], Awaitable[None]],
        apply: Callable[[Page], T],
        needs: Needs | None = None,
    ) -> T:
        """Make a write in a separate transaction."""
        return await self._queue.write((by.name, namespace), needs or Needs(), apply, prepare=prepare)

    def _publish(self, pages: Iterable[Page]) -> None:
        """Publish a commit."""
        for page in pages:
            if not page.touched or page.book is None:
                continue
            self._remember(page.name, None if page.deleted else page.book.info())
            self._committed(page)
            self._signal.fire(page.name)

    def _committed(self, page: Page) -> None:
        """Note a commit by this process. Stores with views override this to notify them."""
