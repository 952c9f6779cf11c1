"""The rows of namespaces while they are written to, and applied requests.

Everything here runs within a transaction of the commit queue, one write at a time, so it needs no locks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from memory_service.data_model import (
    ChangeType,
    ItemWrite,
    NamespaceInfo,
    Receipt,
    RequestKey,
)
from memory_service.indexes.view import Entry
from memory_service.records.effects import Effect
from memory_service.records.rules.vectors import vector_key
from memory_service.records.sqlite.connection import Connection
from memory_service.records.sqlite.erasure import mark_erased
from memory_service.records.sqlite.kept_answers import find_receipt, keep_receipt
from memory_service.records.sqlite.schema import key_of
from memory_service.records.stored_values import NamespaceCounts
from memory_service.runtime.clock import now_us

_KEPT_MAX = 10_000


@dataclass(slots=True)
class Book(NamespaceCounts):
    """The row of a namespace while it is written to."""

    name: str
    uid: int
    revision: int
    item_count: int
    state_count: int
    embedded_count: int
    dimension: int
    model: str
    version_floor: int
    create_us: int
    pending_count: int = 0
    vector_epoch: int = 0
    moving: int = 0
    settings: str | None = None
    dirty: bool = False
    erased: bool = False

    def entry(self, write: ItemWrite, terms: bytes) -> Entry:
        """Return the view's entry for an item that was just written."""
        return Entry.of(write.item, terms, vector_key(self.vector_epoch, write.item.revision))


class Ledger:
    """Rows of namespaces, written back once per commit. `keeps_history`: replaced versions are kept."""

    def __init__(self, *, keeps_history: bool = True) -> None:
        self.keeps_history = keeps_history
        self._books: dict[str, Book] = {}
        self._dirty: list[Book] = []

    def find(self, db: Connection, name: str) -> Book | None:
        """Return the row of a namespace."""
        book = self._books.get(name)
        if book is None:
            row = db.execute(
                "SELECT name, uid, revision, item_count, state_count, embedded_count, dimension, model,"
                " version_floor, create_us, pending_count, vector_epoch, moving, settings FROM namespaces"
                " WHERE name = ?",
                (name,),
            ).fetchone()
            if row is None:
                return None
            book = self._books[name] = Book(*row)
        return book

    def find_or_begin(self, db: Connection, name: str) -> Book:
        """Return the row of a namespace, creating it if necessary."""
        book = self.find(db, name)
        if book is None:
            created = now_us()
            db.execute(
                "INSERT INTO namespaces (name, revision, item_count, state_count, embedded_count, dimension,"
                " model, version_floor, create_us) VALUES (?, 0, 0, 0, 0, 0, '', 0, ?)",
                (name, created),
            )
            book = self._books[name] = Book(name, db.last_insert_rowid(), 0, 0, 0, 0, 0, "", 0, created)
        return book

    def change(self, db: Connection, book: Book, kind: ChangeType, subject: str) -> int:
        """Log a change and return its revision."""
        book.revision += 1
        self.note(book)
        db.execute(
            "INSERT INTO changes (key, type, subject) VALUES (?, ?, ?)",
            (key_of(book.uid, book.revision), int(kind), subject),
        )
        return book.revision

    def change_all(self, db: Connection, book: Book, kind: ChangeType, subjects: Sequence[str]) -> int:
        """Log a change of each subject, in order, and return the revision of the first."""
        first = book.revision + 1
        self.note(book)
        db.execute(
            "INSERT INTO changes (key, type, subject) SELECT ? + key, ?, value FROM json_each(?)",
            (key_of(book.uid, first), int(kind), msgspec.json.encode(subjects).decode()),
        )
        book.revision += len(subjects)
        return first

    def note(self, book: Book) -> None:
        """Mark a row to be written back."""
        if not book.dirty:
            book.dirty = True
            self._dirty.append(book)

    def erase(self, db: Connection, book: Book) -> None:
        """Record that data of a namespace is deleted or overwritten; see `erasure`."""
        if not book.erased:
            mark_erased(db, book.uid)
            book.erased = True

    def forget_erasures(self) -> None:
        """Let the next erasure in each namespace set a mark again."""
        for book in self._books.values():
            book.erased = False

    def forget(self, name: str) -> None:
        """Forget a deleted namespace."""
        self._books.pop(name, None)

    def forget_all(self) -> None:
        """Forget everything, after a rollback."""
        self._books.clear()
        self._dirty.clear()

    def write_back(self, db: Connection) -> None:
        """Write the changed rows, before the commit."""
        # The row of a deleted namespace is gone; the UPDATE does not create one.
        for b in self._dirty:
            b.moving = int(b.moving and b.pending_count > 0)
            db.execute(
                "UPDATE namespaces SET revision=?, item_count=?, state_count=?, embedded_count=?,"
                " dimension=?, model=?, version_floor=?, pending_count=?, vector_epoch=?, moving=?,"
                " settings=? WHERE uid=?",
                (b.revision, b.item_count, b.state_count, b.embedded_count, b.dimension, b.model,
                 b.version_floor, b.pending_count, b.vector_epoch, b.moving, b.settings, b.uid),
            )  # fmt: skip
            b.dirty = False
        self._dirty.clear()
        if len(self._books) > _KEPT_MAX:
            self._books.clear()


@dataclass(slots=True)
class Outcome:
    """The outcome of a write: the receipt for the caller, the effect for the view."""

    receipt: Receipt
    info: NamespaceInfo | None = None
    began: bool = False
    emptied: bool = False
    effect: Effect = field(default_factory=Effect)


def earlier(db: Connection, book: Book | None, request: RequestKey | None) -> Outcome | None:
    """Return the outcome of an applied request, if any. Raises FailedPrecondition."""
    if request is None or book is None:
        return None
    receipt = find_receipt(db, book.uid, request)
    return Outcome(receipt) if receipt else None


def finish(db: Connection, book: Book, request: RequestKey | None, outcome: Outcome) -> Outcome:
    """Record the request and complete the outcome."""
    outcome.receipt.revision = book.revision
    if request is not None:
        keep_receipt(db, book.uid, request, outcome.receipt)
    outcome.info = book.info()
    return outcome
