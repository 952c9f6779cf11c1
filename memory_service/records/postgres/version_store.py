"""Versions of items and states, read by one statement each and redacted in a separate transaction."""

from __future__ import annotations

from typing import Any, NamedTuple

from memory_service.data_model import ChangeType, Item, StateEntry
from memory_service.errors import NotFound
from memory_service.records.postgres.database import Async, Row
from memory_service.records.postgres.lookups import Needs
from memory_service.records.postgres.page import Page
from memory_service.records.postgres.rows import (
    ITEM_COLUMNS,
    STATE_COLUMNS,
    columns_of,
    item_of,
    state_of,
    text_in,
    text_of,
)
from memory_service.records.postgres.schema import part_of
from memory_service.records.postgres.store_core import StoreCore
from memory_service.records.rules.requests import of_item, of_state
from memory_service.records.rules.vectors import vector_key
from memory_service.records.rules.versions import (
    EVERYTHING,
    OF_ITEMS,
    OF_STATES,
    REDACTED,
    REMOVING,
    check_state_to_redact,
    item_to_redact,
    newest,
    redacted,
    removed,
)
from memory_service.records.stored_values import encode_provenance, provenance_of
from memory_service.records.versions import KeptVersion, VersionStore
from memory_service.runtime.caller import ANYBODY, Caller

_LIVE = "({0}.expire_us IS NULL OR {0}.expire_us > %(now)s)"
_NAME = "WHERE n.part = %(part)s AND n.name = %(name)s"
_ITEMS = f"JOIN $.items i ON i.uid + 0 = n.uid AND i.id = %(id)s AND {_LIVE.format('i')}"
_KEPT = ", ".join(f"i.{name}" if name in ("position", "id") else f"h.{name}" for name in ITEM_COLUMNS)
_LAST = "ORDER BY {0} DESC LIMIT %(limit)s"
_ITEM_VERSIONS = (
    f"(SELECT n.vector_epoch, true, {columns_of('i', ITEM_COLUMNS)} FROM $.namespaces n {_ITEMS} {_NAME}"
    " AND i.revision < %(before)s)"
    f" UNION ALL (SELECT n.vector_epoch, false, {_KEPT} FROM $.namespaces n {_ITEMS}"
    " JOIN $.item_history h ON h.part = i.part AND h.uid = i.uid AND h.position = i.position"
    f" AND h.revision < %(before)s {_NAME} {_LAST.format('h.revision')})"
)
_STATES = f"JOIN $.states s ON s.part = n.part AND s.uid = n.uid AND s.key = %(key)s AND {_LIVE.format('s')}"
_STATE_VERSIONS = (
    f"(SELECT true, {columns_of('s', STATE_COLUMNS)} FROM $.namespaces n {_STATES} {_NAME}"
    " AND s.revision < %(before)s)"
    f" UNION ALL (SELECT false, {columns_of('h', STATE_COLUMNS)} FROM $.namespaces n {_STATES}"
    " JOIN $.state_history h ON h.part = s.part AND h.uid = s.uid AND h.key = s.key"
    f" AND h.revision < %(before)s {_NAME} {_LAST.format('h.version')})"
)
_REMOVALS = (
    "SELECT c.revision, c.type, r.time_us, r.writer, r.credential_id FROM $.namespaces n"
    " JOIN $.changes c ON c.part = n.part AND c.uid = n.uid AND c.subject = %(subject)s"
    f" AND c.type IN ({REMOVING}) AND c.revision < %(before)s"
    " LEFT JOIN $.removals r ON r.part = c.part AND r.uid = c.uid AND r.revision = c.revision"
    f" {_NAME} AND c.type + 0 = ANY(%(types)s::int[]) {_LAST.format('c.revision')}"
)
_KEPT_ITEM = (
    "SELECT provenance FROM $.item_history WHERE part = %s AND uid = %s AND position = %s AND revision = %s"
)
_REDACT_ITEM = (
    "UPDATE $.item_history SET session_id = '', labels = NULL, metadata = NULL, content = %s, facet = NULL,"
    " importance = NULL, provenance = %s, terms = '', vector_key = 0, embedding = NULL, nbytes = 0"
    " WHERE part = %s AND uid = %s AND position = %s AND revision = %s"
)
_CURRENT_STATE = "SELECT revision, expire_us FROM $.states WHERE part = %s AND uid = %s AND key = %s"
_KEPT_STATE = (
    "SELECT provenance FROM $.state_history WHERE part = %s AND uid = %s AND key = %s AND revision = %s"
)
_REDACT_STATE = (
    "UPDATE $.state_history SET description = '', value = %s, provenance = %s"
    " WHERE part = %s AND uid = %s AND key = %s AND revision = %s"
)


class _Current(NamedTuple):
    revision: int
    expire_us: int | None


class PostgresVersionStore(StoreCore, VersionStore):
    """Each redaction is a separate transaction."""

    async def item_versions(
        self, namespace: str, item_id: str, before_revision: int | None, limit: int, *, now_us: int
    ) -> list[KeptVersion[Item]]:
        of = _values(namespace, before_revision, limit, now_us)
        rows = await self._database.fetch(_ITEM_VERSIONS, {**of, "id": text_in(item_id)})
        found = [_item_version(current, tuple(row), vector_key(epoch, 0)) for epoch, current, *row in rows]
        return newest([*found, *await self._removals(of, item_id, OF_ITEMS)], limit)

    async def state_versions(
        self, namespace: str, key: str, before_revision: int | None, limit: int, *, now_us: int
    ) -> list[KeptVersion[StateEntry]]:
        of = _values(namespace, before_revision, limit, now_us)
        rows = await self._database.fetch(_STATE_VERSIONS, {**of, "key": text_in(key)})
        found = [_state_version(current, tuple(row)) for current, *row in rows]
        return newest([*found, *await self._removals(of, key, OF_STATES)], limit)

    async def _removals(
        self, of: dict[str, object], subject: str, types: tuple[ChangeType, ...]
    ) -> list[KeptVersion[Any]]:
        rows = await self._database.fetch(
            _REMOVALS, {**of, "subject": text_in(subject), "types": [int(each) for each in types]}
        )
        return [
            removed(revision, change, time_us, writer and text_of(writer), credential and text_of(credential))
            for revision, change, time_us, writer, credential in rows
        ]

    async def redact_item_version(
        self, namespace: str, item_id: str, revision: int, *, now_us: int, by: Caller = ANYBODY
    ) -> int:
        async def prepare(connection: Async, page: Page) -> None:
            stored = item_to_redact(namespace, item_id, revision, page.items.get(item_id), now_us)
            assert page.book is not None
            of = (page.part, page.book.uid, stored.position, revision)
            if not await self._redact(connection, _KEPT_ITEM, _REDACT_ITEM, of):
                raise NotFound.item_version(namespace, item_id, revision)
            page.touched = True
            page.forget_told(of_item(item_id))

        return await self._write_alone(namespace, by, prepare, _revision, Needs(items=[item_id]))

    async def redact_state_version(
        self, namespace: str, key: str, revision: int, *, now_us: int, by: Caller = ANYBODY
    ) -> int:
        async def prepare(connection: Async, page: Page) -> None:
            found: _Current | None = None
            if page.book is not None:
                of_key = (page.part, page.book.uid, text_in(key))
                cursor = await connection.execute(self._database.sql(_CURRENT_STATE), of_key)
                row = await cursor.fetchone()
                found = _Current(*row) if row else None
            check_state_to_redact(namespace, key, revision, found, now_us)
            assert page.book is not None
            of = (page.part, page.book.uid, text_in(key), revision)
            if not await self._redact(connection, _KEPT_STATE, _REDACT_STATE, of):
                raise NotFound.state_version(namespace, key, revision)
            page.touched = True
            page.forget_told(of_state(key))

        return await self._write_alone(namespace, by, prepare, _revision)

    async def _redact(self, connection: Async, find: str, redact: str, of: Row) -> bool:
        """Redact a version; return whether it exists."""
        cursor = await connection.execute(self._database.sql(find), of)
        if (row := await cursor.fetchone()) is None:
            return False
        bare = encode_provenance(redacted(provenance_of(row[0])))
        await connection.execute(self._database.sql(redact), (REDACTED, bare, *of))
        return True


def _revision(page: Page) -> int:
    # After an error the page may have no namespace; the error is raised instead.
    return page.book.revision if page.book is not None else 0


def _values(namespace: str, before_revision: int | None, limit: int, now_us: int) -> dict[str, object]:
    return {
        "part": part_of(namespace), "name": text_in(namespace), "before": before_revision or EVERYTHING,
        "limit": limit, "now": now_us,
    }  # fmt: skip


def _item_version(current: bool, row: Row, none: int) -> KeptVersion[Item]:
    revision, update_us, content, provenance = row[2], row[5], row[9], row[13]
    item = None if content == REDACTED else item_of(row, none)
    return KeptVersion(revision, update_us, provenance_of(provenance), item, current=current)


def _state_version(current: bool, row: Row) -> KeptVersion[StateEntry]:
    entry = state_of(row)
    record = entry if entry.value_json else None
    return KeptVersion(
        entry.revision, entry.update_us, entry.provenance, record, current=current, number=entry.version
    )
