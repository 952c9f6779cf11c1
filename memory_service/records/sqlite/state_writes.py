"""Applies writes of states to the database. Each function checks everything before changing anything."""

from __future__ import annotations

from typing import NamedTuple

from memory_service.data_model import ChangeType, Receipt, RequestKey, StateEntry, StateWrite
from memory_service.operations import RenameState
from memory_service.records.rules.presence import Before, before
from memory_service.records.rules.states import (
    floor_without,
    next_entry,
    note_saved,
    renamed_version,
    state_to_rename,
)
from memory_service.records.sqlite.connection import Connection
from memory_service.records.sqlite.history import (
    end_of_state,
    forget_state_versions,
    keep_state_version,
    note,
    note_removal,
)
from memory_service.records.sqlite.kept_answers import forget_told_of_state, forget_told_of_states
from memory_service.records.sqlite.ledger import Book, Ledger, Outcome, earlier, finish
from memory_service.records.sqlite.rows import shortened_state_columns, state_of
from memory_service.records.stored_values import encode_provenance
from memory_service.runtime.caller import Caller


class StoredState(NamedTuple):
    """The fields of a stored state that a write needs."""

    version: int
    create_us: int
    expire_us: int | None
    description: str


def stored_state(db: Connection, book: Book | None, key: str) -> StoredState | None:
    """Return a stored state, expired or not."""
    if book is None:
        return None
    row = db.execute(
        "SELECT version, create_us, expire_us, description FROM states WHERE uid = ? AND key = ?",
        (book.uid, key),
    ).fetchone()
    return StoredState(*row) if row else None


class StoredVersion(NamedTuple):
    """The fields of a stored state that the redaction of a version needs."""

    revision: int
    expire_us: int | None


def stored_version(db: Connection, book: Book | None, key: str) -> StoredVersion | None:
    """Return a stored state, expired or not."""
    if book is None:
        return None
    row = db.execute(
        "SELECT revision, expire_us FROM states WHERE uid = ? AND key = ?", (book.uid, key)
    ).fetchone()
    return StoredVersion(*row) if row else None


def put_state(
    db: Connection, ledger: Ledger, book: Book, write: StateWrite, stored: StoredState | None
) -> StateEntry:
    """Save a value, whatever is stored."""
    becomes = before(stored, write.now_us, keeps_history=ledger.keeps_history)
    if stored is not None and becomes is Before.EXPIRE:
        expire_state(db, ledger, book, write.key, stored.version)
        stored = None
    elif becomes is Before.KEEP:
        keep_state_version(db, book, write.key, write.now_us)
    elif becomes is Before.FORGET:
        forget_told_of_state(db, book.uid, write.key)
    return write_over(db, ledger, book, write, stored)


def write_over(
    db: Connection, ledger: Ledger, book: Book, write: StateWrite, present: StoredState | None
) -> StateEntry:
    """Save a value over the present one without keeping a version."""
    if present is None:
        book.state_count += 1
    else:
        ledger.erase(db, book)
    revision = ledger.change(db, book, ChangeType.STATE_SAVED, write.key)
    entry = next_entry(write, present, book.version_floor, revision)
    db.execute(
        "INSERT OR REPLACE INTO states (uid, key, version, create_us, update_us, expire_us, description,"
        " revision, value, provenance) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (book.uid, entry.key, entry.version, entry.create_us, entry.update_us, entry.expire_us,
         entry.description, revision, entry.value_json.decode(), encode_provenance(entry.provenance)),
    )  # fmt: skip
    return entry


def remove_state(
    db: Connection, ledger: Ledger, book: Book, key: str, version: int, kind: ChangeType
) -> None:
    """Remove a key and its versions; later versions continue above its last one."""
    ledger.erase(db, book)
    ledger.change(db, book, kind, key)
    db.execute("DELETE FROM states WHERE uid = ? AND key = ?", (book.uid, key))
    forget_state_versions(db, book, key)
    forget_told_of_state(db, book.uid, key)
    book.state_count -= 1
    book.version_floor = floor_without(book.version_floor, [version])


def expire_state(db: Connection, ledger: Ledger, book: Book, key: str, version: int) -> None:
    """Remove an expired key, and record the writer that cut it short, if any."""
    # Read before its versions are removed with it.
    end = end_of_state(db, ledger, book, key)
    remove_state(db, ledger, book, key, version, ChangeType.STATE_EXPIRED)
    note(db, book, end)


def rename_state(
    db: Connection,
    ledger: Ledger,
    namespace: str,
    renaming: RenameState,
    request: RequestKey | None,
    by: Caller,
) -> Outcome:
    """Give a state another key; see `StateStore.rename_state`."""
    book = ledger.find(db, namespace)
    if (replayed := earlier(db, book, request)) is not None:
        return replayed
    key, new_key = renaming.key, renaming.new_key
    taken = stored_state(db, book, new_key)
    stored = state_to_rename(namespace, renaming, stored_state(db, book, key), taken)
    book = ledger.find_or_begin(db, namespace)
    if taken is not None:
        expire_state(db, ledger, book, new_key, taken.version)
    ledger.erase(db, book)
    ledger.change(db, book, ChangeType.STATE_DELETED, key)
    note_removal(db, ledger, book, by)
    forget_told_of_state(db, book.uid, key)
    revision = ledger.change(db, book, ChangeType.STATE_SAVED, new_key)
    version = renamed_version(stored.version, book.version_floor)
    book.version_floor = floor_without(book.version_floor, [stored.version])
    db.execute(
        "UPDATE states SET key = ?, version = ?, revision = ? WHERE uid = ? AND key = ?",
        (new_key, version, revision, book.uid, key),
    )
    db.execute("UPDATE state_history SET key = ? WHERE uid = ? AND key = ?", (new_key, book.uid, key))
    receipt = Receipt(0)
    row = db.execute(
        f"SELECT {shortened_state_columns(0)} FROM states WHERE uid = ? AND key = ?", (book.uid, new_key)
    ).fetchone()
    note_saved(receipt, [state_of(row)])
    return finish(db, book, request, Outcome(receipt))


def empty_states(db: Connection, ledger: Ledger, book: Book) -> int:
    """Remove every key of a namespace; return how many there were."""
    ledger.erase(db, book)
    removed = book.state_count
    highest = db.execute("SELECT max(version) FROM states WHERE uid = ?", (book.uid,)).fetchone()[0]
    db.execute("DELETE FROM states WHERE uid = ?", (book.uid,))
    forget_state_versions(db, book)
    forget_told_of_states(db, book.uid)
    book.version_floor = floor_without(book.version_floor, [highest or 0])
    book.state_count = 0
    return removed


def clear_states(
    db: Connection, ledger: Ledger, namespace: str, request: RequestKey | None, by: Caller
) -> Outcome:
    """Remove every key; see `StateStore.clear_states`."""
    book = ledger.find(db, namespace)
    if (replayed := earlier(db, book, request)) is not None:
        return replayed
    began = book is None
    book = ledger.find_or_begin(db, namespace)
    receipt = Receipt(0, removed_state_count=empty_states(db, ledger, book))
    ledger.change(db, book, ChangeType.STATE_CLEARED, "")
    note_removal(db, ledger, book, by)
    return finish(db, book, request, Outcome(receipt, began=began))
