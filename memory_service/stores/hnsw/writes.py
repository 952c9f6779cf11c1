"""What writes do to the database. Each checks everything before it changes anything.

The functions run inside the transaction of the commit queue, one write at a time, so they read and
change without locks. `Ledger` keeps the rows of namespaces that were written lately, because every
write needs one and changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from memory_service.clock import now_us
from memory_service.errors import AlreadyExists, Conflict, NotFound
from memory_service.records import (
    ChangeType,
    ItemWrite,
    NamespaceInfo,
    OnDuplicate,
    Receipt,
    RequestKey,
    StateWrite,
)
from memory_service.stores.hnsw.rows import (
    INSERT_ITEM,
    UPDATE_ITEM,
    UPDATE_ITEM_KEEPING_VECTOR,
    item_row,
    item_update_row,
)
from memory_service.stores.hnsw.schema import POSITION_MAX, key_of, keys_of
from memory_service.stores.rules import VectorRule, replayed, stamp
from memory_service.stores.sqlite import Connection, Row

_KEPT_MAX = 10_000
_encode_receipt = msgspec.json.Encoder().encode
_decode_receipt = msgspec.json.Decoder(Receipt).decode


@dataclass(slots=True)
class Book:
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
    dirty: bool = False

    def info(self) -> NamespaceInfo:
        """Return it as others may see it, once it is committed."""
        return NamespaceInfo(
            self.name, self.uid, self.revision, self.item_count, self.state_count, self.embedded_count,
            self.dimension, self.model, self.create_us,
        )  # fmt: skip


class Ledger:
    """Rows of namespaces, written back once per commit."""

    def __init__(self) -> None:
        self._books: dict[str, Book] = {}

    def find(self, db: Connection, name: str) -> Book | None:
        """Return the row of a namespace."""
        book = self._books.get(name)
        if book is None:
            row = db.execute(
                "SELECT name, uid, revision, item_count, state_count, embedded_count, dimension, model,"
                " version_floor, create_us FROM namespaces WHERE name = ?",
                (name,),
            ).fetchone()
            if row is None:
                return None
            book = self._books[name] = Book(*row)
        return book

    def find_or_begin(self, db: Connection, name: str) -> Book:
        """Return the row of a namespace, which begins with this."""
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
        book.dirty = True
        db.execute(
            "INSERT INTO changes (key, type, subject) VALUES (?, ?, ?)",
            (key_of(book.uid, book.revision), int(kind), subject),
        )
        return book.revision

    def forget(self, name: str) -> None:
        """Forget a namespace that was deleted."""
        self._books.pop(name, None)

    def forget_all(self) -> None:
        """Forget everything, after a rollback."""
        self._books.clear()

    def write_back(self, db: Connection) -> None:
        """Write what changed, before the commit."""
        dirty = [book for book in self._books.values() if book.dirty]
        for b in dirty:
            db.execute(
                "UPDATE namespaces SET revision=?, item_count=?, state_count=?, embedded_count=?,"
                " dimension=?, model=?, version_floor=? WHERE uid=?",
                (b.revision, b.item_count, b.state_count, b.embedded_count, b.dimension, b.model,
                 b.version_floor, b.uid),
            )  # fmt: skip
            b.dirty = False
        if len(self._books) > _KEPT_MAX:
            self._books.clear()


@dataclass(slots=True)
class Outcome:
    """What a write did: for the caller the receipt, for the views what to change."""

    receipt: Receipt
    info: NamespaceInfo | None = None
    began: bool = False
    added: list[tuple[ItemWrite, dict[int, int]]] = field(default_factory=list)
    replaced: list[tuple[ItemWrite, dict[int, int]]] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    emptied: bool = False


def earlier(db: Connection, book: Book | None, request: RequestKey | None) -> Outcome | None:
    """Return the outcome of a request that was applied before. Raises FailedPrecondition."""
    if request is None or book is None:
        return None
    row = db.execute(
        "SELECT digest, receipt FROM requests WHERE uid = ? AND id = ?", (book.uid, request.id)
    ).fetchone()
    return Outcome(replayed(request, row[0], _decode_receipt(row[1]))) if row else None


def finish(db: Connection, book: Book, request: RequestKey | None, outcome: Outcome) -> Outcome:
    """Remember the request and complete the outcome."""
    outcome.receipt.revision = book.revision
    if request is not None:
        db.execute(
            "INSERT INTO requests (uid, id, digest, receipt, time_us) VALUES (?, ?, ?, ?, ?)",
            (book.uid, request.id, request.digest, _encode_receipt(outcome.receipt).decode(), now_us()),
        )
    outcome.info = book.info()
    return outcome


# --- items ------------------------------------------------------------------------------------


def _stored(db: Connection, book: Book | None, item_id: str) -> Row | None:
    """Return (key, revision, expire_us, vector_revision) of an item."""
    if book is None:
        return None
    row: Row | None = db.execute(
        "SELECT key, revision, expire_us, vector_revision FROM items WHERE uid = ? AND id = ?",
        (book.uid, item_id),
    ).fetchone()
    return row


def _expired(row: Row, at_us: int) -> bool:
    return row[2] is not None and row[2] <= at_us


def add_items(
    db: Connection,
    ledger: Ledger,
    namespace: str,
    writes: Sequence[ItemWrite],
    terms: Sequence[dict[int, int]],
    states: Sequence[StateWrite],
    on_duplicate: OnDuplicate,
    request: RequestKey | None,
) -> Outcome:
    """Add items; see `ItemStore.add_items`."""
    book = ledger.find(db, namespace)
    if (before := earlier(db, book, request)) is not None:
        return before
    rule = VectorRule(book.dimension, book.model) if book else VectorRule(0, "")
    chosen: list[tuple[ItemWrite, dict[int, int]]] = []
    seen: set[str] = set()
    for write, its_terms in zip(writes, terms, strict=True):
        item = write.item
        stored = _stored(db, book, item.id)
        exists = item.id in seen or (stored is not None and not _expired(stored, item.update_us))
        if exists and on_duplicate is OnDuplicate.FAIL:
            raise AlreadyExists(namespace, item.id)
        if exists and on_duplicate is OnDuplicate.SKIP:
            continue
        rule.take(write)
        seen.add(item.id)
        chosen.append((write, its_terms))
    if on_duplicate is OnDuplicate.FAIL:
        _check_new_states(db, book, states)
    began = book is None
    book = ledger.find_or_begin(db, namespace)
    outcome = Outcome(Receipt(0, skipped_count=len(writes) - len(chosen)), began=began)
    for write, its_terms in chosen:
        _put(db, ledger, book, write, its_terms, outcome)
        outcome.receipt.items.append(stamp(write))
    for state in states:
        exists = _live_state(db, book, state) is not None
        if exists and on_duplicate is not OnDuplicate.REPLACE:
            outcome.receipt.skipped_state_count += 1
        else:
            _put_state(db, ledger, book, state)
    book.dimension, book.model = rule.dimension, rule.model
    return finish(db, book, request, outcome)


def _put(
    db: Connection, ledger: Ledger, book: Book, write: ItemWrite, terms: dict[int, int], outcome: Outcome
) -> None:
    stored = _stored(db, book, write.item.id)
    if stored is not None and _expired(stored, write.item.update_us):
        outcome.removed.append(_remove(db, ledger, book, write.item.id, stored, ChangeType.ITEM_EXPIRED))
        stored = None
    if stored is not None:
        _replace(db, ledger, book, write, terms, stored)
        outcome.replaced.append((write, terms))
        return
    item = write.item
    item.revision = item.position = ledger.change(db, book, ChangeType.ITEM_ADDED, item.id)
    db.execute(INSERT_ITEM, item_row(book.uid, write, terms))
    book.item_count += 1
    book.embedded_count += item.embedding is not None
    outcome.added.append((write, terms))


def _replace(
    db: Connection, ledger: Ledger, book: Book, write: ItemWrite, terms: dict[int, int], stored: Row
) -> None:
    item = write.item
    item.position = stored[0] & POSITION_MAX
    item.revision = ledger.change(db, book, ChangeType.ITEM_UPDATED, item.id)
    row = item_update_row(book.uid, write, terms)
    if write.keep_vector:
        db.execute(UPDATE_ITEM_KEEPING_VECTOR, row)
        item.embedded = bool(stored[3])
    else:
        db.execute(UPDATE_ITEM, row)
        book.embedded_count += (item.embedding is not None) - bool(stored[3])


def _remove(db: Connection, ledger: Ledger, book: Book, item_id: str, stored: Row, kind: ChangeType) -> int:
    """Remove an item and return its position."""
    ledger.change(db, book, kind, item_id)
    db.execute("DELETE FROM items WHERE key = ?", (stored[0],))
    book.item_count -= 1
    book.embedded_count -= bool(stored[3])
    position: int = stored[0] & POSITION_MAX
    return position


def _current(
    db: Connection, book: Book | None, namespace: str, item_id: str, at_us: int, expected: int | None
) -> Row:
    stored = _stored(db, book, item_id)
    if stored is None or _expired(stored, at_us):
        raise NotFound.item(namespace, item_id)
    if expected is not None and expected != stored[1]:
        raise Conflict.revision(item_id, expected, stored[1])
    return stored


def replace_item(
    db: Connection,
    ledger: Ledger,
    namespace: str,
    write: ItemWrite,
    terms: dict[int, int],
    expected_revision: int | None,
    request: RequestKey | None,
) -> Outcome:
    """Replace an item; see `ItemStore.replace_item`."""
    book = ledger.find(db, namespace)
    if (before := earlier(db, book, request)) is not None:
        return before
    item = write.item
    stored = _current(db, book, namespace, item.id, item.update_us, expected_revision)
    assert book is not None
    rule = VectorRule(book.dimension, book.model)
    if not write.keep_vector:
        rule.take(write)
    _replace(db, ledger, book, write, terms, stored)
    book.dimension, book.model = rule.dimension, rule.model
    return finish(db, book, request, Outcome(Receipt(0, [stamp(write)]), replaced=[(write, terms)]))


def delete_item(
    db: Connection,
    ledger: Ledger,
    namespace: str,
    item_id: str,
    at_us: int,
    expected_revision: int | None,
    request: RequestKey | None,
) -> Outcome:
    """Remove an item; see `ItemStore.delete_item`."""
    book = ledger.find(db, namespace)
    if (before := earlier(db, book, request)) is not None:
        return before
    stored = _current(db, book, namespace, item_id, at_us, expected_revision)
    assert book is not None
    position = _remove(db, ledger, book, item_id, stored, ChangeType.ITEM_DELETED)
    return finish(db, book, request, Outcome(Receipt(0, removed_count=1), removed=[position]))


# --- state ------------------------------------------------------------------------------------


def _stored_state(db: Connection, book: Book | None, key: str) -> Row | None:
    """Return (version, create_us, expire_us, description) of a state."""
    if book is None:
        return None
    row: Row | None = db.execute(
        "SELECT version, create_us, expire_us, description FROM states WHERE uid = ? AND key = ?",
        (book.uid, key),
    ).fetchone()
    return row


def _live_state(db: Connection, book: Book | None, write: StateWrite) -> Row | None:
    stored = _stored_state(db, book, write.key)
    return None if stored is None or _expired(stored, write.now_us) else stored


def _check_new_states(db: Connection, book: Book | None, states: Sequence[StateWrite]) -> None:
    seen: set[str] = set()
    for state in states:
        stored = _live_state(db, book, state)
        if stored is not None or state.key in seen:
            raise Conflict.version(state.key, 0, stored[0] if stored else 1)
        seen.add(state.key)


def save_state(
    db: Connection, ledger: Ledger, namespace: str, write: StateWrite, request: RequestKey | None
) -> Outcome:
    """Save a value; see `StateStore.save_state`."""
    book = ledger.find(db, namespace)
    if (before := earlier(db, book, request)) is not None:
        return before
    stored = _live_state(db, book, write)
    version = stored[0] if stored else 0
    if write.expected_version is not None and write.expected_version != version:
        raise Conflict.version(write.key, write.expected_version, version)
    began = book is None
    book = ledger.find_or_begin(db, namespace)
    receipt = _put_state(db, ledger, book, write)
    return finish(db, book, request, Outcome(receipt, began=began))


def _put_state(db: Connection, ledger: Ledger, book: Book, write: StateWrite) -> Receipt:
    stored = _stored_state(db, book, write.key)
    if stored is not None and _expired(stored, write.now_us):
        _remove_state(db, ledger, book, write.key, stored[0], ChangeType.STATE_EXPIRED)
        stored = None
    if stored is None:
        book.state_count += 1
    version = (stored[0] if stored else book.version_floor) + 1
    created = stored[1] if stored else write.now_us
    kept = stored[3] if stored else ""
    description = kept if write.description is None else write.description
    revision = ledger.change(db, book, ChangeType.STATE_SAVED, write.key)
    db.execute(
        "INSERT OR REPLACE INTO states (uid, key, version, create_us, update_us, expire_us, description,"
        " revision, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (book.uid, write.key, version, created, write.now_us, write.expire_us, description, revision,
         write.value_json.decode()),
    )  # fmt: skip
    return Receipt(
        0,
        version=version,
        create_us=created,
        update_us=write.now_us,
        expire_us=write.expire_us,
        description=description,
    )


def _remove_state(
    db: Connection, ledger: Ledger, book: Book, key: str, version: int, kind: ChangeType
) -> None:
    ledger.change(db, book, kind, key)
    db.execute("DELETE FROM states WHERE uid = ? AND key = ?", (book.uid, key))
    book.state_count -= 1
    book.version_floor = max(book.version_floor, version)


def delete_state(
    db: Connection,
    ledger: Ledger,
    namespace: str,
    key: str,
    at_us: int,
    expected_version: int | None,
    request: RequestKey | None,
) -> Outcome:
    """Remove a key; see `StateStore.delete_state`."""
    book = ledger.find(db, namespace)
    if (before := earlier(db, book, request)) is not None:
        return before
    stored = _stored_state(db, book, key)
    if book is None or stored is None or _expired(stored, at_us):
        raise NotFound.state(namespace, key)
    if expected_version is not None and expected_version != stored[0]:
        raise Conflict.version(key, expected_version, stored[0])
    _remove_state(db, ledger, book, key, stored[0], ChangeType.STATE_DELETED)
    return finish(db, book, request, Outcome(Receipt(0, removed_state_count=1)))


def _empty_states(db: Connection, book: Book) -> int:
    removed = book.state_count
    highest = db.execute("SELECT max(version) FROM states WHERE uid = ?", (book.uid,)).fetchone()[0]
    db.execute("DELETE FROM states WHERE uid = ?", (book.uid,))
    book.version_floor = max(book.version_floor, highest or 0)
    book.state_count = 0
    return removed


def clear_states(db: Connection, ledger: Ledger, namespace: str, request: RequestKey | None) -> Outcome:
    """Remove every key; see `StateStore.clear_states`."""
    book = ledger.find(db, namespace)
    if (before := earlier(db, book, request)) is not None:
        return before
    began = book is None
    book = ledger.find_or_begin(db, namespace)
    receipt = Receipt(0, removed_state_count=_empty_states(db, book))
    ledger.change(db, book, ChangeType.STATE_CLEARED, "")
    return finish(db, book, request, Outcome(receipt, began=began))


# --- namespaces -------------------------------------------------------------------------------


def reset(db: Connection, ledger: Ledger, namespace: str, request: RequestKey | None) -> Outcome:
    """Empty a namespace; see `NamespaceStore.reset`."""
    book = ledger.find(db, namespace)
    if (before := earlier(db, book, request)) is not None:
        return before
    began = book is None
    book = ledger.find_or_begin(db, namespace)
    receipt = Receipt(0, removed_count=book.item_count, removed_state_count=_empty_states(db, book))
    keys = keys_of(book.uid)
    db.execute("DELETE FROM items WHERE key BETWEEN ? AND ?", keys)
    db.execute("DELETE FROM changes WHERE key BETWEEN ? AND ?", keys)
    db.execute("DELETE FROM snapshots WHERE uid = ?", (book.uid,))
    book.item_count = book.embedded_count = book.dimension = 0
    book.model = ""
    ledger.change(db, book, ChangeType.RESET, "")
    return finish(db, book, request, Outcome(receipt, began=began, emptied=True))


def delete_namespace(db: Connection, ledger: Ledger, namespace: str) -> Outcome:
    """Remove a namespace; see `NamespaceStore.delete_namespace`."""
    book = ledger.find(db, namespace)
    if book is None:
        raise NotFound.namespace(namespace)
    keys = keys_of(book.uid)
    db.execute("DELETE FROM items WHERE key BETWEEN ? AND ?", keys)
    db.execute("DELETE FROM changes WHERE key BETWEEN ? AND ?", keys)
    db.execute("DELETE FROM snapshots WHERE uid = ?", (book.uid,))
    db.execute("DELETE FROM states WHERE uid = ?", (book.uid,))
    db.execute("DELETE FROM requests WHERE uid = ?", (book.uid,))
    db.execute("DELETE FROM namespaces WHERE uid = ?", (book.uid,))
    ledger.forget(namespace)
    receipt = Receipt(book.revision, removed_count=book.item_count, removed_state_count=book.state_count)
    return Outcome(receipt, info=book.info())


def record_snapshot(db: Connection, uid: int, manifest: str) -> bool:
    """Record the manifest of an index snapshot; False when its namespace is gone."""
    if db.execute("SELECT 1 FROM namespaces WHERE uid = ?", (uid,)).fetchone() is None:
        return False
    db.execute("INSERT OR REPLACE INTO snapshots (uid, manifest) VALUES (?, ?)", (uid, manifest))
    return True


def remove_expired(
    db: Connection, ledger: Ledger, at_us: int, forget_requests_before_us: int, limit: int
) -> list[Outcome]:
    """Remove what is expired; an outcome for each namespace that lost something."""
    db.execute("DELETE FROM requests WHERE time_us < ?", (forget_requests_before_us,))
    outcomes: dict[str, Outcome] = {}
    items = db.execute(
        "SELECT n.name, i.id, i.key, i.revision, i.expire_us, i.vector_revision FROM items i"
        " JOIN namespaces n USING (uid) WHERE i.expire_us <= ? ORDER BY i.expire_us LIMIT ?",
        (at_us, limit),
    ).fetchall()
    for name, item_id, *stored in items:
        book = ledger.find_or_begin(db, name)
        outcome = outcomes.setdefault(name, Outcome(Receipt(0)))
        outcome.removed.append(_remove(db, ledger, book, item_id, tuple(stored), ChangeType.ITEM_EXPIRED))
        outcome.receipt.removed_count += 1
    states = db.execute(
        "SELECT n.name, s.key, s.version FROM states s JOIN namespaces n USING (uid)"
        " WHERE s.expire_us <= ? ORDER BY s.expire_us LIMIT ?",
        (at_us, limit - len(items)),
    ).fetchall()
    for name, key, version in states:
        book = ledger.find_or_begin(db, name)
        _remove_state(db, ledger, book, key, version, ChangeType.STATE_EXPIRED)
        outcomes.setdefault(name, Outcome(Receipt(0))).receipt.removed_state_count += 1
    for name, outcome in outcomes.items():
        finish(db, ledger.find_or_begin(db, name), None, outcome)
    return list(outcomes.values())
