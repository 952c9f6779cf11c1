"""What writes of items do to the database. Each checks everything before it changes anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from memory_service.data_model import (
    ChangeType,
    ItemKind,
    ItemWrite,
    OnDuplicate,
    Receipt,
    RequestKey,
    Since,
    StateWrite,
)
from memory_service.errors import Conflict, NotFound
from memory_service.records.effects import Effect
from memory_service.records.rules import VectorRule, check_new_states, check_unchanged, choose
from memory_service.records.sqlite.connection import Connection, Row
from memory_service.records.sqlite.history import (
    Remover,
    end_of_item,
    forget_versions,
    keep_version,
    note_end,
    note_removal,
    note_removals,
)
from memory_service.records.sqlite.kept_answers import forget_told_of_item, forget_told_of_items
from memory_service.records.sqlite.ledger import Book, Ledger, Outcome, earlier, expired, finish
from memory_service.records.sqlite.quarantine_writes import check_held, let_go
from memory_service.records.sqlite.rows import (
    INSERT_ITEM,
    RECORD_USES,
    UPDATE_ITEM,
    UPDATE_ITEM_KEEPING_VECTOR,
    item_row,
    item_update_row,
)
from memory_service.records.sqlite.schema import PENDING, POSITION_MAX, key_of, vector_key
from memory_service.records.sqlite.state_writes import live_state, live_version, put_state


def _stored(db: Connection, book: Book | None, item_id: str) -> Row | None:
    """Return (key, revision, expire_us, key of its vector) of an item."""
    if book is None:
        return None
    row: Row | None = db.execute(
        "SELECT key, revision, expire_us, vector_revision FROM items WHERE uid = ? AND id = ?",
        (book.uid, item_id),
    ).fetchone()
    return row


def _stored_of(db: Connection, book: Book, item_ids: Sequence[str]) -> dict[str, Row]:
    """Return what `_stored` does of each of these items that there is, in their order."""
    rows = db.execute(
        "SELECT value, i.key, revision, expire_us, vector_revision FROM json_each(?) wanted"
        " CROSS JOIN items i ON uid = ? AND i.id = value ORDER BY wanted.key",
        (msgspec.json.encode(item_ids).decode(), book.uid),
    )
    return {row[0]: row[1:] for row in rows}


def _check_unchanged(db: Connection, book: Book | None, since: Since) -> None:
    uid, revision = (book.uid, book.revision) if book else (0, 0)
    changes: list[Row] = []
    if revision > since.revision:
        changes = db.execute(
            "SELECT c.type, c.subject, i.id IS NOT NULL, i.facet ->> 'kind' FROM changes c"
            " LEFT JOIN items i ON i.uid = ? AND i.id = c.subject WHERE c.key BETWEEN ? AND ?",
            (uid, key_of(uid, since.revision + 1), key_of(uid, revision)),
        ).fetchall()
    check_unchanged(
        since,
        revision,
        (
            (ChangeType(c), subject, ItemKind(kind or 0) if there else None)
            for c, subject, there, kind in changes
        ),
    )


def add_items(
    db: Connection,
    ledger: Ledger,
    namespace: str,
    writes: Sequence[ItemWrite],
    terms: Sequence[bytes],
    states: Sequence[StateWrite],
    removals: Sequence[str],
    on_duplicate: OnDuplicate,
    request: RequestKey | None,
    remover: Remover,
    released: str = "",
    unchanged: Since | None = None,
) -> Outcome:
    """Add items; see `ItemStore.add_items`."""
    book = ledger.find(db, namespace)
    if released:
        check_held(db, book, namespace, released)
    if (before := earlier(db, book, request)) is not None:
        if released and book is not None:
            let_go(db, ledger, book, released)
        return before
    if unchanged is not None:
        _check_unchanged(db, book, unchanged)
    rule = VectorRule(book.dimension, book.model) if book else VectorRule(0, "")

    def stored_of(write: ItemWrite) -> tuple[Row | None, int]:
        row = None if write.new_id else _stored(db, book, write.item.id)
        return row, 0 if row is None or expired(row, write.item.update_us) else row[1]

    chosen = choose(namespace, writes, stored_of, on_duplicate, rule)
    if on_duplicate is OnDuplicate.FAIL:
        check_new_states(states, lambda state: live_version(db, book, state))
    began = book is None
    book = ledger.find_or_begin(db, namespace)
    outcome = Outcome(Receipt(0, skipped_count=len(writes) - len(chosen)), began=began)
    if released:
        let_go(db, ledger, book, released)
    _remove_all(db, ledger, book, removals, outcome, remover)
    repeated = len({writes[at].item.id for at, _, _ in chosen}) < len(chosen)
    for at, present, waits in chosen:
        write, its_terms = writes[at], terms[at]
        # One whose id is in the batch more than once may be there by now.
        stored = _stored(db, book, write.item.id) if repeated else present
        _put(db, ledger, book, write, its_terms, stored, waits, outcome)
        outcome.receipt.add(write.item)
    for state in states:
        exists = live_state(db, book, state) is not None
        if exists and on_duplicate is not OnDuplicate.REPLACE:
            outcome.receipt.skipped_state_count += 1
        else:
            put_state(db, ledger, book, state)
    book.dimension, book.model = rule.dimension, rule.model
    return finish(db, book, request, outcome)


def _remove_all(
    db: Connection, ledger: Ledger, book: Book, item_ids: Sequence[str], outcome: Outcome, remover: Remover
) -> None:
    # A document may have ten thousand fragments: a few statements take a tenth of what some for each do.
    found = _stored_of(db, book, list(dict.fromkeys(item_ids)))
    if found:
        ledger.erase(db, book)
        first = ledger.change_all(db, book, ChangeType.ITEM_DELETED, list(found))
        note_removals(db, ledger, book, first, remover)
        for stored in found.values():
            book.item_count -= 1
            book.count_vector(stored[3], -1)
        keys = msgspec.json.encode([stored[0] for stored in found.values()]).decode()
        forget_told_of_items(db, book.uid, found)
        db.execute("DELETE FROM item_history WHERE key IN (SELECT value FROM json_each(?))", (keys,))
        db.execute("DELETE FROM items WHERE key IN (SELECT value FROM json_each(?))", (keys,))
    outcome.effect.removed += [stored[0] & POSITION_MAX for stored in found.values()]
    outcome.receipt.removed_count = len(found)


def _put(
    db: Connection,
    ledger: Ledger,
    book: Book,
    write: ItemWrite,
    terms: bytes,
    stored: Row | None,
    waits: bool,
    outcome: Outcome,
) -> None:
    if stored is not None and expired(stored, write.item.update_us):
        outcome.effect.removed.append(expire_item(db, ledger, book, write.item.id, stored))
        stored = None
    if stored is not None:
        keep_version(db, ledger, stored[0], write.item.update_us)
        put_version(db, ledger, book, write, terms, stored, waits)
        outcome.effect.replaced.append((book.entry(write, terms), write.keep_vector))
        return
    item = write.item
    item.revision = item.position = ledger.change(db, book, ChangeType.ITEM_ADDED, item.id)
    its_key = _vector_key(book, write, waits)
    db.execute(INSERT_ITEM, item_row(book.uid, write, terms, its_key))
    book.item_count += 1
    book.count_vector(its_key, 1)
    outcome.effect.added.append(book.entry(write, terms))


def _vector_key(book: Book, write: ItemWrite, waits: bool) -> int:
    if waits:
        return PENDING
    return vector_key(book.vector_epoch, 0 if write.item.embedding is None else write.item.revision)


def put_version(
    db: Connection,
    ledger: Ledger,
    book: Book,
    write: ItemWrite,
    terms: bytes,
    stored: Row,
    waits: bool,
) -> None:
    """Write the next version of an item over the one there is."""
    item = write.item
    ledger.erase(db, book)
    if not ledger.keeps_history:
        forget_told_of_item(db, book.uid, item.id)
    item.position = stored[0] & POSITION_MAX
    item.revision = ledger.change(db, book, ChangeType.ITEM_UPDATED, item.id)
    its_key = stored[3] if write.keep_vector else _vector_key(book, write, waits)
    row = item_update_row(book.uid, write, terms, its_key)
    if write.keep_vector:
        db.execute(UPDATE_ITEM_KEEPING_VECTOR, row)
        item.embedded = its_key > book.no_vector_key
    else:
        db.execute(UPDATE_ITEM, row)
        book.count_vector(stored[3], -1)
        book.count_vector(its_key, 1)


def remove_item(
    db: Connection, ledger: Ledger, book: Book, item_id: str, stored: Row, kind: ChangeType
) -> int:
    """Remove an item, and the versions it had, and return its position."""
    ledger.erase(db, book)
    ledger.change(db, book, kind, item_id)
    forget_versions(db, stored[0])
    forget_told_of_item(db, book.uid, item_id)
    db.execute("DELETE FROM items WHERE key = ?", (stored[0],))
    book.item_count -= 1
    book.count_vector(stored[3], -1)
    position: int = stored[0] & POSITION_MAX
    return position


def expire_item(db: Connection, ledger: Ledger, book: Book, item_id: str, stored: Row) -> int:
    """Remove an item that has expired, note who cut it short, if anybody did, and return its position."""
    # Its versions tell, and go with it.
    end = end_of_item(db, ledger, stored[0])
    position = remove_item(db, ledger, book, item_id, stored, ChangeType.ITEM_EXPIRED)
    note_end(db, book, end)
    return position


def _current(
    db: Connection, book: Book | None, namespace: str, item_id: str, at_us: int, expected: int | None
) -> Row:
    stored = _stored(db, book, item_id)
    if stored is None or expired(stored, at_us):
        raise NotFound.item(namespace, item_id)
    if expected is not None and expected != stored[1]:
        raise Conflict.revision(item_id, expected, stored[1])
    return stored


def replace_item(
    db: Connection,
    ledger: Ledger,
    namespace: str,
    write: ItemWrite,
    terms: bytes,
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
    waits = not write.keep_vector and rule.take(write)
    keep_version(db, ledger, stored[0], item.update_us)
    put_version(db, ledger, book, write, terms, stored, waits)
    book.dimension, book.model = rule.dimension, rule.model
    outcome = Outcome(Receipt(0))
    outcome.effect.replaced.append((book.entry(write, terms), write.keep_vector))
    outcome.receipt.add(item)
    return finish(db, book, request, outcome)


def record_uses(db: Connection, ledger: Ledger, namespace: str, positions: Sequence[int]) -> dict[int, int]:
    """Count items as used; return how often each was by now. See `ItemStore.record_uses`."""
    book = ledger.find(db, namespace)
    if book is None:
        return {}
    counted = {}
    for position, times in Counter(positions).items():
        row = db.execute(RECORD_USES, (times, key_of(book.uid, position))).fetchone()
        if row is not None:
            counted[position] = row[0]
    return counted


def delete_item(
    db: Connection,
    ledger: Ledger,
    namespace: str,
    item_id: str,
    at_us: int,
    expected_revision: int | None,
    request: RequestKey | None,
    remover: Remover,
) -> Outcome:
    """Remove an item; see `ItemStore.delete_item`."""
    book = ledger.find(db, namespace)
    if (before := earlier(db, book, request)) is not None:
        return before
    stored = _current(db, book, namespace, item_id, at_us, expected_revision)
    assert book is not None
    position = remove_item(db, ledger, book, item_id, stored, ChangeType.ITEM_DELETED)
    note_removal(db, ledger, book, remover)
    outcome = Outcome(Receipt(0, removed_count=1), effect=Effect(removed=[position]))
    return finish(db, book, request, outcome)
