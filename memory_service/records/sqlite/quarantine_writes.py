"""Held writes in the database; see `QuarantineStore`."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import HeldWrite, Receipt, RequestKey, WritesBy
from memory_service.errors import NotFound
from memory_service.records.rules.held import same_request
from memory_service.records.sqlite.connection import Connection, Row
from memory_service.records.sqlite.erasure import NO_NAMESPACE, mark_erased
from memory_service.records.sqlite.ledger import Book, Ledger, Outcome, finish

_COLUMNS = "id, reason, body, held_us, expire_us, writer, credential_id, request_id, digest"
_BY = (
    "uid = :uid AND held_us >= :since AND (:writer IS NULL OR writer = :writer)"
    " AND (:credential IS NULL OR credential_id = :credential)"
)


def _held_of(row: Row) -> HeldWrite:
    request = None if row[7] is None else RequestKey(row[7], bytes(row[8]))
    held_id, reason, body, held_us, expire_us, writer, credential_id = row[:7]
    return HeldWrite(held_id, reason, bytes(body), held_us, expire_us, writer, credential_id, request)


def _values(uid: int, by: WritesBy) -> dict[str, object]:
    return {"uid": uid, "since": by.since_us, "writer": by.writer, "credential": by.credential_id}


def hold(
    db: Connection, ledger: Ledger, namespace: str, held: Sequence[HeldWrite]
) -> tuple[list[HeldWrite], Outcome]:
    """Hold writes; see `QuarantineStore.hold`."""
    book = ledger.find(db, namespace)
    kept = [(_same(db, book, write), write) for write in held]
    began = book is None
    book = ledger.find_or_begin(db, namespace)
    for same, write in kept:
        if same is None:
            _insert(db, book, write)
    outcome = finish(db, book, None, Outcome(Receipt(0), began=began))
    return [same or write for same, write in kept], outcome


def _same(db: Connection, book: Book | None, write: HeldWrite) -> HeldWrite | None:
    """Return the held write with the same request, if any. Raises FailedPrecondition."""
    if book is None or write.request is None:
        return None
    statement = f"SELECT {_COLUMNS} FROM quarantine WHERE uid = ? AND request_id = ?"
    row = db.execute(statement, (book.uid, write.request.id)).fetchone()
    if row is None:
        return None
    found = _held_of(row)
    return found if same_request(found, write) else None


def _insert(db: Connection, book: Book, write: HeldWrite) -> None:
    request = write.request
    db.execute(
        f"INSERT INTO quarantine (uid, {_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)",
        (
            book.uid, write.id, write.reason, write.body, write.held_us, write.expire_us, write.writer,
            write.credential_id, request.id if request else None, request.digest if request else None,
        ),
    )  # fmt: skip


def select_held(db: Connection, uid: int, after: str, limit: int, now_us: int) -> list[HeldWrite]:
    """Return held writes, by id."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM quarantine WHERE uid = ? AND id > ? AND expire_us > ? ORDER BY id LIMIT ?",
        (uid, after, now_us, limit),
    )
    return [_held_of(row) for row in rows]


def find_held(db: Connection, uid: int, held_id: str) -> HeldWrite | None:
    """Return a held write."""
    statement = f"SELECT {_COLUMNS} FROM quarantine WHERE uid = ? AND id = ?"
    row = db.execute(statement, (uid, held_id)).fetchone()
    return _held_of(row) if row else None


def count_held(db: Connection, uid: int, by: WritesBy | None) -> int:
    """Return how many writes are held, or how many of one writer."""
    wanted = _values(uid, by or WritesBy(0))
    count: int = db.execute(f"SELECT count(*) FROM quarantine WHERE {_BY}", wanted).fetchone()[0]
    return count


def check_held(db: Connection, book: Book | None, namespace: str, held_id: str) -> None:
    """Raise NotFound if a write is not held."""
    if book is None or find_held(db, book.uid, held_id) is None:
        raise NotFound.quarantined(namespace, held_id)


def let_go(db: Connection, ledger: Ledger, book: Book, held_id: str) -> None:
    """Release a held write."""
    ledger.erase(db, book)
    db.execute("DELETE FROM quarantine WHERE uid = ? AND id = ?", (book.uid, held_id))


def drop_held(db: Connection, ledger: Ledger, namespace: str, held_id: str) -> Outcome:
    """Drop a held write; see `QuarantineStore.drop_held`."""
    book = ledger.find(db, namespace)
    check_held(db, book, namespace, held_id)
    assert book is not None
    let_go(db, ledger, book, held_id)
    return Outcome(Receipt(book.revision))


def drop_held_by(db: Connection, ledger: Ledger, namespace: str, by: WritesBy) -> Outcome:
    """Drop the held writes of a writer; see `QuarantineStore.drop_held_by`."""
    book = ledger.find(db, namespace)
    if book is None:
        return Outcome(Receipt(0))
    ledger.erase(db, book)
    before = db.total_changes()
    db.execute(f"DELETE FROM quarantine WHERE {_BY}", _values(book.uid, by))
    return Outcome(Receipt(book.revision, removed_count=db.total_changes() - before))


def forget_held(db: Connection, book: Book) -> None:
    """Drop all held writes of a namespace."""
    db.execute("DELETE FROM quarantine WHERE uid = ?", (book.uid,))


def forget_expired(db: Connection, at_us: int, limit: int) -> None:
    """Drop up to `limit` expired held writes."""
    before = db.total_changes()
    db.execute(
        "DELETE FROM quarantine WHERE rowid IN (SELECT rowid FROM quarantine WHERE expire_us <= ? LIMIT ?)",
        (at_us, limit),
    )
    if db.total_changes() > before:
        mark_erased(db, NO_NAMESPACE)
