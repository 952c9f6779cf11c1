"""Reads the writes by other servers that a view lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from memory_service.data_model import NamespaceInfo
from memory_service.indexes.view import Entry
from memory_service.records.effects import Effect
from memory_service.records.postgres.database import BEGIN_READING, Database, Row
from memory_service.records.postgres.page import EMPTIED, MOVED
from memory_service.records.postgres.rows import (
    ITEM_COLUMNS,
    NAMESPACE_COLUMNS,
    columns_of,
    item_of,
    namespace_of,
)
from memory_service.records.postgres.schema import part_of
from memory_service.records.rules.vectors import vector_key
from memory_service.runtime.yielding import Part, aside

_POSITIONS_MAX = 10_000
"""A view that lacks more items than this is rebuilt."""
_INFO = (
    f"SELECT n.seq, n.stamp, {columns_of('n', NAMESPACE_COLUMNS)} FROM $.namespaces n"
    " WHERE n.part = %s AND n.uid = %s"
)
_JOURNAL = (
    "SELECT seq, stamp, flags, cardinality(positions) FROM $.journal"
    " WHERE part = %s AND uid = %s AND seq >= %s ORDER BY seq"
)
_MISSED = "SELECT unnest(positions) FROM $.journal WHERE part = %s AND uid = %s AND seq > %s"
_ROWS = (
    f"SELECT {columns_of('i', ITEM_COLUMNS)}, i.embedding, i.terms, coalesce(u.count, 0)"
    f" FROM (SELECT DISTINCT position FROM ({_MISSED}) j(position)) w"
    " JOIN $.items i ON i.part = %s AND i.uid = %s AND i.position = w.position"
    " LEFT JOIN $.uses u ON u.part = i.part AND u.uid = i.uid AND u.position = i.position"
    " ORDER BY i.position"
)


_POSITION_BITS = 36


class Mark(NamedTuple):
    """How new a view is: up to date with this step of its namespace. `number` is that of the last check sent
    when this was determined, `reading` that of the read of rows from which the view was built.
    """

    uid: int
    seq: int
    stamp: int
    revision: int
    number: int
    reading: int

    def key_of(self, position: int) -> int:
        """Return the cache key of an item, valid for the life of the view."""
        return self.reading << _POSITION_BITS | position


@dataclass
class Missed:
    """The changes that a view lacks, and how new it is with them."""

    mark: Mark
    info: NamespaceInfo
    effects: list[Effect]


async def read_missed(database: Database, name: str, mark: Mark, number: int) -> Missed | None:
    """Return the changes that a view at `mark` lacks; None if it must be rebuilt. Raises Unavailable."""
    return await database.repeated(lambda: _read_missed(database, name, mark, number))


async def _read_missed(database: Database, name: str, mark: Mark, number: int) -> Missed | None:
    of = part_of(name), mark.uid
    async with database.reading() as connection:
        async with connection.pipeline():
            await connection.execute(BEGIN_READING)
            info_cursor = await connection.execute(database.sql(_INFO), of, binary=True)
            journal_cursor = await connection.execute(database.sql(_JOURNAL), (*of, mark.seq), binary=True)
        journal = await aside(journal_cursor.fetchall())
        found = await info_cursor.fetchone()
        reads = found is not None and _leads(journal, mark, found[0], found[1])
        rows, positions = list[Row](), set[int]()
        if reads:
            async with connection.pipeline():
                positions_cursor = await connection.execute(
                    database.sql(_MISSED), (*of, mark.seq), binary=True
                )
                rows_cursor = await connection.execute(database.sql(_ROWS), (*of, mark.seq, *of), binary=True)
            positions = {position for (position,) in await positions_cursor.fetchall()}
            rows = await rows_cursor.fetchall()
        await connection.execute("COMMIT")
    if found is None or not reads:
        return None
    info = namespace_of(found[2:])
    new = Mark(info.uid, found[0], found[1], info.revision, number, mark.reading)
    return Missed(new, info, await _effects(mark, info, positions, rows))


def _leads(journal: list[Row], mark: Mark, seq: int, stamp: int) -> bool:
    """Return whether a journal leads from the view's step to the present one without a gap."""
    dense = [row[0] for row in journal] == list(range(mark.seq, seq + 1))
    # A failover may have lost the step that the view has.
    if not journal or not dense or journal[0][1] != mark.stamp or journal[-1][1] != stamp:
        return False
    later = journal[1:]
    flags = any(row[2] & (EMPTIED | MOVED) for row in later)
    return not flags and sum(row[3] for row in later) <= _POSITIONS_MAX


async def _effects(mark: Mark, info: NamespaceInfo, positions: set[int], rows: list[Row]) -> list[Effect]:
    """Return the effects for items that were read again, and for those of them that are gone."""
    none, part = vector_key(info.vector_epoch, 0), Part()
    items = Effect(
        uid=info.uid, revision=info.revision, vector_epoch=info.vector_epoch, dimension=info.dimension
    )
    uses = Effect()
    for *columns, terms, count in rows:
        await part.give_way_if_long()
        item, key = item_of(tuple(columns), none), columns[10]
        entry = Entry.of(item, bytes(terms), key if key > none else 0)
        if info.revision == mark.revision:
            items.filled.append((item.position, item.embedding, entry.vector_key))
        elif item.position > mark.revision:
            items.added.append(entry)
        else:
            items.replaced.append((entry, False))
        if item.expire_us is not None:
            items.expiries[item.position] = item.expire_us
        if count:
            uses.use_counts[item.position] = count
    there = {row[0] for row in rows}
    items.removed = sorted(p for p in positions - there if p <= mark.revision)
    return [items, uses] if uses.use_counts else [items]
