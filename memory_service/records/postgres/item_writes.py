"""Applies writes of items to a page. Each function checks everything before changing anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory_service.data_model import (
    ChangeType,
    ItemWrite,
    OnDuplicate,
    Receipt,
    RequestKey,
    Since,
    StateWrite,
)
from memory_service.errors import NotFound
from memory_service.indexes.view import Entry
from memory_service.records.content_bytes import check_room
from memory_service.records.postgres.page import Ended, Page, StoredItem
from memory_service.records.postgres.requests import earlier, finish
from memory_service.records.postgres.rows import ItemRow, item_row
from memory_service.records.postgres.state_writes import put_state
from memory_service.records.rules.history import cut_short, deleted
from memory_service.records.rules.items import check_unchanged, choose, present_item
from memory_service.records.rules.presence import Before, before
from memory_service.records.rules.requests import of_item
from memory_service.records.rules.states import choose_states
from memory_service.records.rules.vectors import VectorRule, vector_key, written_key
from memory_service.runtime.caller import Caller
from memory_service.runtime.clock import now_us


def check_bytes(page: Page, limit: int) -> None:
    """Reject a write that adds to a full namespace. Raises LimitExceeded."""
    if limit and page.book is not None:
        check_room(page.book.bytes, limit)


def add_items(
    page: Page,
    writes: Sequence[ItemWrite],
    terms: Sequence[bytes],
    states: Sequence[StateWrite],
    removals: Sequence[str],
    on_duplicate: OnDuplicate,
    request: RequestKey | None,
    by: Caller,
    released: str,
    unchanged: Since | None,
    *,
    keeps_history: bool,
    bytes_max: int,
) -> Receipt:
    """Add items; see `ItemStore.add_items`."""
    if released and released not in page.held:
        raise NotFound.quarantined(page.name, released)
    if (replayed := earlier(page, request)) is not None:
        if released:
            let_go(page, released)
        return replayed
    if len(writes) > len(removals) or states:
        check_bytes(page, bytes_max)
    if unchanged is not None:
        _check_since(page, unchanged)
    rule = VectorRule(page.book.dimension, page.book.model) if page.book else VectorRule(0, "")
    chosen = choose(page.name, writes, lambda write: page.items.get(write.item.id), on_duplicate, rule)
    chosen_states = choose_states(states, lambda state: page.states.get(state.key), on_duplicate)
    book = page.open(now_us())
    receipt = Receipt(0, skipped_count=len(writes) - len(chosen))
    receipt.skipped_state_count = len(states) - len(chosen_states)
    if released:
        let_go(page, released)
    receipt.removed_count = _remove_all(page, removals, by, keeps_history)
    for at, _, waits in chosen:
        _put(page, writes[at], terms[at], waits, keeps_history)
        receipt.add(writes[at].item)
    for state in chosen_states:
        put_state(page, state, keeps_history=keeps_history)
    book.dimension, book.model = rule.dimension, rule.model
    return finish(page, request, receipt)


def _check_since(page: Page, unchanged: Since) -> None:
    revision = page.book.revision if page.book else 0
    check_unchanged(unchanged, revision, page.changes_since(unchanged.revision))


def _remove_all(page: Page, item_ids: Sequence[str], by: Caller, keeps_history: bool) -> int:
    """Remove those of these items that exist; return how many."""
    found = [
        (item_id, stored)
        for item_id in dict.fromkeys(item_ids)
        if (stored := page.items.get(item_id)) is not None
    ]
    for item_id, stored in found:
        remove_item(page, item_id, stored, ChangeType.ITEM_DELETED)
        page.note(deleted(by, now_us(), keeps_history=keeps_history))
    return len(found)


def let_go(page: Page, held_id: str) -> None:
    """Release a held write."""
    page.held.pop(held_id, None)
    page.pending.held.pop(held_id, None)
    page.pending.let_go.add(held_id)
    page.touched = True


def _put(page: Page, write: ItemWrite, terms: bytes, waits: bool, keeps_history: bool) -> None:
    item = write.item
    stored = page.items.get(item.id)
    becomes = give_way(page, write, stored, keeps_history)
    if stored is not None and becomes is Before.EXPIRE:
        expire_item(page, item.id, stored, keeps_history=keeps_history)
    elif stored is not None:
        put_version(page, write, terms, stored, waits, kept=becomes is Before.KEEP)
        return
    assert page.book is not None
    item.revision = item.position = page.change(ChangeType.ITEM_ADDED, item.id)
    key = written_key(page.book.vector_epoch, item.revision, waits=waits, embedded=item.embedding is not None)
    page.book.item_count += 1
    page.book.count_vector(key, 1)
    _store(page, item.id, write, item_row(write, terms, key), ())


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
        row.nbytes, row, keeps_vector, versions,
    )  # fmt: skip
    page.book.bytes += row.nbytes
    page.items[item_id] = stored
    page.at[row.position] = item_id
    page.pending.items[row.position] = stored
    # As it is now: the caller may later modify its item for the response.
    key = row.vector_key if row.vector_key > page.book.no_vector_key else 0
    page.pending.entries[row.position] = Entry.of(write.item, row.terms, key)


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


def remove_item(page: Page, item_id: str, stored: StoredItem, kind: ChangeType) -> None:
    """Remove an item and its versions."""
    assert page.book is not None
    page.change(kind, item_id)
    page.forget_told(of_item(item_id))
    page.items[item_id] = None
    page.at.pop(stored.position, None)
    page.pending.items.pop(stored.position, None)
    page.pending.entries.pop(stored.position, None)
    page.pending.removed[stored.position] = None
    page.book.item_count -= 1
    page.book.bytes -= stored.nbytes
    page.book.count_vector(stored.vector_key, -1)


def expire_item(page: Page, item_id: str, stored: StoredItem, *, keeps_history: bool) -> None:
    """Remove an expired item, and record the writer that cut it short, if any."""
    end = cut_short((stored.ended, *stored.before)) if keeps_history else None
    remove_item(page, item_id, stored, ChangeType.ITEM_EXPIRED)
    page.note(end)


def replace_item(
    page: Page,
    write: ItemWrite,
    terms: bytes,
    expected_revision: int | None,
    request: RequestKey | None,
    *,
    keeps_history: bool,
    bytes_max: int,
) -> Receipt:
    """Replace an item; see `ItemStore.replace_item`."""
    if (replayed := earlier(page, request)) is not None:
        return replayed
    check_bytes(page, bytes_max)
    item = write.item
    stored = present_item(page.name, item.id, page.items.get(item.id), item.update_us, expected_revision)
    assert page.book is not None
    rule = VectorRule(page.book.dimension, page.book.model)
    waits = not write.keep_vector and rule.take(write)
    book = page.open(0)
    becomes = give_way(page, write, stored, keeps_history)
    put_version(page, write, terms, stored, waits, kept=becomes is Before.KEEP)
    book.dimension, book.model = rule.dimension, rule.model
    receipt = Receipt(0)
    receipt.add(item)
    return finish(page, request, receipt)


def delete_item(
    page: Page,
    item_id: str,
    at_us: int,
    expected_revision: int | None,
    request: RequestKey | None,
    by: Caller,
    *,
    keeps_history: bool,
) -> Receipt:
    """Remove an item; see `ItemStore.delete_item`."""
    if (replayed := earlier(page, request)) is not None:
        return replayed
    stored = present_item(page.name, item_id, page.items.get(item_id), at_us, expected_revision)
    page.open(0)
    remove_item(page, item_id, stored, ChangeType.ITEM_DELETED)
    page.note(deleted(by, now_us(), keeps_history=keeps_history))
    return finish(page, request, Receipt(0, removed_count=1))


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
