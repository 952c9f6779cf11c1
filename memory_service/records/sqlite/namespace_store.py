"""Namespaces as a whole, and removal of expired data."""

from __future__ import annotations

from memory_service.data_model import NamespaceInfo, NamespaceSettings, Receipt, RequestKey
from memory_service.errors import NotFound
from memory_service.records.base import NamespaceStore
from memory_service.records.sqlite import namespace_writes
from memory_service.records.sqlite.connection import Connection
from memory_service.records.sqlite.ledger import Outcome, earlier, finish
from memory_service.records.sqlite.namespace_bytes import counted_bytes
from memory_service.records.sqlite.rows import NAMESPACE_COLUMNS, namespace_of
from memory_service.records.sqlite.store_core import StoreCore
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.failpoints import reach


class SqliteNamespaceStore(StoreCore, NamespaceStore):
    """Knows namespaces from their last commit, or reads one row."""

    async def namespace(self, namespace: str, *, fresh: bool = True) -> NamespaceInfo | None:
        return self._info(namespace)

    async def namespace_bytes(self, namespace: str) -> int:
        info = self._info(namespace)
        return await self._read(lambda db: counted_bytes(db, info.uid)) if info else 0

    async def scan_namespaces(self, prefix: str, after: str, limit: int) -> list[NamespaceInfo]:
        statement = (
            f"SELECT {NAMESPACE_COLUMNS} FROM namespaces WHERE name > ? AND name >= ?"
            " AND substr(name, 1, ?) = ? ORDER BY name LIMIT ?"
        )
        # `name >= prefix` lets the scan of the index begin at the first name with the prefix.
        values = (after, prefix, len(prefix), prefix, limit)
        rows = await self._read(lambda db: db.execute(statement, values).fetchall())
        return [namespace_of(row) for row in rows]

    async def save_settings(
        self, namespace: str, settings: NamespaceSettings, *, expected_version: int, by: Caller = ANYBODY
    ) -> NamespaceInfo:
        await self._write(
            namespace,
            by,
            lambda db: namespace_writes.save_settings(
                db, self._ledger, namespace, settings, expected_version
            ),
        )
        info = self._info(namespace)
        if info is None:
            raise NotFound.namespace(namespace)  # It was deleted meanwhile.
        return info

    async def record_request(
        self, namespace: str, receipt: Receipt, request: RequestKey, *, by: Caller = ANYBODY
    ) -> Receipt:
        def apply(db: Connection) -> Outcome:
            began = self._ledger.find(db, namespace) is None
            book = self._ledger.find_or_begin(db, namespace)
            return earlier(db, book, request) or finish(db, book, request, Outcome(receipt, began=began))

        # `complete` adds an answer, which takes space that a full disk lacks.
        return await self._write(namespace, by, apply, shrinks=request.complete is None)

    async def reset(
        self, namespace: str, *, request: RequestKey | None = None, by: Caller = ANYBODY
    ) -> Receipt:
        return await self._write(
            namespace,
            by,
            lambda db: namespace_writes.reset(db, self._ledger, namespace, request),
            heavy=True,
            shrinks=True,
        )

    async def delete_namespace(self, namespace: str, *, by: Caller = ANYBODY) -> Receipt:
        def publish(outcome: Outcome) -> None:
            info = outcome.info
            assert info is not None
            self._known.pop(namespace, None)
            self._items.clear()
            self._follower.end(namespace, info.uid)
            self._signal.fire(namespace)

        outcome = await self._queue.write(
            lambda db: namespace_writes.delete_namespace(db, self._ledger, namespace),
            publish,
            owner=(by.name, namespace),
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
