"""Vectors that are filled in later."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import Item, NamespaceInfo, VectorFill
from memory_service.errors import NotFound
from memory_service.records.base import PendingStore
from memory_service.records.postgres.item_writes import fill_vector
from memory_service.records.postgres.lookups import Needs
from memory_service.records.postgres.page import MOVED, Page
from memory_service.records.postgres.rows import ITEM_COLUMNS, columns_of, item_of, text_in, text_of
from memory_service.records.postgres.store_core import OF_NAME, StoreCore
from memory_service.records.rules.vectors import REVISION_BITS, check_fills, check_move, vector_key
from memory_service.records.stored_values import vector_bytes
from memory_service.runtime.caller import ANYBODY, Caller

_JOIN = OF_NAME.replace(
    "$.namespaces n", "$.namespaces n JOIN $.items i ON i.part = n.part AND i.uid = n.uid"
)
# Items written as pending have an index; finding the others scans every row.
_PENDING = (
    f"SELECT n.vector_epoch, {columns_of('i', ITEM_COLUMNS)} {_JOIN} AND i.position > %s"
    f" AND (i.vector_key < 0 OR (n.moving AND i.vector_key < n.vector_epoch << {REVISION_BITS}))"
    " ORDER BY i.position LIMIT %s"
)


class PostgresPendingStore(StoreCore, PendingStore):
    """Gives up vectors by increasing the namespace's epoch: no item's row is written."""

    async def begin_reembedding(
        self,
        namespace: str,
        model: str,
        dimension: int,
        *,
        replace_client_vectors: bool,
        by: Caller = ANYBODY,
    ) -> NamespaceInfo:
        def apply(page: Page) -> NamespaceInfo:
            book = page.book
            if book is None:
                raise NotFound.namespace(namespace)
            if check_move(book.info(), model, dimension, replace_client_vectors):
                page.open(0)
                book.vector_epoch += 1
                book.model, book.dimension = model, dimension
                book.embedded_count, book.pending_count = 0, book.item_count
                book.moving = True
                page.pending.flags |= MOVED
            return book.info()

        return await self._write(namespace, by, Needs(), apply)

    async def namespaces_with_pending(self, after: str, limit: int, *, model: str = "") -> list[str]:
        rows = await self._fetch(
            "SELECT name FROM $.namespaces WHERE pending_count > 0 AND name > %s AND %s IN ('', model)"
            " ORDER BY name LIMIT %s",
            (text_in(after), text_in(model), limit),
        )
        return [text_of(name) for (name,) in rows]

    async def pending_items(self, namespace: str, after_position: int, limit: int) -> list[Item]:
        rows = await self._fetch_of(_PENDING, namespace, after_position, limit)
        return [item_of(row[1:], vector_key(row[0], 0)) for row in rows]

    async def fill_vectors(self, namespace: str, uid: int, model: str, fills: Sequence[VectorFill]) -> int:
        vectors = [vector_bytes(fill.vector) for fill in fills]

        def apply(page: Page) -> int:
            book = page.book
            if book is None or book.uid != uid:
                return 0
            dimension = check_fills(book.info(), model, fills)
            done = sum(
                fill_vector(page, fill.position, fill.revision, vector)
                for fill, vector in zip(fills, vectors, strict=True)
            )
            if done:
                page.open(0)
                book.dimension = dimension
            return done

        needs = Needs(positions=[fill.position for fill in fills])
        return await self._write(namespace, ANYBODY, needs, apply)
