"""Versions of items and states, read and redacted."""

from __future__ import annotations

from typing import Any

from memory_service.data_model import ChangeType, Item, Receipt, StateEntry
from memory_service.errors import NotFound
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
from memory_service.records.sqlite.connection import Connection, Row
from memory_service.records.sqlite.item_writes import stored_item
from memory_service.records.sqlite.kept_answers import forget_told_of_item, forget_told_of_state
from memory_service.records.sqlite.ledger import Ledger, Outcome, finish
from memory_service.records.sqlite.rows import ITEM_COLUMNS, STATE_COLUMNS, item_of, state_of
from memory_service.records.sqlite.schema import POSITION_MAX, key_of
from memory_service.records.sqlite.state_writes import stored_version
from memory_service.records.sqlite.store_core import StoreCore
from memory_service.records.stored_values import encode_provenance, provenance_of
from memory_service.records.versions import KeptVersion, VersionStore
from memory_service.runtime.caller import ANYBODY, Caller

_LIVE = "(expire_us IS NULL OR expire_us > :now)"
_ITEM = f"SELECT {ITEM_COLUMNS} FROM items WHERE uid = :uid AND id = :id AND {_LIVE}"
_KEPT_ITEMS = (
    f"SELECT {', '.join(':id' if name == 'id' else name for name in ITEM_COLUMNS.split(', '))}"
    " FROM item_history WHERE key = :key AND revision < :before ORDER BY revision DESC LIMIT :limit"
)
_STATE = f"SELECT {STATE_COLUMNS} FROM states WHERE uid = :uid AND key = :key AND {_LIVE}"
_KEPT_STATES = (
    f"SELECT {STATE_COLUMNS} FROM state_history WHERE uid = :uid AND key = :key AND revision < :before"
    " ORDER BY version DESC LIMIT :limit"
)
# The first condition on the type is that of the index.
_REMOVALS = (
    "SELECT c.key, c.type, r.time_us, r.writer, r.credential_id"
    " FROM changes c LEFT JOIN removals r USING (key)"
    f" WHERE c.subject = ? AND c.type IN ({REMOVING}) AND +c.type IN (?, ?) AND c.key BETWEEN ? AND ?"
    " ORDER BY c.key DESC LIMIT ?"
)


class SqliteVersionStore(StoreCore, VersionStore):
    """Reads in a thread, since each version may be large."""

    async def item_versions(
        self, namespace: str, item_id: str, before_revision: int | None, limit: int, *, now_us: int
    ) -> list[KeptVersion[Item]]:
        info = self._info(namespace)
        if info is None:
            return []
        before = before_revision or EVERYTHING
        of = {"uid": info.uid, "id": item_id, "now": now_us, "before": before, "limit": limit}
        none = vector_key(info.vector_epoch, 0)

        def read(db: Connection) -> list[KeptVersion[Item]]:
            found = []
            if (row := db.execute(_ITEM, of).fetchone()) is not None:
                kept = db.execute(_KEPT_ITEMS, {**of, "key": row[0]}).fetchall()
                found = [_item_version(row, none, current=True)] if row[2] < before else []
                found += [_item_version(each, none) for each in kept]
            return newest([*found, *_removals(db, info.uid, item_id, before, limit, OF_ITEMS)], limit)

        return await self._read(read)

    async def state_versions(
        self, namespace: str, key: str, before_revision: int | None, limit: int, *, now_us: int
    ) -> list[KeptVersion[StateEntry]]:
        info = self._info(namespace)
        if info is None:
            return []
        before = before_revision or EVERYTHING
        of = {"uid": info.uid, "key": key, "now": now_us, "before": before, "limit": limit}

        def read(db: Connection) -> list[KeptVersion[StateEntry]]:
            found = []
            if (row := db.execute(_STATE, of).fetchone()) is not None:
                found = [_state_version(row, current=True)] if row[6] < before else []
                found += [_state_version(each) for each in db.execute(_KEPT_STATES, of)]
            return newest([*found, *_removals(db, info.uid, key, before, limit, OF_STATES)], limit)

        return await self._read(read)

    async def redact_item_version(
        self, namespace: str, item_id: str, revision: int, *, now_us: int, by: Caller = ANYBODY
    ) -> int:
        receipt = await self._write(
            namespace,
            by,
            lambda db: _redact_item(db, self._ledger, namespace, item_id, revision, now_us),
            shrinks=True,
        )
        return receipt.revision

    async def redact_state_version(
        self, namespace: str, key: str, revision: int, *, now_us: int, by: Caller = ANYBODY
    ) -> int:
        receipt = await self._write(
            namespace,
            by,
            lambda db: _redact_state(db, self._ledger, namespace, key, revision, now_us),
            shrinks=True,
        )
        return receipt.revision


def _item_version(row: Row, none: int, *, current: bool = False) -> KeptVersion[Item]:
    revision, update_us, content, provenance = row[2], row[5], row[9], row[13]
    item = None if content == REDACTED else item_of(row, none)
    return KeptVersion(revision, update_us, provenance_of(provenance), item, current=current)


def _state_version(row: Row, *, current: bool = False) -> KeptVersion[StateEntry]:
    entry = state_of(row)
    record = entry if entry.value_json else None
    return KeptVersion(
        entry.revision, entry.update_us, entry.provenance, record, current=current, number=entry.version
    )


def _removals(
    db: Connection, uid: int, subject: str, before: int, limit: int, types: tuple[ChangeType, ChangeType]
) -> list[KeptVersion[Any]]:
    last = key_of(uid, min(before - 1, POSITION_MAX))
    rows = db.execute(_REMOVALS, (subject, *map(int, types), key_of(uid, 0), last, limit))
    return [removed(key & POSITION_MAX, *rest) for key, *rest in rows]


def _redact_item(
    db: Connection, ledger: Ledger, namespace: str, item_id: str, revision: int, now_us: int
) -> Outcome:
    book = ledger.find(db, namespace)
    stored = item_to_redact(namespace, item_id, revision, stored_item(db, book, item_id), now_us)
    of = (stored.key, revision)
    row = db.execute("SELECT provenance FROM item_history WHERE key = ? AND revision = ?", of).fetchone()
    if row is None:
        raise NotFound.item_version(namespace, item_id, revision)
    assert book is not None
    ledger.erase(db, book)
    forget_told_of_item(db, book.uid, item_id)
    db.execute(
        "UPDATE item_history SET session_id = '', labels = NULL, metadata = NULL, content = ?, facet = NULL,"
        " importance = NULL, provenance = ?, terms = x'', vector_revision = 0, embedding = NULL"
        " WHERE key = ? AND revision = ?",
        (REDACTED, encode_provenance(redacted(provenance_of(row[0]))), *of),
    )
    return finish(db, book, None, Outcome(Receipt(0)))


def _redact_state(
    db: Connection, ledger: Ledger, namespace: str, key: str, revision: int, now_us: int
) -> Outcome:
    book = ledger.find(db, namespace)
    check_state_to_redact(namespace, key, revision, stored_version(db, book, key), now_us)
    assert book is not None
    which, of = "WHERE uid = ? AND key = ? AND revision = ?", (book.uid, key, revision)
    row = db.execute(f"SELECT provenance FROM state_history {which}", of).fetchone()
    if row is None:
        raise NotFound.state_version(namespace, key, revision)
    ledger.erase(db, book)
    forget_told_of_state(db, book.uid, key)
    db.execute(
        f"UPDATE state_history SET description = '', value = ?, provenance = ? {which}",
        (REDACTED, encode_provenance(redacted(provenance_of(row[0]))), *of),
    )
    return finish(db, book, None, Outcome(Receipt(0)))
