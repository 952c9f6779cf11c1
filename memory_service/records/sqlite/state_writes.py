"""What writes of state do to the database. Each checks everything before it changes anything."""

from __future__ import annotations

from memory_service.data_model import (
    ChangeType,
    Receipt,
    RequestKey,
    StateWrite,
)
from memory_service.errors import Conflict, NotFound
from memory_service.records.sqlite.connection import Connection, Row
from memory_service.records.sqlite.history import (
    Remover,
    end_of_state,
    forget_state_versions,
    keep_state_version,
    note_end,
    note_removal,
)
from memory_service.records.sqlite.kept_answers import forget_told_of_state, forget_told_of_states
from memory_service.records.sqlite.ledger import Book, Ledger, Outcome, earlier, expired, finish
from memory_service.records.sqlite.rows import encode_provenance


def _stored_state(db: Connection, book: Book | None, key: str) -> Row | None:
    """Return (version, create_us, expire_us, description) of a state."""
    if book is None:
        return None
    row: Row | None = db.execute(
        "SELECT version, create_us, expire_us, description FROM states WHERE uid = ? AND key = ?",
        (book.uid, key),
    ).fetchone()
    return row


def live_state(db: Connection, book: Book | None, write: StateWrite) -> Row | None:
    """Return (version, create_us, expire_us, description) of the state that a write would meet."""
    stored = _stored_state(db, book, write.key)
    return None if stored is None or expired(stored, write.now_us) else stored


def live_version(db: Connection, book: Book | None, write: StateWrite) -> int:
    """Return the version of the state that a write would meet, 0 for none."""
    stored = live_state(db, book, write)
    return stored[0] if stored else 0


def save_state(
    db: Connection, ledger: Ledger, namespace: str, write: StateWrite, request: RequestKey | None
) -> Outcome:
    """Save a value; see `StateStore.save_state`."""
    book = ledger.find(db, namespace)
    if (before := earlier(db, book, request)) is not None:
        # It was of the same body, which told the description that the state may not have any more.
        before.receipt.description = before.receipt.description or write.description or ""
        return before
    version = live_version(db, book, write)
    if write.expected_version is not None and write.expected_version != version:
        raise Conflict.version(write.key, write.expected_version, version)
    began = book is None
    book = ledger.find_or_begin(db, namespace)
    receipt = put_state(db, ledger, book, write)
    return finish(db, book, request, Outcome(receipt, began=began))


def put_state(db: Connection, ledger: Ledger, book: Book, write: StateWrite) -> Receipt:
    """Save a value, whatever is there; return its version and times."""
    stored = _stored_state(db, book, write.key)
    if stored is not None and expired(stored, write.now_us):
        expire_state(db, ledger, book, write.key, stored[0])
        stored = None
    if stored is None:
        book.state_count += 1
    else:
        ledger.erase(db, book)
        keep_state_version(db, ledger, book, write.key, write.now_us)
        if not ledger.keeps_history:
            forget_told_of_state(db, book.uid, write.key)
    version = (stored[0] if stored else book.version_floor) + 1
    created = stored[1] if stored else write.now_us
    kept = stored[3] if stored else ""
    description = kept if write.description is None else write.description
    revision = ledger.change(db, book, ChangeType.STATE_SAVED, write.key)
    db.execute(
        "INSERT OR REPLACE INTO states (uid, key, version, create_us, update_us, expire_us, description,"
        " revision, value, provenance) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (book.uid, write.key, version, created, write.now_us, write.expire_us, description, revision,
         write.value_json.decode(), encode_provenance(write.provenance)),
    )  # fmt: skip
    return Receipt(
        0,
        version=version,
        create_us=created,
        update_us=write.now_us,
        expire_us=write.expire_us,
        description=description,
    )


def remove_state(
    db: Connection, ledger: Ledger, book: Book, key: str, version: int, kind: ChangeType
) -> None:
    """Remove a key, and the versions it had; versions go on above the one it had."""
    ledger.erase(db, book)
    ledger.change(db, book, kind, key)
    db.execute("DELETE FROM states WHERE uid = ? AND key = ?", (book.uid, key))
    forget_state_versions(db, book, key)
    forget_told_of_state(db, book.uid, key)
    book.state_count -= 1
    book.version_floor = max(book.version_floor, version)


def expire_state(db: Connection, ledger: Ledger, book: Book, key: str, version: int) -> None:
    """Remove a key that has expired, and note who cut it short, if anybody did."""
    # Its versions tell, and go with it.
    end = end_of_state(db, ledger, book, key)
    remove_state(db, ledger, book, key, version, ChangeType.STATE_EXPIRED)
    note_end(db, book, end)


def delete_state(
    db: Connection,
    ledger: Ledger,
    namespace: str,
    key: str,
    at_us: int,
    expected_version: int | None,
    request: RequestKey | None,
    remover: Remover,
) -> Outcome:
    """Remove a key; see `StateStore.delete_state`."""
    book = ledger.find(db, namespace)
    if (before := earlier(db, book, request)) is not None:
        return before
    stored = _stored_state(db, book, key)
    if book is None or stored is None or expired(stored, at_us):
        raise NotFound.state(namespace, key)
    if expected_version is not None and expected_version != stored[0]:
        raise Conflict.version(key, expected_version, stored[0])
    remove_state(db, ledger, book, key, stored[0], ChangeType.STATE_DELETED)
    note_removal(db, ledger, book, remover)
    return finish(db, book, request, Outcome(Receipt(0, removed_state_count=1)))


def empty_states(db: Connection, ledger: Ledger, book: Book) -> int:
    """Remove every key of a namespace; return how many there were."""
    ledger.erase(db, book)
    removed = book.state_count
    highest = db.execute("SELECT max(version) FROM states WHERE uid = ?", (book.uid,)).fetchone()[0]
    db.execute("DELETE FROM states WHERE uid = ?", (book.uid,))
    forget_state_versions(db, book)
    forget_told_of_states(db, book.uid)
    book.version_floor = max(book.version_floor, highest or 0)
    book.state_count = 0
    return removed


def clear_states(
    db: Connection, ledger: Ledger, namespace: str, request: RequestKey | None, remover: Remover
) -> Outcome:
    """Remove every key; see `StateStore.clear_states`."""
    book = ledger.find(db, namespace)
    if (before := earlier(db, book, request)) is not None:
        return before
    began = book is None
    book = ledger.find_or_begin(db, namespace)
    receipt = Receipt(0, removed_state_count=empty_states(db, ledger, book))
    ledger.change(db, book, ChangeType.STATE_CLEARED, "")
    note_removal(db, ledger, book, remover)
    return finish(db, book, request, Outcome(receipt, began=began))
