"""Applies writes of items to a page."""

from __future__ import annotations

from dataclasses import replace

from memory_service.data_model import (
    ChangeType,
    Item,
    ItemKind,
    ItemWrite,
    parents_of,
)
from memory_service.indexes.view import Entry
from memory_service.records.postgres.page import Ended, Page, StoredItem
from memory_service.records.postgres.rows import ItemRow, item_row
from memory_service.records.rules.history import cut_short
from memory_service.records.rules.presence import Before, before
from memory_service.records.rules.requests import of_item
from memory_service.records.rules.vectors import vector_key, written_key
from memory_service.records.stored_values import set_default_expiry


def let_go(page: Page, held_id: str) -> None:
    """Release a held write."""
    page.held.pop(held_id, None)
    page.pending.held.pop(held_id, None)
    page.pending.let_go.add(held_id)
    page.touched = True


def put_item(page: Page, write: ItemWrite, terms: bytes, waits: bool, *, keeps_history: bool) -> None:
    """Write an item, whatever is stored."""
    assert page.book is not None
    set_default_expiry(write, page.book.settings)
    item = write.item
    stored = page.items.get(item.id)
    becomes = give_way(page, write, stored, keeps_history)
    if stored is not None and becomes is Before.EXPIRE:
        expire_item(page, item.id, stored, keeps_history=keeps_history)
    elif stored is not None:
        if write.keep_create_us:
            item.create_us = stored.create_us
        put_version(page, write, terms, stored, waits, kept=becomes is Before.KEEP)
        return
    assert page.book is not None
    item.revision = item.position = page.change(ChangeType.ITEM_ADDED, item.id)
    key = written_key(page.book.vector_epoch, item.revision, waits=waits, embedded=item.embedding is not None)
    page.book.item_count += 1
    page.book.count_vector(key, 1)
    _store(page, item.id, write, item_row(write, terms, key), ())
    link(page, item)


def give_way(page: Page, write: ItemWrite, stored: StoredItem | None, keeps_history: bool) -> Before:
    """Keep the version about to be replaced, or forget the answers that mention it; return which."""
    item = write.item
    becomes = before(stored, item.update_us, keeps_history=keeps_history)
    if stored is not None and becomes is Before.KEEP:
        if stored.row is None:
            page.pending.keep_items.append((stored.position, item.update_us))
        else:
            page.pending.kept_items.append((stored.row, item.update_us, stored.keeps_vector))
    elif becomes is Before.FORGET:
        page.forget_told(of_item(item.id))
    return becomes


def _store(
    page: Page,
    item_id: str,
    write: ItemWrite,
    row: ItemRow,
    versions: tuple[Ended, ...],
    *,
    keeps_vector: bool = False,
) -> None:
    assert page.book is not None
    stored = StoredItem(
        row.position, row.revision, row.update_us, row.expire_us, row.vector_key, row.kind, row.provenance,
        row.nbytes, row.create_us, row, keeps_vector, versions,
    )  # fmt: skip
    page.book.bytes += row.nbytes
    page.items[item_id] = stored
    page.at[row.position] = item_id
    page.pending.items[row.position] = stored
    if row.position in page.ends:
        page.ends[row.position] = row.expire_us
    # As it is now: the caller may later modify its item for the response.
    key = row.vector_key if row.vector_key > page.book.no_vector_key else 0
    page.pending.entries[row.position] = Entry.of(write.item, row.terms, key)


def link(page: Page, item: Item, before: StoredItem | None = None) -> None:
    """Link an item to those of its parents that exist; `before` is the version that it replaces."""
    parents = parents_of(item)
    if not parents and (before is None or not _may_have_parents(before)):
        return
    page.pending.parents[item.position] = parents
    known = [found for parent in parents if (found := page.items.get(parent))]
    page.ends.update((parent.position, parent.expire_us) for parent in known)
    page.links.put(item.position, [parent.position for parent in known])


def _may_have_parents(stored: StoredItem) -> bool:
    return stored.kind == ItemKind.RESPONSE or '"parent_ids"' in (stored.provenance or "")


def put_version(
    page: Page, write: ItemWrite, terms: bytes, stored: StoredItem, waits: bool, *, kept: bool
) -> None:
    """Write the next version of an item over the existing one."""
    assert page.book is not None
    item, book = write.item, page.book
    item.position = stored.position
    item.revision = page.change(ChangeType.ITEM_UPDATED, item.id)
    keeps = write.keep_vector
    embedded = item.embedding is not None
    key = stored.vector_key if keeps else written_key(
        book.vector_epoch, item.revision, waits=waits, embedded=embedded
    )  # fmt: skip
    row = item_row(write, terms, key)
    in_database = keeps and (stored.row is None or stored.keeps_vector)
    if keeps:
        item.embedded = key > book.no_vector_key
        row = row._replace(embedding=None if stored.row is None else stored.row.embedding)
    book.bytes -= stored.nbytes
    book.count_vector(stored.vector_key, -1)
    book.count_vector(key, 1)
    versions = (stored.ended, *stored.before) if kept else stored.before
    _store(page, item.id, write, row, versions, keeps_vector=in_database)
    link(page, item, stored)


def remove_item(page: Page, item_id: str, stored: StoredItem, kind: ChangeType) -> None:
    """Remove an item and its versions."""
    assert page.book is not None
    page.change(kind, item_id)
    page.forget_told(of_item(item_id))
    page.items[item_id] = None
    page.at.pop(stored.position, None)
    page.pending.items.pop(stored.position, None)
    page.pending.entries.pop(stored.position, None)
    page.pending.parents.pop(stored.position, None)
    page.links.remove(stored.position)
    page.pending.removed[stored.position] = None
    page.book.item_count -= 1
    page.book.bytes -= stored.nbytes
    page.book.count_vector(stored.vector_key, -1)


def expire_item(page: Page, item_id: str, stored: StoredItem, *, keeps_history: bool) -> None:
    """Remove an expired item, and record the writer that cut it short, if any."""
    end = cut_short((stored.ended, *stored.before)) if keeps_history else None
    remove_item(page, item_id, stored, ChangeType.ITEM_EXPIRED)
    page.note(end)


def fill_vector(page: Page, position: int, revision: int, vector: bytes | None) -> bool:
    """Give a pending item its vector; return False if it is missing, not pending, or at another revision."""
    assert page.book is not None
    item_id = page.at.get(position)
    stored = page.items.get(item_id) if item_id is not None else None
    if stored is None or item_id is None:
        return False
    if stored.revision != revision or stored.vector_key >= page.book.no_vector_key:
        return False
    key = vector_key(page.book.vector_epoch, revision if vector is not None else 0)
    page.book.count_vector(stored.vector_key, -1)
    page.book.count_vector(key, 1)
    row = None if stored.row is None else stored.row._replace(vector_key=key, embedding=vector)
    filled = replace(stored, vector_key=key, row=row, keeps_vector=False)
    page.items[item_id] = filled
    if stored.row is None:
        page.pending.fills.append((position, key, vector))
    else:
        page.pending.items[position] = filled
    page.pending.entries.pop(position, None)
    return True
