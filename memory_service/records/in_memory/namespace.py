"""A namespace of the in-memory store."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from memory_service.data_model import (
    Change,
    ChangeType,
    Facet,
    HeldWrite,
    Item,
    ItemKind,
    ItemWrite,
    NamespaceInfo,
    Receipt,
    RequestKey,
    StateEntry,
    StateWrite,
    VectorFill,
    parents_of,
)
from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.view import Entry, NamespaceView
from memory_service.records.content_bytes import Measured
from memory_service.records.in_memory.history import History
from memory_service.records.in_memory.requests import Requests
from memory_service.records.rules.derivation import Links
from memory_service.records.rules.history import cut_short, deleted
from memory_service.records.rules.presence import Before, before
from memory_service.records.rules.requests import of_item, of_state
from memory_service.records.rules.states import floor_without, next_entry, renamed_version
from memory_service.records.rules.undo import Action, Undone, write_again
from memory_service.records.rules.vectors import vector_key, written_key
from memory_service.records.stored_values import set_default_expiry, settings_of
from memory_service.runtime.caller import Caller
from memory_service.runtime.clock import now_us


@dataclass
class Namespace:
    """All data of a namespace, and the steps of which writes consist; the caller applies the rules first."""

    name: str
    uid: int
    create_us: int
    view: NamespaceView
    analyzer: Analyzer
    keeps_history: bool
    items: Measured[Item]
    states: Measured[StateEntry]
    revision: int = 0
    dimension: int = 0
    model: str = ""
    vector_epoch: int = 0
    version_floor: int = 0
    settings: str | None = None
    ids: dict[int, str] = field(default_factory=dict)
    vectors: dict[str, np.ndarray] = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)
    changes: list[Change] = field(default_factory=list)
    requests: Requests = field(default_factory=Requests)
    use_counts: Counter[int] = field(default_factory=Counter)
    history: History = field(default_factory=History)
    held: dict[str, HeldWrite] = field(default_factory=dict)
    links: Links = field(default_factory=Links)

    def log(self, kind: ChangeType, subject: str) -> int:
        """Log a change and return its revision."""
        self.revision += 1
        self.changes.append(Change(kind, self.revision, subject))
        return self.revision

    def changes_since(self, revision: int) -> Iterator[tuple[ChangeType, str, ItemKind | None]]:
        """Yield each change since a revision, with its subject and the item's present kind."""
        for change in self.changes[bisect_right(self.changes, revision, key=lambda c: c.revision) :]:
            item = self.items.get(change.subject)
            yield change.type, change.subject, item.kind if item else None

    def read(self, item_id: str, with_embedding: bool) -> Item:
        """Return an existing item."""
        item = self.items[item_id]
        if with_embedding and item.embedded:
            return msgspec.structs.replace(item, embedding=self.vectors[item_id], wire=None, framed=None)
        return item

    def info(self) -> NamespaceInfo:
        """Return the statistics of the namespace."""
        return NamespaceInfo(
            self.name, self.uid, self.revision, len(self.items), len(self.states), len(self.vectors),
            self.dimension, self.model, self.create_us, len(self.pending), self.vector_epoch,
            settings_of(self.settings),
        )  # fmt: skip

    def put(self, write: ItemWrite, waits: bool) -> None:
        """Add an item, or replace the one with its id; with `waits` it is pending."""
        set_default_expiry(write, self.settings)
        stored = self.items.get(write.item.id)
        if stored is not None and self.give_way(write, stored):
            if write.keep_create_us:
                write.item.create_us = stored.create_us
            self.replace(write, stored, waits)
            return
        if stored is not None:
            self.expire(stored)
        self._insert(write, waits)

    def _insert(self, write: ItemWrite, waits: bool) -> None:
        item = write.item
        item.revision = item.position = self.log(ChangeType.ITEM_ADDED, item.id)
        self.ids[item.position] = item.id
        self._store(write, waits)
        self.view.add([self._entry(write)])

    def replace(self, write: ItemWrite, stored: Item, waits: bool) -> None:
        """Replace an item at its position."""
        item = write.item
        item.position = stored.position
        item.revision = self.log(ChangeType.ITEM_UPDATED, item.id)
        if write.keep_vector:
            item.embedding = self.vectors.get(item.id)
            waits = item.id in self.pending
        self._store(write, waits)
        self.view.replace(self._entry(write), keep_vector=write.keep_vector)

    def give_way(self, write: ItemWrite, stored: Item) -> bool:
        """Keep the version about to be replaced, or forget the answers that mention it; False if expired."""
        becomes = before(stored, write.item.update_us, keeps_history=self.keeps_history)
        if becomes is Before.KEEP:
            vector = self.vectors.get(stored.id)
            its_key = written_key(
                self.vector_epoch,
                stored.revision,
                waits=stored.id in self.pending,
                embedded=vector is not None,
            )
            self.history.keep(stored, vector, its_key, write.item.update_us)
        elif becomes is Before.FORGET:
            self.requests.forget_told_of(of_item(stored.id))
        return becomes is not Before.EXPIRE

    def note_removal(self, by: Caller) -> None:
        """Record who made the last logged change, a deletion."""
        removal = deleted(by, now_us(), keeps_history=self.keeps_history)
        self.history.note(removal)
        if removal is not None:
            self.history.deletions[self.revision] = removal

    def _store(self, write: ItemWrite, waits: bool) -> None:
        item = write.item
        self.history.texts[item.id] = write.search_text, write.speaker
        self.vectors.pop(item.id, None)
        self.pending.discard(item.id)
        if waits:
            self.pending.add(item.id)
        if item.embedding is not None:
            self.vectors[item.id] = np.array(item.embedding, np.float32)
        self.items[item.id] = msgspec.structs.replace(
            item, embedding=None, embedded=item.embedding is not None, wire=None, framed=None
        )
        self.link(item)

    def link(self, item: Item) -> None:
        """Link an item to those of its parents that exist."""
        parents = (self.items.get(parent) for parent in parents_of(item))
        self.links.put(item.position, [parent.position for parent in parents if parent is not None])

    def _entry(self, write: ItemWrite) -> Entry:
        return Entry.of(write.item, self.analyzer.item_terms(write), write.item.revision)

    def remove(self, item: Item, kind: ChangeType) -> None:
        """Remove an item, its versions, and the answers that mention it."""
        self.log(kind, item.id)
        self.requests.forget_told_of(of_item(item.id))
        del self.items[item.id], self.ids[item.position], self.use_counts[item.position]
        self.vectors.pop(item.id, None)
        self.pending.discard(item.id)
        self.history.forget(item.id)
        self.links.remove(item.position)
        self.view.remove([item.position])

    def expire(self, item: Item) -> None:
        """Remove an expired item, and record the writer that cut it short, if any."""
        self.history.note(cut_short(self.history.of_item(item)))
        self.remove(item, ChangeType.ITEM_EXPIRED)

    def refresh_expiry(self, position: int, at_us: int) -> None:
        """Let an item live for its time to live from now, unless it has expired."""
        item = self.items.get(self.ids.get(position, ""))
        if item is None or item.expire_us is None or item.expired(at_us):
            return
        item = self.items[item.id] = item.living_on(at_us)
        assert item.expire_us is not None
        self.view.refresh_expiry({position: item.expire_us})

    def fill(self, fill: VectorFill) -> bool:
        """Give a pending item its vector; return False if it is missing, not pending, or has changed."""
        item = self.items.get(self.ids.get(fill.position, ""))
        if item is None or item.id not in self.pending or item.revision != fill.revision:
            return False
        self.pending.discard(item.id)
        if fill.vector is not None:
            self.vectors[item.id] = np.array(fill.vector, np.float32)
            self.items[item.id] = msgspec.structs.replace(item, embedded=True)
            self.view.fill_vector(fill.position, self.vectors[item.id], fill.revision)
        return True

    def save(self, write: StateWrite) -> StateEntry:
        """Save a state over the existing one, if any."""
        stored = self.states.get(write.key)
        becomes = before(stored, write.now_us, keeps_history=self.keeps_history)
        if becomes is Before.EXPIRE:
            self.expire_state(write.key)
            stored = None
        elif stored is not None and becomes is Before.KEEP:
            self.history.keep_state(stored, write.now_us)
        elif becomes is Before.FORGET:
            self.requests.forget_told_of(of_state(write.key))
        return self._write_over(write, stored)

    def _write_over(self, write: StateWrite, present: StateEntry | None) -> StateEntry:
        revision = self.log(ChangeType.STATE_SAVED, write.key)
        entry = self.states[write.key] = next_entry(write, present, self.version_floor, revision)
        return entry

    def rename_state(self, key: str, new_key: str, by: Caller) -> StateEntry:
        """Give a state another key, which no state has but an expired one."""
        if new_key in self.states:
            self.expire_state(new_key)
        stored = self.states.take(key)
        self.log(ChangeType.STATE_DELETED, key)
        self.note_removal(by)
        self.requests.forget_told_of(of_state(key))
        revision = self.log(ChangeType.STATE_SAVED, new_key)
        version = renamed_version(stored.version, self.version_floor)
        self.version_floor = floor_without(self.version_floor, [stored.version])
        self.history.rename_state(key, new_key)
        entry = replace(stored, key=new_key, version=version, revision=revision)
        self.states[new_key] = entry
        return entry

    def remove_state(self, key: str, kind: ChangeType) -> None:
        """Remove a state, its versions, and the answers that mention it."""
        self.version_floor = floor_without(self.version_floor, [self.states.take(key).version])
        self.history.states.pop(key, None)
        self.requests.forget_told_of(of_state(key))
        self.log(kind, key)

    def expire_state(self, key: str) -> None:
        """Remove an expired state, and record the writer that cut it short, if any."""
        self.history.note(cut_short(self.history.of_state(self.states[key])))
        self.remove_state(key, ChangeType.STATE_EXPIRED)

    def clear_states(self) -> int:
        """Remove all states without logging a change for each; return how many there were."""
        removed = len(self.states)
        versions = (entry.version for entry in self.states.values())
        self.version_floor = floor_without(self.version_floor, versions)
        self.requests.forget_told_of_states()
        for key in list(self.states):
            del self.states[key]
        self.history.states.clear()
        return removed

    def undo_item(self, item: Item, undone: Undone, facet: Facet | None) -> None:
        """Apply the result of an undo to an item, which gets a facet if one is given."""
        if undone.action is Action.REMOVE:
            self.remove(item, ChangeType.ITEM_DELETED)
            return
        self.requests.forget_told_of(of_item(item.id))
        if undone.action is Action.RESTORE:
            version = self.history.items.find(item.id, undone.restored)
            none = vector_key(self.vector_epoch, 0)
            # If its vector is of another model, or it had none yet, the item becomes pending.
            write = version.write(none)
            if facet is not None:
                write.item = msgspec.structs.replace(write.item, facet=facet)
            self.replace(write, item, version.vector_key < none)
        self.history.items.forget(item.id, undone.forgotten)

    def undo_state(self, entry: StateEntry, undone: Undone) -> None:
        """Apply the result of an undo to a state."""
        if undone.action is Action.REMOVE:
            self.remove_state(entry.key, ChangeType.STATE_DELETED)
            return
        self.requests.forget_told_of(of_state(entry.key))
        if undone.action is Action.RESTORE:
            version = self.history.states.find(entry.key, undone.restored)
            self._write_over(write_again(version), entry)
        self.history.states.forget(entry.key, undone.forgotten)

    def earlier(self, request: RequestKey) -> Receipt | None:
        """Return the receipt of an applied request. Raises FailedPrecondition for another body."""
        receipt = self.requests.find(request)
        if receipt is not None and receipt.version:
            receipt.description = self.history.description(receipt.revision, self.states.values())
        return receipt
