"""The rows of a namespace as views read them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memory_service.data_model import UNSET_IMPORTANCE, Item, NamespaceInfo
from memory_service.indexes.value_column import Value
from memory_service.indexes.view import NEVER_US
from memory_service.predicates import Field
from memory_service.records.contents import NO_CONTENT
from memory_service.records.postgres.column_values import values
from memory_service.records.postgres.database import Database, Row, Sync
from memory_service.records.postgres.rows import (
    ITEM_COLUMNS,
    NAMESPACE_COLUMNS,
    columns_of,
    item_of,
    namespace_of,
    text_in,
    text_of,
)
from memory_service.records.postgres.schema import FORMAT, part_of
from memory_service.records.postgres.snapshots import manifest_of, manifests
from memory_service.records.postgres.store_core import OF_NAME, StoreCore
from memory_service.records.row_source import FollowedSource, Follower, RowBatch, Rows
from memory_service.records.rules.vectors import vector_key
from memory_service.records.stored_values import described
from memory_service.runtime.yielding import aside, each

T = TypeVar("T")

READERS = 2
_ROWS_AT_ONCE = 8192
_VECTORS_AT_ONCE = 4096
_BATCH = (
    f"SELECT i.position, i.session_id, i.create_us, coalesce(i.expire_us, {NEVER_US}), i.labels,"
    f" i.vector_key, i.terms, i.facet, coalesce(i.importance, {UNSET_IMPORTANCE}),"
    " coalesce(u.count, 0) FROM $.items i LEFT JOIN $.uses u"
    " ON u.part = i.part AND u.uid = i.uid AND u.position = i.position"
)
_BATCH_OF = f"{_BATCH} WHERE i.part = %s AND i.uid = %s"
_BATCH_OF_IDS = f"{_BATCH} WHERE i.part + 0 = %s AND i.uid + 0 = %s AND i.id = ANY(%s::text[])"
_LOADED = (
    "FROM $.namespaces n JOIN $.items i ON i.part = n.part AND i.uid = n.uid"
    " WHERE n.part = %s AND n.uid = %s AND i.position = ANY(%s::bigint[])"
)
_MOST_VECTORS = (
    "COPY (SELECT position, embedding FROM $.items WHERE part = %s AND uid = %s AND vector_key > %s"
    " AND position BETWEEN %s AND %s ORDER BY position) TO STDOUT (FORMAT binary)"
)
_COPY_HEAD_BYTES = 19
# Fewer vectors than this, or than this share of all, are looked up one by one.
_FEW, _FEW_SHARE = 64, 8


class PostgresRowSource(StoreCore, FollowedSource):
    """Reads rows for views in threads, in transactions that see one snapshot."""

    records_format = FORMAT
    _cache = ""
    """Distinguishes this server's files from those of others."""
    _threads: ThreadPoolExecutor

    def follow(self, follower: Follower) -> None:
        self._follower = follower

    async def manifests(self) -> list[str]:
        return await manifests(self._database, self._cache)

    async def load_items(
        self,
        info: NamespaceInfo,
        positions: Sequence[int],
        *,
        with_embedding: bool,
        with_content: bool = True,
    ) -> list[Item | None]:
        columns = columns_of("i", ITEM_COLUMNS)
        if not with_content:
            columns = columns.replace("i.content", f"'{NO_CONTENT}'::text")
        columns = f"n.vector_epoch, {columns}" + (", i.embedding" if with_embedding else "")
        values = (part_of(info.name), info.uid, list(positions))
        rows = await self._fetch(f"SELECT {columns} {_LOADED}", values) if positions else []
        items = await each(lambda row: item_of(row[1:], vector_key(row[0], 0)), rows)
        found = {item.position: item for item in items}
        return [found.get(position) for position in positions]

    async def read_rows(self, namespace: str, work: Callable[[Rows], T]) -> T | None:
        return await self._read_rows(namespace, work)

    async def _read_rows(self, namespace: str, work: Callable[[PostgresRows], T]) -> T | None:
        def look() -> T | None:
            with self._database.reading_sync() as connection:
                rows = find_rows(connection, self._database, namespace, self._cache)
                return None if rows is None else work(rows)

        return await aside(asyncio.get_running_loop().run_in_executor(self._threads, look))


def find_rows(connection: Sync, database: Database, namespace: str, cache: str = "") -> PostgresRows | None:
    """Return the present rows of a namespace; None if it does not exist."""
    row = connection.execute(
        database.sql(f"SELECT n.seq, n.stamp, {columns_of('n', NAMESPACE_COLUMNS)} {OF_NAME}"),
        (part_of(namespace), text_in(namespace)),
        binary=True,
    ).fetchone()
    if row is None:
        return None
    return PostgresRows(connection, database, namespace_of(row[2:]), row[0], row[1], cache)


class PostgresRows(Rows):
    """Rows within a transaction that sees one snapshot."""

    def __init__(
        self, connection: Sync, database: Database, info: NamespaceInfo, seq: int, stamp: int, cache: str
    ) -> None:
        self.info, self.seq, self.stamp, self._cache = info, seq, stamp, cache
        self._connection, self._database = connection, database
        self._of = part_of(info.name), info.uid
        self._no_vector = vector_key(info.vector_epoch, 0)

    def _fetch(self, statement: str, *values: Any) -> list[Row]:
        cursor = self._connection.execute(self._database.sql(statement), (*self._of, *values), binary=True)
        return cursor.fetchall()

    def _pages(self, statement: str, after: int = 0) -> Iterator[list[Row]]:
        """Yield rows ordered by position, their first column, some thousand at a time."""
        while rows := self._fetch(
            f"{statement} AND i.position > %s ORDER BY i.position LIMIT {_ROWS_AT_ONCE}", after
        ):
            yield rows
            after = rows[-1][0]

    def above(self, position: int) -> Iterator[RowBatch]:
        return map(self._batch, self._pages(_BATCH_OF, position))

    def of_ids(self, ids: Collection[str], up_to: int) -> Iterator[RowBatch]:
        wanted = [text_in(item_id) for item_id in sorted(ids)]
        rows = self._fetch(f"{_BATCH_OF_IDS} AND i.position <= %s", wanted, up_to)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            yield self._batch(rows[start : start + _ROWS_AT_ONCE])

    def _batch(self, rows: list[Row]) -> RowBatch:
        (
            positions, sessions, create_us, expire_us, labels, vector_keys, terms, facets, importances, uses,
        ) = zip(*rows, strict=True)  # fmt: skip
        indexed, kinds = described(labels, facets)
        return RowBatch(
            np.array(positions, np.int64),
            [text_of(session) for session in sessions],
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
        rows = self._fetch(
            "SELECT type, subject FROM $.changes WHERE part = %s AND uid = %s AND revision > %s"
            " ORDER BY revision",
            since,
        )
        return [(kind, text_of(subject)) for kind, subject in rows]

    def positions(self) -> NDArray[np.int64]:
        rows = self._fetch("SELECT position FROM $.items WHERE part = %s AND uid = %s")
        return np.fromiter((position for (position,) in rows), np.int64)

    def uses(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows = self._fetch("SELECT position, count FROM $.uses WHERE part = %s AND uid = %s")
        read = np.fromiter(rows, [("position", np.int64), ("count", np.int64)])
        return read["position"], read["count"]

    def expiries(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows = self._fetch(
            "SELECT position, expire_us FROM $.items WHERE part = %s AND uid = %s"
            " AND expire_us > update_us + ttl_us"
        )
        read = np.fromiter(rows, [("position", np.int64), ("expire_us", np.int64)])
        return read["position"], read["expire_us"]

    def vector_keys(self, positions: Sequence[int]) -> NDArray[np.int64]:
        keys: dict[int, int] = dict(self._fetch(self._some("position, vector_key"), list(positions)))
        return self._keys_of_vectors([keys.get(position, 0) for position in positions])

    @staticmethod
    def _some(columns: str) -> str:
        return (
            f"SELECT {columns} FROM $.items WHERE part = %s AND uid = %s AND position = ANY(%s::bigint[])"
            " ORDER BY position"
        )

    def vectors(self, positions: Sequence[int]) -> Iterator[NDArray[np.float32]]:
        if len(positions) > max(_FEW, self.info.item_count // _FEW_SHARE):
            yield from self._most_vectors(np.array(positions, np.int64))
            return
        # In parts: all of them as bytes would double the memory.
        for start in range(0, len(positions), _VECTORS_AT_ONCE):
            some = list(positions[start : start + _VECTORS_AT_ONCE])
            joined = b"".join(vector for (vector,) in self._fetch(self._some("embedding"), some))
            yield np.frombuffer(joined, "<f4").reshape(len(some), self.info.dimension)

    def _most_vectors(self, positions: NDArray[np.int64]) -> Iterator[NDArray[np.float32]]:
        """Yield vectors of these positions by scanning all rows between the first and the last.

        Each row has two values of known length, so the bytes need no parsing.
        """
        row = np.dtype(
            [("fields", "V6"), ("position", ">i8"), ("size", "V4"), ("vector", "<f4", self.info.dimension)]
        )
        values = (*self._of, self._no_vector, int(positions[0]), int(positions[-1]))
        with self._connection.cursor().copy(self._database.sql(_MOST_VECTORS), values) as copy:
            parts, head = iter(copy), _COPY_HEAD_BYTES
            while some := list(islice(parts, _VECTORS_AT_ONCE)):
                joined, head = b"".join(some)[head:], 0
                # The end marker is shorter than a row.
                rows = np.frombuffer(joined, row, len(joined) // row.itemsize)
                if len(found := rows["vector"][np.isin(rows["position"], positions, assume_unique=True)]):
                    yield found

    def values(self, fields: Sequence[Field]) -> Iterator[tuple[NDArray[np.int64], list[list[Value]]]]:
        every = f"SELECT {columns_of('i', ITEM_COLUMNS)} FROM $.items i WHERE i.part = %s AND i.uid = %s"
        return values(self._pages(every), fields, self._no_vector)

    def manifest(self) -> str | None:
        return manifest_of(self._connection, self._database, self._of, self._cache)
