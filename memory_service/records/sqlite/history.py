"""Replaced versions and deletions: the data that an undo needs beyond the records.

None of it outlives its subject: versions go with their item or state, and everything with its namespace.
"""

from __future__ import annotations

from typing import NamedTuple

from memory_service.data_model import Provenance
from memory_service.records.rules.history import Removal, cut_short, deleted
from memory_service.records.sqlite.connection import Connection
from memory_service.records.sqlite.erasure import NO_NAMESPACE, mark_erased
from memory_service.records.sqlite.ledger import Book, Ledger
from memory_service.records.sqlite.schema import key_of, keys_of
from memory_service.records.stored_values import provenance_of
from memory_service.runtime.caller import Caller
from memory_service.runtime.clock import now_us

_ITEM_COLUMNS = (
    "key, revision, session_id, create_us, update_us, expire_us, labels, metadata, content, facet,"
    " importance, provenance, terms, vector_revision, embedding"
)
_STATE_COLUMNS = (
    "uid, key, version, create_us, update_us, expire_us, description, revision, value, provenance"
)
_KEEP_VERSION = (
    f"INSERT INTO item_history (replaced_us, {_ITEM_COLUMNS})"
    f" SELECT ?, {_ITEM_COLUMNS} FROM items WHERE key = ?"
)
_KEEP_STATE_VERSION = (
    f"INSERT INTO state_history (replaced_us, {_STATE_COLUMNS})"
    f" SELECT ?, {_STATE_COLUMNS} FROM states WHERE uid = ? AND key = ?"
)
# The versions of an item or state, newest first, that show who cut it short.
_ENDS = (
    "SELECT update_us, expire_us, provenance, {number} AS number FROM {table} WHERE {which}"
    " UNION ALL SELECT update_us, expire_us, provenance, {number} FROM {kept} WHERE {which}"
    " ORDER BY number DESC"
)
_ITEM_ENDS = _ENDS.format(number="revision", table="items", kept="item_history", which="key = :key")
_STATE_ENDS = _ENDS.format(
    number="version", table="states", kept="state_history", which="uid = :uid AND key = :key"
)


class _Ended(NamedTuple):
    update_us: int
    expire_us: int | None
    stored: str | None
    number: int

    @property
    def provenance(self) -> Provenance | None:
        return provenance_of(self.stored)


def keep_version(db: Connection, key: int, now_us: int) -> None:
    """Keep the present version of an item before it is replaced."""
    db.execute(_KEEP_VERSION, (now_us, key))


def forget_versions(db: Connection, key: int) -> None:
    """Delete the kept versions of an item."""
    db.execute("DELETE FROM item_history WHERE key = ?", (key,))


def keep_state_version(db: Connection, book: Book, key: str, now_us: int) -> None:
    """Keep the present version of a state before it is replaced."""
    db.execute(_KEEP_STATE_VERSION, (now_us, book.uid, key))


def forget_state_versions(db: Connection, book: Book, key: str | None = None) -> None:
    """Delete the kept versions of a state, or with None of all states of the namespace."""
    if key is None:
        db.execute("DELETE FROM state_history WHERE uid = ?", (book.uid,))
    else:
        db.execute("DELETE FROM state_history WHERE uid = ? AND key = ?", (book.uid, key))


def note_removal(db: Connection, ledger: Ledger, book: Book, by: Caller) -> None:
    """Record who made the last logged change, a deletion."""
    note(db, book, deleted(by, now_us(), keeps_history=ledger.keeps_history))


def note_removals(db: Connection, ledger: Ledger, book: Book, first: int, by: Caller) -> None:
    """Record who made the changes from revision `first` on, which are deletions."""
    removal = deleted(by, now_us(), keeps_history=ledger.keeps_history)
    if removal is not None:
        db.execute(
            "INSERT INTO removals (key, time_us, writer, credential_id)"
            " SELECT key, ?, ?, ? FROM changes WHERE key BETWEEN ? AND ?",
            (removal.time_us, removal.writer, removal.credential_id, key_of(book.uid, first),
             key_of(book.uid, book.revision)),
        )  # fmt: skip


def note(db: Connection, book: Book, removal: Removal | None) -> None:
    """Record who deleted, or let expire, the subject of the last logged change; None: do not record.

    An undo of that writer's changes must report it: setting an expiry that passes is a deletion.
    """
    if removal is not None:
        db.execute(
            "INSERT INTO removals (key, time_us, writer, credential_id) VALUES (?, ?, ?, ?)",
            (key_of(book.uid, book.revision), removal.time_us, removal.writer, removal.credential_id),
        )


def end_of_item(db: Connection, ledger: Ledger, key: int) -> Removal | None:
    """Return who cut short an expired item; None if unknown."""
    return _end(db, ledger, _ITEM_ENDS, {"key": key})


def end_of_state(db: Connection, ledger: Ledger, book: Book, key: str) -> Removal | None:
    """Return who cut short an expired state; None if unknown."""
    return _end(db, ledger, _STATE_ENDS, {"uid": book.uid, "key": key})


def _end(db: Connection, ledger: Ledger, query: str, of: dict[str, object]) -> Removal | None:
    if not ledger.keeps_history:
        return None
    return cut_short(map(_Ended._make, db.execute(query, of)))


def forget_history(db: Connection, book: Book) -> None:
    """Delete all versions and removals of a namespace."""
    keys = keys_of(book.uid)
    db.execute("DELETE FROM item_history WHERE key BETWEEN ? AND ?", keys)
    db.execute("DELETE FROM removals WHERE key BETWEEN ? AND ?", keys)
    forget_state_versions(db, book)


def prune(db: Connection, before_us: int, limit: int) -> None:
    """Delete versions replaced, and removals made, before a time, up to `limit` rows of each table."""
    before = db.total_changes()
    db.execute(
        "DELETE FROM item_history WHERE rowid IN"
        " (SELECT rowid FROM item_history WHERE replaced_us < ? LIMIT ?)",
        (before_us, limit),
    )
    db.execute(
        "DELETE FROM state_history WHERE (uid, key, version) IN"
        " (SELECT uid, key, version FROM state_history WHERE replaced_us < ? LIMIT ?)",
        (before_us, limit),
    )
    db.execute(
        "DELETE FROM removals WHERE key IN (SELECT key FROM removals WHERE time_us < ? LIMIT ?)",
        (before_us, limit),
    )
    if db.total_changes() > before:
        mark_erased(db, NO_NAMESPACE)
