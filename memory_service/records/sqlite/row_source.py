"""The rows of a namespace as views read them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memory_service.data_model import (
    UNSET_IMPORTANCE,
    Item,
    NamespaceInfo,
)
from memory_service.indexes.value_column import Value
from memory_service.indexes.view import NEVER_US
from memory_service.predicates import Field
from memory_service.records.row_source import FollowedSource, Follower, RowBatch, Rows
from memory_service.records.rules.vectors import vector_key
from memory_service.records.sqlite.column_values import values
from memory_service.records.sqlite.connection import Connection, Row, translated
from memory_service.records.sqlite.rows import (
    ITEM_COLUMNS,
    NAMESPACE_COLUMNS,
    OUTLINE_COLUMNS,
    item_of,
    namespace_of,
)
from memory_service.records.sqlite.schema import FORMAT, POSITION_MAX, key_of, keys_of
from memory_service.records.sqlite.store_core import StoreCore
from memory_service.records.stored_values import described
from memory_service.runtime.yielding import each

T = TypeVar("T")

_BATCH_COLUMNS = (
    f"key, session_id, create_us, ifnull(expire_us, {NEVER_US}), labels, vector_revision, terms,"
    f" facet, ifnull(importance, {UNSET_IMPORTANCE}), use_count"
)
_INLINE_READS_MAX = 64
_READ_TOGETHER = 64
_INLINE_CHARS_MAX = 256 * 1024
"""Most content decoded without giving way to other calls. Doubled: others may wait for 5 ms longer."""
_CONTENT_AT = ITEM_COLUMNS.split(", ").index("content")
_ROWS_AT_ONCE = 8192
_VECTORS_AT_ONCE = 4096
# Fewer vectors than this, or than this share of all, are looked up one by one.
_FEW = 2048
_FEW_SHARE = 8


class SqliteRowSource(StoreCore, FollowedSource):
    """Reads many rows in threads, and cached items or a few rows on the event loop."""

    records_format = FORMAT

    def follow(self, follower: Follower) -> None:
        self._follower = follower

    async def manifests(self) -> list[str]:
        with translated():
            return [str(manifest) for (manifest,) in self._reader.execute("SELECT manifest FROM snapshots")]

    async def load_items(
        self,
        info: NamespaceInfo,
        positions: Sequence[int],
        *,
        with_embedding: bool,
        with_content: bool = True,
    ) -> list[Item | None]:
        first = key_of(info.uid, 0)
        keys = [first + position for position in positions]
        items = [] if with_embedding else self._items.get_all(keys)
        if items and all(items):
            return items
        # The vectors may have been given up since.
        now = self._info(info.name)
        if now is None:
            return [None] * len(positions)
        none = vector_key(now.vector_epoch, 0)
        if with_embedding:
            columns = f"{ITEM_COLUMNS}, embedding"
            return await self._read(lambda db: _load(db, keys, columns, none))
        missing = [at for at, item in enumerate(items) if item is None]
        wanted = [keys[at] for at in missing]
        if not with_content:
            loaded = await self._read(lambda db: _load(db, wanted, OUTLINE_COLUMNS, none))
            for at, item in zip(missing, loaded, strict=True):
                items[at] = item
            return items
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
            # Others may be older than a commit published while they were read.
            if item is not None and fresh:
                self._items.put(keys[at], item)
        return items

    async def read_rows(self, namespace: str, work: Callable[[Rows], T]) -> T | None:
        def look(connection: Connection) -> T | None:
            with reading(connection, namespace) as rows:
                return None if rows is None else work(rows)

        return await self._read(look)

    async def keep_manifest(self, uid: int, manifest: str) -> bool:
        def apply(db: Connection) -> bool:
            db.execute(
                "INSERT OR REPLACE INTO snapshots (uid, manifest)"
                " SELECT uid, ? FROM namespaces WHERE uid = ?",
                (manifest, uid),
            )
            return bool(db.changes())

        return await self._queue.record(apply)


@contextmanager
def reading(connection: Connection, namespace: str) -> Iterator[Rows | None]:
    """Provide the present rows of a namespace; None if it does not exist."""
    connection.execute("BEGIN")
    try:
        row = connection.execute(
            f"SELECT {NAMESPACE_COLUMNS} FROM namespaces WHERE name = ?", (namespace,)
        ).fetchone()
        yield None if row is None else _SqliteRows(connection, namespace_of(row))
    finally:
        connection.execute("COMMIT")


class _SqliteRows(Rows):
    def __init__(self, connection: Connection, info: NamespaceInfo) -> None:
        self.info = info
        self._execute = connection.execute
        self._connection = connection
        self._no_vector = vector_key(info.vector_epoch, 0)

    def above(self, position: int) -> Iterator[RowBatch]:
        statement = f"SELECT {_BATCH_COLUMNS} FROM items WHERE key > ? AND key <= ? ORDER BY key"
        uid = self.info.uid
        return self._batches(self._execute(statement, (key_of(uid, position), key_of(uid, POSITION_MAX))))

    def of_ids(self, ids: Collection[str], up_to: int) -> Iterator[RowBatch]:
        uid, last = self.info.uid, key_of(self.info.uid, up_to)
        statement = f"SELECT {_BATCH_COLUMNS} FROM items WHERE uid = ? AND id = ? AND key <= ?"
        found = (self._execute(statement, (uid, item_id, last)).fetchone() for item_id in sorted(ids))
        return self._batches(filter(None, found))

    def _batches(self, rows: Iterator[Row]) -> Iterator[RowBatch]:
        while some := list(islice(rows, _ROWS_AT_ONCE)):
            (
                keys, sessions, create_us, expire_us, labels, vector_keys, terms, facets, importances, uses,
            ) = zip(*some, strict=True)  # fmt: skip
            indexed, kinds = described(labels, facets)
            yield RowBatch(
                np.array(keys, np.int64) & POSITION_MAX,
                sessions,
                np.array(create_us, np.int64),
                np.array(expire_us, np.int64),
                indexed,
                kinds,
                self._keys_of_vectors(vector_keys),
                terms,
                np.array(importances, np.float64),
                np.array(uses, np.int32),
            )

    def _keys_of_vectors(self, stored: Sequence[int]) -> NDArray[np.int64]:
        keys = np.array(stored, np.int64)
        return np.where(keys > self._no_vector, keys, 0)

    def changes(self, since: int) -> list[tuple[int, str]]:
        keys = key_of(self.info.uid, since), key_of(self.info.uid, self.info.revision)
        return list(self._execute("SELECT type, subject FROM changes WHERE key > ? AND key <= ?", keys))

    def positions(self) -> NDArray[np.int64]:
        # By the index of ids, which is much smaller than the table.
        keys = self._execute("SELECT key FROM items INDEXED BY items_by_id WHERE uid = ?", (self.info.uid,))
        return np.fromiter((key for (key,) in keys), np.int64) & POSITION_MAX

    def uses(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows = self._execute(
            "SELECT key, use_count FROM items INDEXED BY items_used"
            " WHERE use_count > 0 AND key BETWEEN ? AND ?",
            keys_of(self.info.uid),
        )
        read = np.fromiter(rows, [("key", np.int64), ("count", np.int64)])
        return read["key"] & POSITION_MAX, read["count"]

    def expiries(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows = self._execute(
            "SELECT key, expire_us FROM items INDEXED BY items_refreshed"
            " WHERE expire_us > update_us + ttl_us AND key BETWEEN ? AND ?",
            keys_of(self.info.uid),
        )
        read = np.fromiter(rows, [("key", np.int64), ("expire_us", np.int64)])
        return read["key"] & POSITION_MAX, read["expire_us"]

    def vector_keys(self, positions: Sequence[int]) -> NDArray[np.int64]:
        return self._keys_of_vectors([key or 0 for key in self._each("vector_revision", positions)])

    def vectors(self, positions: Sequence[int]) -> Iterator[NDArray[np.float32]]:
        few = len(positions) <= max(_FEW, self.info.item_count // _FEW_SHARE)
        vectors = self._each("embedding", positions) if few else self._most_vectors(positions)
        # In parts: all of them as bytes would double the memory.
        while some := list(islice(vectors, _VECTORS_AT_ONCE)):
            yield np.frombuffer(b"".join(some), "<f4").reshape(len(some), self.info.dimension)

    def _each(self, column: str, positions: Sequence[int]) -> Iterator[Any]:
        statement, first = f"SELECT {column} FROM items WHERE key = ?", key_of(self.info.uid, 0)
        return (self._execute(statement, (first + position,)).get for position in positions)

    def _most_vectors(self, positions: Sequence[int]) -> Iterator[bytes]:
        wanted = set(positions)
        ends = key_of(self.info.uid, positions[0]), key_of(self.info.uid, positions[-1])
        rows = self._execute("SELECT key, embedding FROM items WHERE key BETWEEN ? AND ? ORDER BY key", ends)
        return (vector for key, vector in rows if key & POSITION_MAX in wanted)

    def values(self, fields: Sequence[Field]) -> Iterator[tuple[NDArray[np.int64], list[list[Value]]]]:
        return values(self._connection, self.info.uid, fields)

    def manifest(self) -> str | None:
        row = self._execute("SELECT manifest FROM snapshots WHERE uid = ?", (self.info.uid,)).fetchone()
        return None if row is None else str(row[0])


def _load(db: Connection, keys: Sequence[int], columns: str, no_vector_key: int) -> list[Item | None]:
    """Return the items with these keys, the first of `columns`; None for items that do not exist."""
    found = {row[0]: item_of(row, no_vector_key) for row in _rows(db, keys, columns)}
    return [found.get(key) for key in keys]


def _rows(db: Connection, keys: Sequence[int], columns: str) -> list[Row]:
    """Return the rows with these keys, in any order."""
    found: list[Row] = []
    for start in range(0, len(keys), _READ_TOGETHER):
        some = keys[start : start + _READ_TOGETHER]
        # One statement for several rows: starting and ending it takes longer than finding a row.
        places = ",".join("?" * len(some))
        found += db.execute(f"SELECT {columns} FROM items WHERE key IN ({places})", some)
    return found
