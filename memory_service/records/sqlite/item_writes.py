"""Applies writes of items to the database. Each function checks everything before changing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from memory_service.data_model import (
    ChangeType,
    Item,
    ItemKind,
    ItemWrite,
    OnDuplicate,
    Receipt,
    RequestKey,
    Since,
    StateWrite,
)
from memory_service.records.effects import Effect
from memory_service.records.rules.items import check_unchanged, choose, present_item
from memory_service.records.rules.presence import Before, before
from memory_service.records.rules.states import choose_states
from memory_service.records.rules.vectors import VectorRule, written_key
from memory_service.records.sqlite.connection import Connection, Row
from memory_service.records.sqlite.history import (
    end_of_item,
    forget_versions,
    keep_version,
    note,
    note_removal,
    note_removals,
)
from memory_service.records.sqlite.kept_answers import forget_told_of_item, forget_told_of_items
from memory_service.records.sqlite.ledger import Book, Ledger, Outcome, earlier, finish
from memory_service.records.sqlite.quarantine_writes import check_held, let_go
from memory_service.records.sqlite.rows import (
    INSERT_ITEM,
    RECORD_USES,
    UPDATE_ITEM,
    UPDATE_ITEM_KEEPING_VECTOR,
    item_row,
    item_update_row,
)
from memory_service.records.sqlite.schema import POSITION_MAX, key_of
from memory_service.records.sqlite.state_writes import put_state, stored_state
from memory_service.runtime.caller import Caller


class StoredItem(NamedTuple):
    """The fields of a stored item that a write needs."""

    key: int
    revision: int
    expire_us: int | None
    vector_key: int

    @property
    def position(self) -> int:
        """The item's position in its namespace."""
        return self.key & POSITION_MAX


def _stored(db: Connection, book: Book | None, item_id: str) -> StoredItem | None:
    """Return a stored item, expired or not."""
    if book is None:
        return None
    row = db.execute(
        "SELECT key, revision, expire_us, vector_revision FROM items WHERE uid = ? AND id = ?",
        (book.uid, item_id),
    ).fetchone()
    return StoredItem(*row) if row else None


def _stored_of(db: Connection, book: Book, item_ids: Sequence[str]) -> dict[str, StoredItem]:
    """Return those of these items that exist, as `_stored` does, in order."""
    rows = db.execute(
        "SELECT value, i.key, revision, expire_us, vector_revision FROM json_each(?) wanted"
        " CROSS JOIN items i ON uid = ? AND i.id = value ORDER BY wanted.key",
        (msgspec.json.encode(item_ids).decode(), book.uid),
    )
    return {item_id: StoredItem(*row) for item_id, *row in rows}


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
    by: Caller,
    released: str = "",
    unchanged: Since | None = None,
) -> Outcome:
    """Add items; see `ItemStore.add_items`."""
    book = ledger.find(db, namespace)
    if released:
        check_held(db, book, namespace, released)
    if (replayed := earlier(db, book, request)) is not None:
        if released and book is not None:
            let_go(db, ledger, book, released)
        return replayed
    if unchanged is not None:
        _check_unchanged(db, book, unchanged)
    rule = VectorRule(book.dimension, book.model) if book else VectorRule(0, "")

    def find(write: ItemWrite) -> StoredItem | None:
        return None if write.new_id else _stored(db, book, write.item.id)

    chosen = choose(namespace, writes, find, on_duplicate, rule)
    chosen_states = choose_states(states, lambda state: stored_state(db, book, state.key), on_duplicate)
    began = book is None
    book = ledger.find_or_begin(db, namespace)
    receipt = Receipt(0, skipped_count=len(writes) - len(chosen))
    receipt.skipped_state_count = len(states) - len(chosen_states)
    outcome = Outcome(receipt, began=began)
    if released:
        let_go(db, ledger, book, released)
    if removals:
        _remove_all(db, ledger, book, removals, outcome, by)
    repeated = len({writes[at].item.id for at, _, _ in chosen}) < len(chosen)
    for at, present, waits in chosen:
        write, its_terms = writes[at], terms[at]
        # If the batch repeats its id, the item may exist by now.
        stored = _stored(db, book, write.item.id) if repeated else present
        _put(db, ledger, book, write, its_terms, stored, waits, outcome)
        outcome.receipt.add(write.item)
    for state in chosen_states:
        put_state(db, ledger, book, state, stored_state(db, book, state.key))
    book.dimension, book.model = rule.dimension, rule.model
    return finish(db, book, request, outcome)


def _remove_all(
    db: Connection, ledger: Ledger, book: Book, item_ids: Sequence[str], outcome: Outcome, by: Caller
) -> None:
    # A document may have ten thousand fragments: a few statements take a tenth of the time of several for
    # each.
    found = _stored_of(db, book, list(dict.fromkeys(item_ids)))
    if found:
        ledger.erase(db, book)
        first = ledger.change_all(db, book, ChangeType.ITEM_DELETED, list(found))
        note_removals(db, ledger, book, first, by)
        for stored in found.values():
            book.item_count -= 1
            book.count_vector(stored.vector_key, -1)
        keys = msgspec.json.encode([stored.key for stored in found.values()]).decode()
        forget_told_of_items(db, book.uid, found)
        db.execute("DELETE FROM item_history WHERE key IN (SELECT value FROM json_each(?))", (keys,))
        db.execute("DELETE FROM items WHERE key IN (SELECT value FROM json_each(?))", (keys,))
    outcome.effect.removed += [stored.position for stored in found.values()]
    outcome.receipt.removed_count = len(found)


def _put(
    db: Connection,
    ledger: Ledger,
    book: Book,
    write: ItemWrite,
    terms: bytes,
    stored: StoredItem | None,
    waits: bool,
    outcome: Outcome,
) -> None:
    # Nearly all are new, and need no rule.
    if stored is not None and not _give_way(db, ledger, book, write, stored):
        outcome.effect.removed.append(expire_item(db, ledger, book, write.item.id, stored))
        stored = None
    if stored is not None:
        put_version(db, ledger, book, write, terms, stored, waits)
        outcome.effect.replaced.append((book.entry(write, terms), write.keep_vector))
        return
    item = write.item
    item.revision = item.position = ledger.change(db, book, ChangeType.ITEM_ADDED, item.id)
    its_key = _vector_key(book, item, waits)
    db.execute(INSERT_ITEM, item_row(book.uid, write, terms, its_key))
    book.item_count += 1
    book.count_vector(its_key, 1)
    outcome.effect.added.append(book.entry(write, terms))


def _give_way(db: Connection, ledger: Ledger, book: Book, write: ItemWrite, stored: StoredItem) -> bool:
    """Keep the version about to be replaced, or forget the answers that mention it; False if expired."""
    becomes = before(stored, write.item.update_us, keeps_history=ledger.keeps_history)
    if becomes is Before.KEEP:
        keep_version(db, stored.key, write.item.update_us)
    elif becomes is Before.FORGET:
        forget_told_of_item(db, book.uid, write.item.id)
    return becomes is not Before.EXPIRE


def _vector_key(book: Book, item: Item, waits: bool) -> int:
    return written_key(book.vector_epoch, item.revision, waits=waits, embedded=item.embedding is not None)


def put_version(
    db: Connection,
    ledger: Ledger,
    book: Book,
    write: ItemWrite,
    terms: bytes,
    stored: StoredItem,
    waits: bool,
) -> None:
    """Write the next version of an item over the existing one."""
    item = write.item
    ledger.erase(db, book)
    item.position = stored.position
    item.revision = ledger.change(db, book, ChangeType.ITEM_UPDATED, item.id)
    its_key = stored.vector_key if write.keep_vector else _vector_key(book, item, waits)
    row = item_update_row(book.uid, write, terms, its_key)
    if write.keep_vector:
        db.execute(UPDATE_ITEM_KEEPING_VECTOR, row)
        item.embedded = its_key > book.no_vector_key
    else:
        db.execute(UPDATE_ITEM, row)
        book.count_vector(stored.vector_key, -1)
        book.count_vector(its_key, 1)


def remove_item(
    db: Connection, ledger: Ledger, book: Book, item_id: str, stored: StoredItem, kind: ChangeType
) -> int:
    """Remove an item and its versions; return its position."""
    ledger.erase(db, book)
    ledger.change(db, book, kind, item_id)
    forget_versions(db, stored.key)
    forget_told_of_item(db, book.uid, item_id)
    db.execute("DELETE FROM items WHERE key = ?", (stored.key,))
    book.item_count -= 1
    book.count_vector(stored.vector_key, -1)
    return stored.position


def expire_item(db: Connection, ledger: Ledger, book: Book, item_id: str, stored: StoredItem) -> int:
    """Remove an expired item, record the writer that cut it short, if any, and return its position."""
    # Read before its versions are removed with it.
    end = end_of_item(db, ledger, stored.key)
    position = remove_item(db, ledger, book, item_id, stored, ChangeType.ITEM_EXPIRED)
    note(db, book, end)
    return position


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
    if (replayed := earlier(db, book, request)) is not None:
        return replayed
    item = write.item
    found = _stored(db, book, item.id)
    stored = present_item(namespace, item.id, found, item.update_us, expected_revision)
    assert book is not None
    rule = VectorRule(book.dimension, book.model)
    waits = not write.keep_vector and rule.take(write)
    _give_way(db, ledger, book, write, stored)
    put_version(db, ledger, book, write, terms, stored, waits)
    book.dimension, book.model = rule.dimension, rule.model
    outcome = Outcome(Receipt(0))
    outcome.effect.replaced.append((book.entry(write, terms), write.keep_vector))
    outcome.receipt.add(item)
    return finish(db, book, request, outcome)


def record_uses(db: Connection, ledger: Ledger, namespace: str, positions: Sequence[int]) -> dict[int, int]:
    """Count items as used; return the new count of each. See `ItemStore.record_uses`."""
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
    by: Caller,
) -> Outcome:
    """Remove an item; see `ItemStore.delete_item`."""
    book = ledger.find(db, namespace)
    if (replayed := earlier(db, book, request)) is not None:
        return replayed
    stored = present_item(namespace, item_id, _stored(db, book, item_id), at_us, expected_revision)
    assert book is not None
    position = remove_item(db, ledger, book, item_id, stored, ChangeType.ITEM_DELETED)
    note_removal(db, ledger, book, by)
    outcome = Outcome(Receipt(0, removed_count=1), effect=Effect(removed=[position]))
    return finish(db, book, request, outcome)
