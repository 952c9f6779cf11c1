"""Applies writes of states to a page."""

from __future__ import annotations

from memory_service.data_model import ChangeType, StateEntry, StateWrite
from memory_service.operations import RenameState
from memory_service.records.postgres.page import Ended, Page, Renamed, StoredState
from memory_service.records.postgres.rows import size, state_row, text_in
from memory_service.records.rules.history import cut_short, deleted
from memory_service.records.rules.presence import Before, before
from memory_service.records.rules.requests import of_state
from memory_service.records.rules.states import (
    floor_without,
    next_entry,
    renamed_version,
    state_to_rename,
)
from memory_service.runtime.caller import Caller
from memory_service.runtime.clock import now_us


def put_state(page: Page, write: StateWrite, *, keeps_history: bool) -> StateEntry:
    """Save a value, whatever is stored."""
    stored = page.states.get(write.key)
    becomes = before(stored, write.now_us, keeps_history=keeps_history)
    if stored is not None and becomes is Before.EXPIRE:
        expire_state(page, write.key, stored, keeps_history=keeps_history)
        stored = None
    elif stored is not None and becomes is Before.KEEP:
        if stored.row is None:
            page.pending.keep_states.append((write.key, write.now_us))
        else:
            page.pending.kept_states.append((stored.row, write.now_us))
    elif becomes is Before.FORGET:
        page.forget_told(of_state(write.key))
    return write_over(page, write, stored, kept=becomes is Before.KEEP)


def write_over(page: Page, write: StateWrite, present: StoredState | None, *, kept: bool) -> StateEntry:
    """Save a value over the present one."""
    assert page.book is not None
    book = page.book
    revision = page.change(ChangeType.STATE_SAVED, write.key)
    entry = next_entry(write, present, book.version_floor, revision)
    row = state_row(entry)
    versions: tuple[Ended, ...] = ()
    if present is None:
        book.state_count += 1
    else:
        book.bytes -= present.nbytes
        versions = (present.ended, *present.before) if kept else present.before
    book.bytes += row.nbytes
    stored = StoredState(
        entry.version, entry.create_us, entry.update_us, entry.expire_us, entry.description, row.provenance,
        row.nbytes, row, versions,
    )  # fmt: skip
    page.states[entry.key] = page.pending.states[entry.key] = stored
    return entry


def remove_state(page: Page, key: str, stored: StoredState, kind: ChangeType) -> None:
    """Remove a key and its versions; later versions continue above its last one."""
    assert page.book is not None
    page.change(kind, key)
    page.forget_told(of_state(key))
    page.states[key] = page.pending.states[key] = None
    p = page.pending
    p.gone_states.add(key)
    p.keep_states = [kept for kept in p.keep_states if kept[0] != key]
    p.kept_states = [kept for kept in p.kept_states if kept[0].key != text_in(key)]
    page.book.state_count -= 1
    page.book.bytes -= stored.nbytes
    page.book.version_floor = floor_without(page.book.version_floor, [stored.version])


def rename_state(page: Page, renaming: RenameState, by: Caller, *, keeps_history: bool) -> StateEntry:
    """Give a state another key, in a separate write. The entry has no value."""
    key, new_key = renaming.key, renaming.new_key
    taken = page.states.get(new_key)
    stored = state_to_rename(page.name, renaming, page.states.get(key), taken)
    book = page.open(0)
    if taken is not None:
        expire_state(page, new_key, taken, keeps_history=keeps_history)
    page.change(ChangeType.STATE_DELETED, key)
    page.note(deleted(by, now_us(), keeps_history=keeps_history))
    page.forget_told(of_state(key))
    revision = page.change(ChangeType.STATE_SAVED, new_key)
    version = renamed_version(stored.version, book.version_floor)
    book.version_floor = floor_without(book.version_floor, [stored.version])
    more = size(new_key) - size(key)
    book.bytes += more
    page.pending.renamed.append(Renamed(text_in(key), text_in(new_key), version, revision, more))
    value_bytes = stored.nbytes - sum(map(size, (key, stored.description, stored.provenance)))
    return StateEntry(
        new_key, b"", version, stored.create_us, stored.update_us, stored.expire_us, value_bytes,
        stored.description, revision,
    )  # fmt: skip


def expire_state(page: Page, key: str, stored: StoredState, *, keeps_history: bool) -> None:
    """Remove an expired key, and record the writer that cut it short, if any."""
    end = cut_short((stored.ended, *stored.before)) if keeps_history else None
    remove_state(page, key, stored, ChangeType.STATE_EXPIRED)
    page.note(end)
