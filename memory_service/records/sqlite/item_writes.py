"""Applies writes of items to the database. Each function checks everything before changing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from memory_service.data_model import (
    ChangeType,
    Item,
    ItemWrite,
    Receipt,
)
from memory_service.records.rules.presence import Before, before
from memory_service.records.rules.vectors import written_key
from memory_service.records.sqlite.connection import Connection
from memory_service.records.sqlite.history import (
    end_of_item,
    forget_versions,
    keep_version,
    note,
    note_removals,
)
from memory_service.records.sqlite.kept_answers import forget_told_of_item, forget_told_of_items
from memory_service.records.sqlite.ledger import Book, Ledger, Outcome
from memory_service.records.sqlite.parents import (
    forget_all_kin,
    forget_kin,
    keep_parents,
    replace_parents,
)
from memory_service.records.sqlite.rows import (
    INSERT_ITEM,
    RECORD_USES,
    REFRESH_EXPIRY,
    UPDATE_ITEM,
    UPDATE_ITEM_KEEPING_VECTOR,
    item_row,
    item_update_row,
)
from memory_service.records.sqlite.schema import POSITION_MAX, key_of
from memory_service.records.stored_values import set_default_expiry
from memory_service.runtime.caller import Caller


class StoredItem(NamedTuple):
    """The fields of a stored item that a write needs."""

    key: int
    revision: int
    expire_us: int | None
    vector_key: int
    create_us: int = 0

    @property
    def position(self) -> int:
        """The item's position in its namespace."""
        return self.key & POSITION_MAX


def stored_item(db: Connection, book: Book | None, item_id: str) -> StoredItem | None:
    """Return a stored item, expired or not."""
    if book is None:
        return None
    row = db.execute(
        "SELECT key, revision, expire_us, vector_revision, create_us FROM items WHERE uid = ? AND id = ?",
        (book.uid, item_id),
    ).fetchone()
    return StoredItem(*row) if row else None


def stored_items(db: Connection, book: Book | None, item_ids: Iterable[str]) -> dict[str, StoredItem]:
    """Return those of these items that exist, expired or not, in order."""
    if book is None:
        return {}
    rows = db.execute(
        "SELECT value, i.key, revision, expire_us, vector_revision, create_us FROM json_each(?) wanted"
        " CROSS JOIN items i ON uid = ? AND i.id = value ORDER BY wanted.key",
        (msgspec.json.encode([*dict.fromkeys(item_ids)]).decode(), book.uid),
    )
    return {item_id: StoredItem(*row) for item_id, *row in rows}


def stored_at(db: Connection, book: Book | None, positions: Iterable[int]) -> dict[str, StoredItem]:
    """Return the items at these positions, expired or not, by their ids and in order of position."""
    if book is None:
        return {}
    keys = [key_of(book.uid, position) for position in sorted(positions)]
    rows = db.execute(
        "SELECT i.id, i.key, revision, expire_us, vector_revision, create_us FROM json_each(?) wanted"
        " CROSS JOIN items i ON i.key = value ORDER BY wanted.key",
        (msgspec.json.encode(keys).decode(),),
    )
    return {item_id: StoredItem(*row) for item_id, *row in rows}


def remove_items(
    db: Connection, ledger: Ledger, book: Book, found: Mapping[str, StoredItem], by: Caller
) -> list[int]:
    """Remove stored items, and return their positions.

    A document may have ten thousand fragments: a few statements take a tenth of the time of several for each.
    """
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
        forget_all_kin(db, [stored.key for stored in found.values()])
    return [stored.position for stored in found.values()]


def put_item(
    db: Connection,
    ledger: Ledger,
    book: Book,
    write: ItemWrite,
    terms: bytes,
    stored: StoredItem | None,
    waits: bool,
    outcome: Outcome,
) -> None:
    """Write an item, whatever is stored."""
    set_default_expiry(write, book.settings)
    # Nearly all are new, and need no rule.
    if stored is not None and not _give_way(db, ledger, book, write, stored):
        outcome.effect.removed.append(expire_item(db, ledger, book, write.item.id, stored))
        stored = None
    if stored is not None:
        if write.keep_create_us:
            write.item.create_us = stored.create_us
        put_version(db, ledger, book, write, terms, stored, waits)
        outcome.effect.replaced.append((book.entry(write, terms), write.keep_vector))
        return
    item = write.item
    item.revision = item.position = ledger.change(db, book, ChangeType.ITEM_ADDED, item.id)
    its_key = _vector_key(book, item, waits)
    db.execute(INSERT_ITEM, item_row(book.uid, write, terms, its_key))
    keep_parents(db, book.uid, item)
    book.item_count += 1
    book.count_vector(its_key, 1)
    outcome.effect.added.append(book.entry(write, terms))


def replace_item(
    db: Connection,
    ledger: Ledger,
    book: Book,
    write: ItemWrite,
    terms: bytes,
    stored: StoredItem,
    waits: bool,
    outcome: Outcome,
) -> None:
    """Write the next version of an item that has not expired."""
    _give_way(db, ledger, book, write, stored)
    put_version(db, ledger, book, write, terms, stored, waits)
    outcome.effect.replaced.append((book.entry(write, terms), write.keep_vector))


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
    replace_parents(db, book.uid, item)


def remove_item(
    db: Connection, ledger: Ledger, book: Book, item_id: str, stored: StoredItem, kind: ChangeType
) -> int:
    """Remove an item and its versions; return its position."""
    ledger.erase(db, book)
    ledger.change(db, book, kind, item_id)
    forget_versions(db, stored.key)
    forget_told_of_item(db, book.uid, item_id)
    forget_kin(db, stored.key)
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


def refresh_expiry(
    db: Connection, ledger: Ledger, namespace: str, positions: Sequence[int], at_us: int
) -> Outcome | None:
    """Extend the expiry of items; None if none was. See `ItemStore.refresh_expiry`."""
    book = ledger.find(db, namespace)
    if book is None:
        return None
    keys = msgspec.json.encode([key_of(book.uid, position) for position in positions]).decode()
    rows = db.execute(REFRESH_EXPIRY, (at_us, keys)).fetchall()
    if not rows:
        return None
    outcome = Outcome(Receipt(book.revision), info=book.info())
    outcome.effect.expiries = {key & POSITION_MAX: expire_us for key, expire_us in rows}
    return outcome


def link_parents(db: Connection, ledger: Ledger, namespace: str, items: Sequence[Item]) -> None:
    """Link items to their parents, unless they were written since they were read. See
    `ItemStore.link_parents`.
    """
    book = ledger.find(db, namespace)
    for item in items:
        stored = stored_item(db, book, item.id)
        if book is not None and stored is not None and stored.revision == item.revision:
            keep_parents(db, book.uid, item)


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
