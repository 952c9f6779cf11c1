"""Plans an undo: the versions of items and states, and what happens to each."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from memory_service.data_model import Item, ItemKind, StateEntry, WritesBy
from memory_service.records.postgres.database import Async, Database, Row
from memory_service.records.postgres.page import StoredItem, StoredState
from memory_service.records.postgres.rows import (
    ITEM_COLUMNS,
    STATE_COLUMNS,
    columns_of,
    item_of,
    state_of,
    text_of,
)
from memory_service.records.rules.history import Version
from memory_service.records.rules.undo import Undone, undo_item, undo_state
from memory_service.records.rules.versions import REDACTED
from memory_service.records.stored_values import provenance_of

_TOUCHED = (
    "SELECT {place}, update_us, provenance FROM $.{table} WHERE part = %s AND uid = %s AND {place} > %s"
    " AND update_us >= %s"
)
_TOUCHED_ITEMS = " UNION ALL ".join(
    _TOUCHED.format(place="position", table=table) for table in ("items", "item_history")
)
_TOUCHED_STATES = " UNION ALL ".join(
    _TOUCHED.format(place="key", table=table) for table in ("states", "state_history")
)
_OF_ITEMS = "WHERE part = %s AND uid = %s AND position = ANY(%s::bigint[])"
_OF_STATES = "WHERE part = %s AND uid = %s AND key = ANY(%s::text[])"
_ITEM_VERSION = "position, revision, update_us, expire_us, provenance, content, kind"
_STATE_VERSION = "key, version, update_us, expire_us, provenance, value, 0"


class Of(NamedTuple):
    """The rows of a namespace."""

    part: int
    uid: int


class ItemPlan(NamedTuple):
    """An item and what happens to it."""

    id: str
    stored: StoredItem
    undone: Undone


class StatePlan(NamedTuple):
    """A state and what happens to it."""

    key: str
    stored: StoredState
    undone: Undone


async def _fetch(connection: Async, database: Database, statement: str, values: Row) -> list[Row]:
    cursor = await connection.execute(database.sql(statement), values, binary=True)
    return await cursor.fetchall()


async def _touched(
    connection: Async, database: Database, statement: str, of: Of, by: WritesBy, after: int | str, limit: int
) -> list[int | str]:
    """Return up to `limit` places, ascending, that have or had a version by this writer."""
    values = (*of, after, by.since_us)
    # Attribution is not decided by SQL on JSON: the database may reject JSON that we wrote.
    rows = await _fetch(connection, database, statement, (*values, *values))
    theirs = {place for place, update_us, kept in rows if by.has(provenance_of(kept), update_us)}
    # UTF-8 sorts by code point.
    return sorted(theirs)[:limit]


def _versions(rows: list[Row]) -> dict[int | str, list[Version]]:
    versions: dict[int | str, list[Version]] = defaultdict(list)
    for place, number, update_us, expire_us, provenance, content, kind in rows:
        versions[place].append(
            Version(
                number,
                update_us,
                expire_us,
                provenance_of(provenance),
                content,
                content == REDACTED,
                kind=ItemKind(kind),
            )
        )
    return versions


async def plan_items(
    connection: Async, database: Database, of: Of, by: WritesBy, after: int, limit: int, at_us: int
) -> list[ItemPlan]:
    """Return the next items that a writer has touched, ordered by position."""
    positions = await _touched(connection, database, _TOUCHED_ITEMS, of, by, after, limit)
    wanted = (*of, positions)
    present = await _fetch(
        connection,
        database,
        "SELECT position, id, revision, update_us, expire_us, vector_key, kind, provenance, nbytes, create_us"
        f" FROM $.items {_OF_ITEMS} ORDER BY position",
        wanted,
    )
    rows = await _fetch(
        connection,
        database,
        f"SELECT {_ITEM_VERSION} FROM $.items {_OF_ITEMS} UNION ALL"
        f" SELECT {_ITEM_VERSION} FROM $.item_history {_OF_ITEMS} ORDER BY revision DESC",
        (*wanted, *wanted),
    )
    versions = _versions(rows)
    return [
        ItemPlan(
            text_of(item_id),
            StoredItem(position, *rest),
            undo_item(versions[position], position, by, at_us),
        )
        for position, item_id, *rest in present
    ]


async def plan_states(
    connection: Async, database: Database, of: Of, by: WritesBy, after: str, limit: int, at_us: int
) -> list[StatePlan]:
    """Return the next states that a writer has touched, ordered by key. `after` is in stored form."""
    keys = await _touched(connection, database, _TOUCHED_STATES, of, by, after, limit)
    wanted = (*of, keys)
    present = await _fetch(
        connection,
        database,
        "SELECT key, version, create_us, update_us, expire_us, description, provenance, nbytes"
        f" FROM $.states {_OF_STATES} ORDER BY key",
        wanted,
    )
    rows = await _fetch(
        connection,
        database,
        f"SELECT {_STATE_VERSION} FROM $.states {_OF_STATES} UNION ALL"
        f" SELECT {_STATE_VERSION} FROM $.state_history {_OF_STATES} ORDER BY version DESC",
        (*wanted, *wanted),
    )
    versions = _versions(rows)
    return [
        StatePlan(
            text_of(key),
            StoredState(version, create_us, update_us, expire_us, text_of(description), *rest),
            undo_state(versions[key], create_us, by, at_us),
        )
        for key, version, create_us, update_us, expire_us, description, *rest in present
    ]


async def kept_item(
    connection: Async, database: Database, of: Of, position: int, revision: int, no_vector_key: int
) -> tuple[Item, bytes, int]:
    """Return a kept version of an item, with its words and its vector's key."""
    kept = ", ".join("i.id" if name == "id" else f"h.{name}" for name in ITEM_COLUMNS)
    rows = await _fetch(
        connection,
        database,
        f"SELECT {kept}, h.embedding, h.terms FROM $.item_history h JOIN $.items i"
        " ON i.part = h.part AND i.uid = h.uid AND i.position = h.position"
        " WHERE h.part = %s AND h.uid = %s AND h.position = %s AND h.revision = %s",
        (*of, position, revision),
    )
    return item_of(rows[0][:-1], no_vector_key), bytes(rows[0][-1]), rows[0][10]


async def kept_state(connection: Async, database: Database, of: Of, key: str, version: int) -> StateEntry:
    """Return a kept version of a state. The key is in stored form."""
    rows = await _fetch(
        connection,
        database,
        f"SELECT {columns_of('h', STATE_COLUMNS)} FROM $.state_history h"
        " WHERE h.part = %s AND h.uid = %s AND h.key = %s AND h.version = %s",
        (*of, key, version),
    )
    return state_of(rows[0])


async def forget(
    connection: Async, database: Database, table: str, of: Of, columns: str, versions: list[Row]
) -> None:
    """Delete versions from a history table, by place and number."""
    if not versions:
        return
    place, number = columns.split()
    kind = "bigint" if place == "position" else "text"
    await connection.execute(
        database.sql(
            f"DELETE FROM $.{table} h USING unnest(%s::{kind}[], %s::bigint[]) w(place, number)"
            f" WHERE h.part = %s AND h.uid = %s AND h.{place} = w.place AND h.{number} = w.number"
        ),
        ([place for place, _ in versions], [number for _, number in versions], *of),
    )
