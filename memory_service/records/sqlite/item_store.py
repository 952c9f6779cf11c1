"""Items: written, read by their keys, scanned and searched."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import (
    Around,
    Hits,
    Item,
    ItemFilter,
    ItemWrite,
    OnDuplicate,
    Receipt,
    RequestKey,
    SearchQuery,
    Since,
    StateWrite,
)
from memory_service.indexes.neighbours import neighbours
from memory_service.indexes.selection import scan
from memory_service.predicates import column_fields
from memory_service.records.base import ItemStore
from memory_service.records.effects import Effect
from memory_service.records.sqlite import item_writes
from memory_service.records.sqlite.commit_queue import HEAVY_ITEMS
from memory_service.records.sqlite.connection import Connection, Row, translated
from memory_service.records.sqlite.kept_answers import find_receipt
from memory_service.records.sqlite.ledger import Outcome
from memory_service.records.sqlite.rows import ITEM_COLUMNS, item_of
from memory_service.records.sqlite.schema import key_of, vector_key
from memory_service.records.sqlite.store_core import StoreCore
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.yielding import each

_ITEM_BY_ID = f"SELECT {ITEM_COLUMNS} FROM items WHERE uid = ? AND id = ?"
_KEPT_VERSION = (
    f"SELECT {', '.join('?' if name == 'id' else name for name in ITEM_COLUMNS.split(', '))}"
    " FROM item_history WHERE key = ? AND revision = ?"
)
_INLINE_READS_MAX = 64
_READ_TOGETHER = 64
_INLINE_CHARS_MAX = 256 * 1024
"""Of contents that are read in one piece. Doubled, that piece gets 5 ms longer."""
_CONTENT_AT = ITEM_COLUMNS.split(", ").index("content")


class SqliteItemStore(StoreCore, ItemStore):
    """Reads of single items go to SQL or the cache, all that looks for items to the views."""

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
        unchanged: Since | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        info = self._info(namespace) if unchanged else None
        # How many changes have to be looked at, about.
        behind = info.revision - unchanged.revision if info and unchanged else 0
        heavy = len(writes) + len(states) + len(removals) + behind > HEAVY_ITEMS
        terms = await each(self._analyzer.item_terms, writes)

        def apply(db: Connection) -> Outcome:
            return item_writes.add_items(
                db, self._ledger, namespace, writes, terms, states, removals, on_duplicate, request,
                by, released, unchanged,
            )  # fmt: skip

        # What goes may leave changes behind in what stays: that, too, is forgetting.
        if len(writes) <= len(removals) and not states:
            receipt = await self._write(namespace, by, apply, heavy=heavy, shrinks=True)
        else:
            receipt = await self._grow(namespace, by, apply, request, heavy=heavy)
        if heavy:
            await self._views.index_added(namespace)
        return receipt

    async def find_receipt(self, namespace: str, request: RequestKey) -> Receipt | None:
        info = self._info(namespace)
        if info is None:
            return None
        with translated():
            return find_receipt(self._reader, info.uid, request)

    async def replace_item(
        self,
        namespace: str,
        write: ItemWrite,
        *,
        expected_revision: int | None = None,
        request: RequestKey | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        terms = self._analyzer.item_terms(write)

        def apply(db: Connection) -> Outcome:
            return item_writes.replace_item(
                db, self._ledger, namespace, write, terms, expected_revision, request
            )

        return await self._grow(namespace, by, apply, request)

    async def delete_item(
        self,
        namespace: str,
        item_id: str,
        *,
        now_us: int,
        expected_revision: int | None = None,
        request: RequestKey | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        def apply(db: Connection) -> Outcome:
            return item_writes.delete_item(
                db, self._ledger, namespace, item_id, now_us, expected_revision, request, by
            )

        return await self._write(namespace, by, apply, shrinks=True)

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
                rows = _rows(self._reader, wanted, ITEM_COLUMNS)
            fresh = sum(len(row[_CONTENT_AT]) for row in rows) <= _INLINE_CHARS_MAX
            if fresh:
                read = [item_of(row, none) for row in rows]
            else:
                read = await each(lambda row: item_of(row, none), rows)
            by_key = {row[0]: item for row, item in zip(rows, read, strict=True)}
            loaded = [by_key.get(key) for key in wanted]
        else:
            loaded = await self._read(lambda db: _load(db, wanted, ITEM_COLUMNS, none))
            fresh = False
        for at, item in zip(missing, loaded, strict=True):
            items[at] = item
            # One for which others came first may be older than a commit that was published meanwhile.
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

    async def record_uses(self, namespace: str, positions: Sequence[int], *, by: Caller = ANYBODY) -> None:
        def publish(use_counts: dict[int, int]) -> None:
            self._views.publish(namespace, Effect(use_counts=use_counts))

        await self._queue.write(
            lambda db: item_writes.record_uses(db, self._ledger, namespace, positions),
            publish,
            owner=(by.name, namespace),
            shrinks=True,
        )


def _load(db: Connection, keys: Sequence[int], columns: str, no_vector_key: int) -> list[Item | None]:
    """Return the items of these keys, whose first column is the key; None for those that are not there."""
    found = {row[0]: item_of(row, no_vector_key) for row in _rows(db, keys, columns)}
    return [found.get(key) for key in keys]


def _rows(db: Connection, keys: Sequence[int], columns: str) -> list[Row]:
    """Return the rows of these keys, in no order."""
    found: list[Row] = []
    for start in range(0, len(keys), _READ_TOGETHER):
        some = keys[start : start + _READ_TOGETHER]
        # One statement: to begin and end one takes longer than to find a row.
        places = ",".join("?" * len(some))
        found += db.execute(f"SELECT {columns} FROM items WHERE key IN ({places})", some)
    return found


def _versions(db: Connection, uid: int, versions: Sequence[tuple[str, int]]) -> list[Row]:
    """Return rows of ITEM_COLUMNS of those versions that there are."""
    found = []
    for item_id, revision in versions:
        row = db.execute(_ITEM_BY_ID, (uid, item_id)).fetchone()
        if row is not None and row[2] != revision:
            row = db.execute(_KEPT_VERSION, (item_id, row[0], revision)).fetchone()
        if row is not None:
            found.append(row)
    return found
