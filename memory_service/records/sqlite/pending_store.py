"""Vectors that are filled in later."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import Item, NamespaceInfo, VectorFill
from memory_service.records.base import PendingStore
from memory_service.records.sqlite import vector_writes
from memory_service.records.sqlite.connection import Connection
from memory_service.records.sqlite.ledger import Outcome
from memory_service.records.sqlite.rows import item_of
from memory_service.records.sqlite.store_core import StoreCore
from memory_service.runtime.caller import ANYBODY, Caller


class SqlitePendingStore(StoreCore, PendingStore):
    """Selects pending items in a thread, and writes vectors through the queue."""

    async def begin_reembedding(
        self,
        namespace: str,
        model: str,
        dimension: int,
        *,
        replace_client_vectors: bool,
        by: Caller = ANYBODY,
    ) -> NamespaceInfo:
        def apply(db: Connection) -> Outcome:
            return vector_writes.begin_reembedding(
                db, self._ledger, namespace, model, dimension, replace_client_vectors
            )

        info = (await self._queue.write(apply, self._publish, owner=(by.name, namespace))).info
        assert info is not None
        return info

    async def namespaces_with_pending(self, after: str, limit: int, *, model: str = "") -> list[str]:
        statement = (
            "SELECT name FROM namespaces WHERE pending_count > 0 AND name > ?1 AND ?2 IN ('', model)"
            " ORDER BY name LIMIT ?3"
        )
        rows = await self._read(lambda db: db.execute(statement, (after, model, limit)).fetchall())
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

        # Heavy, so that it does not hold up the event loop: no caller waits for it.
        owner = (ANYBODY.name, namespace)
        return len((await self._queue.write(apply, self._publish, owner=owner, heavy=True)).effect.filled)
