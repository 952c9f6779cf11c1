"""Items, read by their ids."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import (
    Item,
)
from memory_service.records.base import ItemStore
from memory_service.records.effects import Effect
from memory_service.records.rules.vectors import vector_key
from memory_service.records.rules.versions import REDACTED
from memory_service.records.sqlite import item_writes
from memory_service.records.sqlite.connection import Connection, Row, translated
from memory_service.records.sqlite.ledger import Outcome
from memory_service.records.sqlite.rows import ITEM_COLUMNS, item_of
from memory_service.records.sqlite.store_core import StoreCore
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.yielding import each

_ITEM_BY_ID = f"SELECT {ITEM_COLUMNS} FROM items WHERE uid = ? AND id = ?"
_KEPT_VERSION = (
    f"SELECT {', '.join('?' if name == 'id' else name for name in ITEM_COLUMNS.split(', '))}"
    f" FROM item_history WHERE key = ? AND revision = ? AND content <> '{REDACTED}'"
)
_INLINE_READS_MAX = 64


class SqliteItemStore(StoreCore, ItemStore):
    """Reads a few rows on the event loop."""

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
        items = await each(lambda row: item_of(row, none), filter(None, rows))
        return {item.id: item for item in items}

    async def get_versions(
        self, namespace: str, versions: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], Item]:
        info = self._info(namespace)
        if info is None or not versions:
            return {}
        uid, none = info.uid, vector_key(info.vector_epoch, 0)
        if len(versions) <= _INLINE_READS_MAX:
            with translated():
                rows = _versions(self._reader, uid, versions)
        else:
            rows = await self._read(lambda db: _versions(db, uid, versions))
        items = [item_of(row, none) for row in rows]
        return {(item.id, item.revision): item for item in items}

    async def record_uses(self, namespace: str, positions: Sequence[int], *, by: Caller = ANYBODY) -> None:
        def publish(use_counts: dict[int, int]) -> None:
            self._follower.publish(namespace, Effect(use_counts=use_counts))

        await self._queue.write(
            lambda db: item_writes.record_uses(db, self._ledger, namespace, positions),
            publish,
            owner=(by.name, namespace),
            shrinks=True,
        )

    async def refresh_expiry(
        self, namespace: str, positions: Sequence[int], now_us: int, *, by: Caller = ANYBODY
    ) -> None:
        def publish(outcome: Outcome | None) -> None:
            if outcome is not None:
                self._publish(outcome)

        await self._queue.write(
            lambda db: item_writes.refresh_expiry(db, self._ledger, namespace, positions, now_us),
            publish,
            owner=(by.name, namespace),
            shrinks=True,
        )

    async def link_parents(self, namespace: str, items: Sequence[Item], *, by: Caller = ANYBODY) -> None:
        await self._queue.write(
            lambda db: item_writes.link_parents(db, self._ledger, namespace, items),
            lambda _: None,
            owner=(by.name, namespace),
            # An item may have a hundred parents.
            heavy=True,
        )


def _versions(db: Connection, uid: int, versions: Sequence[tuple[str, int]]) -> list[Row]:
    """Return rows of ITEM_COLUMNS for those versions that exist."""
    found = []
    for item_id, revision in versions:
        row = db.execute(_ITEM_BY_ID, (uid, item_id)).fetchone()
        if row is not None and row[2] != revision:
            row = db.execute(_KEPT_VERSION, (item_id, row[0], revision)).fetchone()
        if row is not None:
            found.append(row)
    return found
