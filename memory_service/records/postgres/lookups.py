"""Locks the namespaces of a group and looks up what it needs, in one round trip.

Locks and lookups are separate statements: each sees what was committed before it began, so that lookups after
the lock see the final state of the locked rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from psycopg import AsyncCursor

from memory_service.records.postgres.arrays import array_of
from memory_service.records.postgres.database import Async, Database, Row
from memory_service.records.postgres.page import (
    BOOK_COLUMNS,
    Ended,
    KeptRequest,
    Page,
    StoredItem,
    StoredState,
    book_of,
)
from memory_service.records.postgres.rows import HELD_COLUMNS, OF_NAMES, columns_of, held_of, text_in, text_of
from memory_service.records.postgres.schema import lock_of, part_of


class Forgotten(Exception):
    """A known namespace no longer exists: its name must be locked first."""


@dataclass
class Needs:
    """The data of its namespace that a write needs."""

    items: list[str] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    families: list[str] = field(default_factory=list)
    """Items whose descendants are needed."""
    families_at: list[int] = field(default_factory=list)
    """The same, by position."""
    states: list[str] = field(default_factory=list)
    requests: Iterable[str] = ()
    held: Iterable[str] = ()
    held_requests: Iterable[str] = ()
    since: int | None = None


@dataclass
class _Wanted:
    """The needs of a whole group by kind: namespaces, with the wanted value of each."""

    parts: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    what: list[Any] = field(default_factory=list)

    def add(self, name: str, values: Iterable[Any]) -> None:
        for value in values:
            self.parts.append(part_of(name))
            self.names.append(text_in(name))
            self.what.append(value)

    def values(self, kind: str) -> list[bytes]:
        what = array_of("bigint" if kind in _OF_NUMBERS else "text", self.what)
        return [array_of("int", self.parts), array_of("text", self.names), what]


# OFFSET 0: planned apart, so that the join that follows has every key at hand. Otherwise the planner, without
# statistics, may join other tables first, by only a part of their keys.
_OF = (
    "(SELECT n.name, n.part, n.uid, w.wanted"
    " FROM unnest(%s::int[], %s::text[], %s::{type}[]) w(part, name, wanted)"
    " JOIN $.namespaces n ON n.part = w.part AND n.name = w.name OFFSET 0) n"
)
_TEXTS, _NUMBERS = _OF.format(type="text"), _OF.format(type="bigint")
_ITEM = (
    "i.id, i.position, i.revision, i.update_us, i.expire_us, i.vector_key, i.kind, i.provenance, i.nbytes,"
    " i.create_us"
)
_BY_ID = "JOIN $.items i ON i.uid + 0 = n.uid AND i.id = n.wanted"
_POSITIONS = f"(SELECT n.name, n.part, n.uid, i.position AS wanted FROM {_TEXTS} {_BY_ID} OFFSET 0) n"
_BY_POSITION = "JOIN $.items i ON i.part = n.part AND i.uid = n.uid AND i.position = n.wanted"
_HISTORY_JOIN = (
    "JOIN $.item_history h ON h.part = i.part AND h.uid = i.uid AND h.position = i.position"
    " WHERE i.expire_us IS NOT NULL ORDER BY h.revision DESC"
)
_FAMILY = (
    "WITH RECURSIVE family AS ("
    "SELECT n.name, p.part, p.uid, p.child FROM {asked}"
    " JOIN $.parents p ON p.part = n.part AND p.uid = n.uid AND p.parent = n.wanted"
    " UNION SELECT f.name, p.part, p.uid, p.child FROM family f"
    " JOIN $.parents p ON p.part = f.part AND p.uid = f.uid AND p.parent = f.child)"
    f" SELECT f.name, k.position, k.expire_us, {_ITEM} FROM family f"
    " JOIN $.items i ON i.part = f.part AND i.uid = f.uid AND i.position = f.child"
    " JOIN $.parents p ON p.uid + 0 = f.uid AND p.child = f.child"
    " JOIN $.items k ON k.part = p.part AND k.uid = p.uid AND k.position = p.parent"
)
_STATE = "s.key, s.version, s.create_us, s.update_us, s.expire_us, s.description, s.provenance, s.nbytes"
_STATE_JOIN = "JOIN $.states s ON s.part = n.part AND s.uid = n.uid AND s.key = n.wanted"
_LOCK = f"SELECT n.name, {columns_of('n', BOOK_COLUMNS)} {OF_NAMES} ORDER BY n.uid FOR UPDATE OF n"
_STATEMENTS = {
    "items": f"SELECT n.name, {_ITEM} FROM {_TEXTS} {_BY_ID}",
    "item_ends": "SELECT n.name, i.id, h.update_us, h.expire_us, h.provenance"
    f" FROM {_TEXTS} {_BY_ID} {_HISTORY_JOIN}",
    "positions": f"SELECT n.name, {_ITEM} FROM {_NUMBERS} {_BY_POSITION}",
    "families": _FAMILY.format(asked=_POSITIONS),
    "families_at": _FAMILY.format(asked=_NUMBERS),
    "states": f"SELECT n.name, {_STATE} FROM {_TEXTS} {_STATE_JOIN}",
    "state_ends": "SELECT n.name, s.key, h.update_us, h.expire_us, h.provenance"
    f" FROM {_TEXTS} {_STATE_JOIN}"
    " JOIN $.state_history h ON h.part = s.part AND h.uid = s.uid AND h.key = s.key"
    " WHERE s.expire_us IS NOT NULL ORDER BY h.version DESC",
    "requests": "SELECT n.name, r.id, r.digest, r.receipt, r.whole, r.state_key, r.state_version,"
    " coalesce((SELECT s.description FROM $.states s WHERE s.part = r.part AND s.uid = r.uid"
    " AND s.key = r.state_key AND s.version = r.state_version),"
    " (SELECT h.description FROM $.state_history h WHERE h.part = r.part AND h.uid = r.uid"
    " AND h.key = r.state_key AND h.version = r.state_version), '')"
    f" FROM {_TEXTS} JOIN $.requests r ON r.part = n.part AND r.uid = n.uid AND r.id = n.wanted",
    "held": f"SELECT n.name, {columns_of('q', HELD_COLUMNS)} FROM {_TEXTS}"
    " JOIN $.quarantine q ON q.part = n.part AND q.uid = n.uid AND q.id = n.wanted",
    "held_requests": f"SELECT n.name, {columns_of('q', HELD_COLUMNS)} FROM {_TEXTS}"
    " JOIN $.quarantine q ON q.part = n.part AND q.uid = n.uid AND q.request_id = n.wanted",
    "since": f"SELECT n.name, c.revision, c.type, c.subject, i.kind FROM {_NUMBERS}"
    " JOIN $.changes c ON c.part = n.part AND c.uid = n.uid AND c.revision > n.wanted"
    " LEFT JOIN $.items i ON i.uid + 0 = n.uid AND i.id = c.subject ORDER BY c.revision",
}
_OF_NUMBERS = ("positions", "families_at", "since")
FIND_REQUEST = _STATEMENTS["requests"]


async def look_up(
    connection: Async, database: Database, needs: Mapping[str, Sequence[Needs]], known: set[str]
) -> dict[str, Page]:
    """Begin a transaction, lock namespaces, and return a page with the looked-up rows of each.

    Namespaces in `known` are assumed to exist; raises Forgotten if one does not.
    """
    new = sorted(lock_of(database.schema, name) for name in needs if name not in known)
    wanted = _wanted(needs)
    cursors: dict[str, AsyncCursor[Row]] = {}
    async with connection.pipeline():
        # Overrides the database's default: reads after the lock must see the state at that time.
        await connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        if new:
            await connection.execute(
                "SELECT count(pg_advisory_xact_lock(k)) FROM unnest(%s::bigint[]) k", (new,)
            )
        names = array_of("text", [text_in(name) for name in needs])
        parts = array_of("int", [part_of(name) for name in needs])
        locked = await connection.execute(database.sql(_LOCK), (parts, names), binary=True)
        if new:
            numbers = await connection.execute(
                database.sql("SELECT nextval('$.uids') FROM generate_series(1, %s)"), (len(new),), binary=True
            )
        for kind, each in wanted.items():
            cursors[kind] = await connection.execute(
                database.sql(_STATEMENTS[kind]), each.values(kind), binary=True
            )
    rows = {kind: await cursor.fetchall() for kind, cursor in cursors.items()}
    books = {text_of(row[0]): row[1:] for row in await locked.fetchall()}
    if any(name in known and name not in books for name in needs):
        raise Forgotten
    uids = [uid for (uid,) in await numbers.fetchall()] if new else []
    return _pages(needs, books, uids, rows)


def _wanted(needs: Mapping[str, Sequence[Needs]]) -> dict[str, _Wanted]:
    wanted: dict[str, _Wanted] = {}

    def want(kind: str, name: str, values: set[Any]) -> None:
        if values:
            wanted.setdefault(kind, _Wanted()).add(name, values)

    for name, some in needs.items():
        texts = {
            kind: {text_in(value) for each in some for value in getattr(each, kind)}
            for kind in ("items", "families", "states", "requests", "held", "held_requests")
        }
        for kind, values in texts.items():
            want(kind, name, values)
        want("item_ends", name, texts["items"])
        want("state_ends", name, texts["states"])
        for kind in ("positions", "families_at"):
            want(kind, name, {position for each in some for position in getattr(each, kind)})
        since = [each.since for each in some if each.since is not None]
        want("since", name, {min(since)} if since else set())
    return wanted


def _pages(
    needs: Mapping[str, Sequence[Needs]], books: dict[str, Row], uids: list[int], rows: dict[str, list[Row]]
) -> dict[str, Page]:
    pages = {name: Page(name) for name in needs}
    for name, page in pages.items():
        if name in books:
            page.book = book_of(name, books[name])
            page.seq_before, page.stamp_before = page.book.seq, page.book.stamp
        elif uids:
            page.next_uid = uids.pop()
    for name, parent, expire_us, *row in _of(rows, "families") + _of(rows, "families_at"):
        put_item(pages[name], tuple(row))
        pages[name].links.add(row[1], parent)
        pages[name].ends[parent] = expire_us
    for name, *row in _of(rows, "items") + _of(rows, "positions"):
        put_item(pages[name], tuple(row))
    for name, item_id, *ended in _of(rows, "item_ends"):
        stored = pages[name].items[text_of(item_id)]
        assert stored is not None
        pages[name].items[text_of(item_id)] = replace(stored, before=(*stored.before, Ended(*ended)))
    for name, *row in _of(rows, "states"):
        put_state(pages[name], tuple(row))
    for name, key, *ended in _of(rows, "state_ends"):
        state = pages[name].states[text_of(key)]
        assert state is not None
        pages[name].states[text_of(key)] = replace(state, before=(*state.before, Ended(*ended)))
    for name, request_id, *row in _of(rows, "requests"):
        pages[name].requests[text_of(request_id)] = kept_request(row)
    for name, *row in _of(rows, "held") + _of(rows, "held_requests"):
        held = held_of(tuple(row))
        pages[name].held[held.id] = held
    for name, revision, kind, subject, item_kind in _of(rows, "since"):
        pages[name].changes.append((revision, kind, text_of(subject), item_kind))
    return pages


def _of(rows: dict[str, list[Row]], kind: str) -> list[Row]:
    return [(text_of(name), *row) for name, *row in rows.get(kind, ())]


def put_item(page: Page, row: Row) -> None:
    """Put a looked-up item into a page."""
    item_id, *stored = row
    page.items[text_of(item_id)] = StoredItem(*stored)
    page.at[stored[0]] = text_of(item_id)


def put_state(page: Page, row: Row) -> None:
    """Put a looked-up state into a page."""
    key, version, create_us, update_us, expire_us, description, provenance, nbytes = row
    page.states[text_of(key)] = StoredState(
        version, create_us, update_us, expire_us, text_of(description), provenance, nbytes
    )


def kept_request(row: Sequence[Any]) -> KeptRequest:
    """Return the request in a row of FIND_REQUEST, whose first column is its id."""
    digest, receipt, whole, state_key, version, description = row
    return KeptRequest(
        bytes(digest), receipt, whole and bytes(whole), state_key and text_of(state_key), version,
        text_of(description),
    )  # fmt: skip
