"""Writes the result of a group, one statement per table, in a single round trip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memory_service.data_model import TIME_US_MAX
from memory_service.records.postgres.arrays import array_of
from memory_service.records.postgres.database import Async, Database, Row
from memory_service.records.postgres.page import BOOK_COLUMNS, Page, Renamed
from memory_service.records.postgres.rows import HELD_COLUMNS, ItemRow, StateRow, held_row, text_in
from memory_service.runtime.clock import now_us

_TYPES = {
    **dict.fromkeys(("part", "dimension", "flags"), "int"),
    **dict.fromkeys(("kind", "type"), "smallint"),
    **dict.fromkeys(
        ("name", "model", "id", "session_id", "labels", "metadata", "content", "facet", "provenance", "key",
         "description", "value", "subject", "receipt", "state_key", "request", "writer", "credential_id",
         "reason", "request_id", "new_key", "settings"),
        "text",
    ),
    **dict.fromkeys(("terms", "embedding", "digest", "whole", "body"), "bytea"),
    **dict.fromkeys(("moving", "in_database"), "boolean"),
    "importance": "double precision",
}  # fmt: skip
_KEY = ("part", "uid")
_ITEM = ItemRow._fields
_HISTORY = tuple(name for name in _ITEM if name != "id")
_STATE = StateRow._fields
_STATE_HISTORY = tuple(name for name in _STATE if name != "nbytes")
_SET_ITEM = ", ".join(f"{name} = w.{name}" for name in _ITEM if name not in ("position", "id"))
_SET_ITEM_BUT_VECTOR = ", ".join(
    f"{name} = w.{name}" for name in _ITEM if name not in ("position", "id", "embedding")
)
_SET_BOOK = ", ".join(f"{name} = w.{name}" for name in BOOK_COLUMNS if name != "uid")

FORGET_KIN = {
    "parents": "DELETE FROM $.parents p USING {w}"
    " WHERE p.part = w.part AND p.uid = w.uid AND p.parent = w.position",
    "children": "DELETE FROM $.parents p USING {w} WHERE p.uid + 0 = w.uid AND p.child = w.position",
}


def unnested(columns: Sequence[str], rows: Sequence[Row]) -> tuple[str, list[bytes]]:
    """Return the SQL that selects rows as `w`, and its values."""
    kinds = [_TYPES.get(name, "bigint") for name in columns]
    values = [array_of(kind, column) for kind, column in zip(kinds, zip(*rows, strict=True), strict=True)]
    places = ", ".join(f"%s::{kind}[]" for kind in kinds)
    return f"unnest({places}) w({', '.join(columns)})", values


class Flush:
    """Sends statements on a connection in pipeline mode."""

    def __init__(self, connection: Async, database: Database) -> None:
        self._connection = connection
        self._database = database

    async def do(self, statement: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Execute a statement with `{w}` replaced by the rows; do nothing without rows."""
        if listed := list(rows):
            source, values = unnested(columns, listed)
            await self._connection.execute(self._database.sql(statement.replace("{w}", source)), values)

    async def insert(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Insert rows."""
        names = ", ".join(columns)
        await self.do(f"INSERT INTO $.{table} ({names}) SELECT {names} FROM {{w}}", columns, rows)


async def flush(connection: Async, database: Database, pages: Iterable[Page]) -> None:
    """Send everything that the pages have to write. The connection must be in pipeline mode."""
    written = [page for page in pages if page.touched and not page.deleted]
    out = Flush(connection, database)
    for page in written:
        page.step()
    await _namespaces(out, written)
    await _items(out, written)
    await _uses(out, written)
    await _states(out, written)
    await _log(out, written)
    await _requests(out, written)
    await _quarantine(out, written)


def _key(page: Page) -> tuple[int, int]:
    assert page.book is not None
    return page.part, page.book.uid


async def _namespaces(out: Flush, pages: Sequence[Page]) -> None:
    columns = (*_KEY, *BOOK_COLUMNS[1:])
    rows = {page.name: (page.part, *(getattr(page.book, name) for name in BOOK_COLUMNS)) for page in pages}
    for row in rows.values():
        assert len(row) == len(columns)
    model = columns.index("model")
    kept = {name: (*row[:model], text_in(row[model]), *row[model + 1 :]) for name, row in rows.items()}
    await out.insert(
        "namespaces",
        (*columns, "name"),
        [(*kept[page.name], text_in(page.name)) for page in pages if page.began],
    )
    await out.do(
        f"UPDATE $.namespaces n SET {_SET_BOOK} FROM {{w}} WHERE n.part = w.part AND n.uid = w.uid",
        columns,
        [kept[page.name] for page in pages if not page.began],
    )


async def _items(out: Flush, pages: Sequence[Page]) -> None:
    at = "i.part = w.part AND i.uid = w.uid AND i.position = w.position"
    await out.do(
        f"UPDATE $.items i SET vector_key = w.vector_key, embedding = w.embedding FROM {{w}} WHERE {at}",
        (*_KEY, "position", "vector_key", "embedding"),
        [(*_key(page), *fill) for page in pages for fill in page.pending.fills],
    )
    history = ", ".join(_HISTORY)
    await out.do(
        f"INSERT INTO $.item_history (part, uid, replaced_us, {history})"
        f" SELECT i.part, i.uid, w.replaced_us, {', '.join(f'i.{name}' for name in _HISTORY)}"
        f" FROM {{w}} JOIN $.items i ON {at}",
        (*_KEY, "position", "replaced_us"),
        [(*_key(page), *kept) for page in pages for kept in page.pending.keep_items],
    )
    named = ", ".join(
        f"CASE WHEN w.in_database THEN (SELECT i.embedding FROM $.items i WHERE {at}) ELSE w.embedding END"
        if name == "embedding"
        else f"w.{name}"
        for name in _HISTORY
    )
    await out.do(
        f"INSERT INTO $.item_history (part, uid, replaced_us, {history})"
        f" SELECT w.part, w.uid, w.replaced_us, {named} FROM {{w}}",
        (*_KEY, *_ITEM, "replaced_us", "in_database"),
        [(*_key(page), *row, *rest) for page in pages for row, *rest in page.pending.kept_items],
    )
    gone = [(*_key(page), position) for page in pages for position in page.pending.removed]
    for table in ("items", "item_history"):
        await out.do(f"DELETE FROM $.{table} i USING {{w}} WHERE {at}", (*_KEY, "position"), gone)
    await _written_items(out, pages, at)
    await out.do(
        "UPDATE $.items i SET ttl_us = coalesce(i.ttl_us, i.expire_us - i.update_us), expire_us ="
        " greatest(i.expire_us, least(w.time_us + coalesce(i.ttl_us, i.expire_us - i.update_us),"
        f" {TIME_US_MAX}))"
        f" FROM {{w}} WHERE {at} AND i.expire_us > w.time_us",
        (*_KEY, "position", "time_us"),
        [(*_key(page), *each) for page in pages for each in sorted(page.pending.refreshed.items())],
    )
    await _parents(out, pages, gone)


async def _parents(out: Flush, pages: Sequence[Page], gone: Sequence[Row]) -> None:
    await out.do(FORGET_KIN["parents"], (*_KEY, "position"), gone)
    changed = [(*_key(page), position) for page in pages for position in page.pending.parents]
    await out.do(FORGET_KIN["children"], (*_KEY, "position"), [*gone, *changed])
    await out.do(
        "INSERT INTO $.parents (part, uid, parent, child) SELECT w.part, w.uid, i.position, w.position"
        " FROM {w} JOIN $.items i ON i.uid + 0 = w.uid AND i.id = w.id WHERE i.position <> w.position"
        " ON CONFLICT DO NOTHING",
        (*_KEY, "position", "id"),
        [
            (*_key(page), position, text_in(parent))
            for page in pages
            for position, parents in page.pending.parents.items()
            for parent in parents
        ],
    )


async def _written_items(out: Flush, pages: Sequence[Page], at: str) -> None:
    rows: dict[str, list[Row]] = {"new": [], "over": [], "keeping": []}
    for page in pages:
        assert page.book is not None
        added = {number for number, *_ in page.pending.changes}
        for position, stored in page.pending.items.items():
            assert stored.row is not None
            kind = "new" if position in added else "keeping" if stored.keeps_vector else "over"
            rows[kind].append((*_key(page), *stored.row))
    columns = (*_KEY, *_ITEM)
    await out.insert("items", columns, rows["new"])
    update = "UPDATE $.items i SET {set} FROM {w} WHERE " + at
    await out.do(update.replace("{set}", _SET_ITEM), columns, rows["over"])
    await out.do(update.replace("{set}", _SET_ITEM_BUT_VECTOR), columns, rows["keeping"])


async def _uses(out: Flush, pages: Sequence[Page]) -> None:
    await out.do(
        "INSERT INTO $.uses AS u (part, uid, position, count)"
        " SELECT w.part, w.uid, w.position, w.count FROM {w} JOIN $.items i"
        " ON i.part = w.part AND i.uid = w.uid AND i.position = w.position"
        " ON CONFLICT (part, uid, position) DO UPDATE SET count = u.count + excluded.count",
        (*_KEY, "position", "count"),
        [(*_key(page), *use) for page in pages for use in sorted(page.pending.uses.items())],
    )
    await out.do(
        "DELETE FROM $.uses u USING {w} WHERE u.part = w.part AND u.uid = w.uid AND u.position = w.position",
        (*_KEY, "position"),
        [(*_key(page), position) for page in pages for position in page.pending.removed],
    )


async def _states(out: Flush, pages: Sequence[Page]) -> None:
    at = "s.part = w.part AND s.uid = w.uid AND s.key = w.key"
    history = ", ".join(_STATE_HISTORY)
    gone = [(*_key(page), text_in(key)) for page in pages for key in page.pending.gone_states]
    await out.do(f"DELETE FROM $.state_history s USING {{w}} WHERE {at}", (*_KEY, "key"), gone)
    await out.do(
        f"INSERT INTO $.state_history (part, uid, replaced_us, {history})"
        f" SELECT s.part, s.uid, w.replaced_us, {', '.join(f's.{name}' for name in _STATE_HISTORY)}"
        f" FROM {{w}} JOIN $.states s ON {at}",
        (*_KEY, "key", "replaced_us"),
        [(*_key(page), text_in(key), us) for page in pages for key, us in page.pending.keep_states],
    )
    await out.insert(
        "state_history",
        (*_KEY, *_STATE_HISTORY, "replaced_us"),
        [(*_key(page), *row[:-1], us) for page in pages for row, us in page.pending.kept_states],
    )
    await out.do(
        f"DELETE FROM $.states s USING {{w}} WHERE {at}",
        (*_KEY, "key"),
        [(*_key(page), text_in(k)) for page in pages for k, s in page.pending.states.items() if s is None],
    )
    assigned = ", ".join(f"{name} = excluded.{name}" for name in _STATE if name != "key")
    names = ", ".join((*_KEY, *_STATE))
    await out.do(
        f"INSERT INTO $.states ({names}) SELECT {names} FROM {{w}}"
        f" ON CONFLICT (part, uid, key) DO UPDATE SET {assigned}",
        (*_KEY, *_STATE),
        [
            (*_key(page), *stored.row)
            for page in pages
            for stored in page.pending.states.values()
            if stored is not None and stored.row is not None
        ],
    )
    renamed = [(*_key(page), *each) for page in pages for each in page.pending.renamed]
    set_also = {"states": ", version = w.version, revision = w.revision, nbytes = s.nbytes + w.more"}
    for table in ("states", "state_history"):
        await out.do(
            f"UPDATE $.{table} s SET key = w.new_key{set_also.get(table, '')} FROM {{w}} WHERE {at}",
            (*_KEY, *Renamed._fields),
            renamed,
        )


async def _log(out: Flush, pages: Sequence[Page]) -> None:
    await out.insert(
        "changes",
        (*_KEY, "revision", "type", "subject"),
        [(*_key(p), number, kind, text_in(of)) for p in pages for number, kind, of in p.pending.changes],
    )
    await out.insert(
        "removals",
        (*_KEY, "revision", "time_us", "writer", "credential_id"),
        [
            (*_key(page), number, r.time_us, text_in(r.writer), text_in(r.credential_id))
            for page in pages
            for number, r in page.pending.removals
        ],
    )
    now = now_us()
    # Positions as texts of arrays, because nested arrays must have equal lengths.
    await out.do(
        "INSERT INTO $.journal (part, uid, seq, stamp, flags, positions, time_us)"
        " SELECT part, uid, seq, stamp, flags, value::bigint[], time_us FROM {w}",
        (*_KEY, "seq", "stamp", "flags", "value", "time_us"),
        [_journal_row(page, now) for page in pages],
    )


def _journal_row(page: Page, now: int) -> Row:
    assert page.book is not None
    positions = "{" + ",".join(map(str, page.positions())) + "}"
    return (*_key(page), page.book.seq, page.book.stamp, page.pending.flags, positions, now)


async def _requests(out: Flush, pages: Sequence[Page]) -> None:
    told = [(*_key(page), text_in(of)) for page in pages for of in page.pending.forgotten]
    which = "t.part = w.part AND t.uid = w.uid AND t.subject = w.subject"
    await out.do(
        "UPDATE $.requests r SET whole = NULL FROM {w} JOIN $.told_of t ON " + which +
        " WHERE r.part = t.part AND r.uid = t.uid AND r.id = t.request",
        (*_KEY, "subject"),
        told,
    )  # fmt: skip
    await out.do("DELETE FROM $.told_of t USING {w} WHERE " + which, (*_KEY, "subject"), told)
    every = [(page, name, kept) for page in pages for name, kept in page.pending.requests.items()]
    await out.insert(
        "requests",
        (*_KEY, "id", "digest", "receipt", "whole", "state_key", "state_version", "time_us"),
        [
            (*_key(page), text_in(name), kept.digest, kept.receipt, kept.whole,
             None if kept.state_key is None else text_in(kept.state_key), kept.state_version, kept.time_us)
            for page, name, kept in every
        ],
    )  # fmt: skip
    await out.insert(
        "told_of",
        (*_KEY, "subject", "request"),
        [(*_key(page), text_in(of), text_in(name)) for page, name, kept in every for of in sorted(kept.told)],
    )


async def _quarantine(out: Flush, pages: Sequence[Page]) -> None:
    await out.do(
        "DELETE FROM $.quarantine q USING {w} WHERE q.part = w.part AND q.uid = w.uid AND q.id = w.id",
        (*_KEY, "id"),
        [(*_key(page), text_in(held_id)) for page in pages for held_id in page.pending.let_go],
    )
    await out.insert(
        "quarantine",
        (*_KEY, *HELD_COLUMNS),
        [(*_key(page), *held_row(held)) for page in pages for held in page.pending.held.values()],
    )
