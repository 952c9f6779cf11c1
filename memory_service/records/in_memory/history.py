"""What the store in memory keeps of versions that others took the place of."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Generic, TypeVar

import msgspec
import numpy as np

from memory_service.data_model import (
    UNATTRIBUTED,
    Item,
    ItemKind,
    ItemWrite,
    Provenance,
    StateEntry,
    UndoStep,
    WritesBy,
)
from memory_service.runtime.caller import Caller


def _copied(provenance: Provenance | None, number: int) -> Provenance:
    before = provenance or UNATTRIBUTED
    return msgspec.structs.replace(before, copy_of=before.copy_of or number)


def _origin(provenance: Provenance | None, number: int) -> int:
    return (provenance or UNATTRIBUTED).copy_of or number


Removal = tuple[int, Caller]
"""Who deleted something, or let it expire, and when they did that."""


def _end(versions: Sequence[Item | StateEntry]) -> list[Removal]:
    """Return who cut short what has expired with the last of these versions; none where nobody did.

    That is who wrote the first of those that lead up to the last and have its end: what only keeps the end
    that another set did not set it.
    """
    end = versions[-1].expire_us
    if end is None or not any(v.expire_us is None or v.expire_us > end for v in versions):
        return []
    kept = takewhile(lambda version: version.expire_us == end, reversed(versions))
    *_, setting = kept
    known, time_us = setting.provenance or UNATTRIBUTED, setting.update_us
    written_us = time_us if known.write_us is None else known.write_us
    return [(min(written_us, time_us), Caller(known.writer, known.credential_id, (), frozenset()))]


@dataclass(slots=True)
class ItemVersion:
    """A version of an item, with what it was found by."""

    item: Item
    vector: np.ndarray | None
    epoch: int
    waits: bool
    search_text: str
    speaker: str
    replaced_us: int

    def write(self, epoch: int) -> ItemWrite:
        """Return the write that brings it back."""
        item = msgspec.structs.replace(
            self.item,
            embedding=self.vector if self.epoch == epoch else None,
            provenance=_copied(self.item.provenance, self.item.revision),
            wire=None,
            framed=None,
        )
        return ItemWrite(item, self.search_text, speaker=self.speaker)


@dataclass(slots=True)
class StateVersion:
    """A version of a state."""

    entry: StateEntry
    replaced_us: int

    def as_copy(self) -> StateEntry:
        """Return it as what an undo brings back."""
        return dataclasses.replace(self.entry, provenance=_copied(self.entry.provenance, self.entry.version))


V = TypeVar("V", ItemVersion, StateVersion)


@dataclass(slots=True)
class Decision(Generic[V]):
    """What becomes of an item or a state."""

    remove: bool = False
    restore: V | None = None
    unrestorable: bool = False

    def count(self, step: UndoStep, name: str) -> None:
        """Count it."""
        step.removed_count += self.remove
        step.restored_count += self.restore is not None
        if self.unrestorable:
            step.unrestorable.append(name)


@dataclass
class History:
    """The versions that were replaced in a namespace, oldest first, and who deleted, or let expire, when."""

    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    items: dict[str, list[ItemVersion]] = field(default_factory=dict)
    states: dict[str, list[StateVersion]] = field(default_factory=dict)
    removals: list[Removal] = field(default_factory=list)

    def keep(
        self, item: Item, vector: np.ndarray | None, epoch: int, replaced_us: int, *, waits: bool
    ) -> None:
        """Keep a version of an item."""
        text, speaker = self.texts[item.id]
        version = ItemVersion(item, vector, epoch, waits, text, speaker, replaced_us)
        self.items.setdefault(item.id, []).append(version)

    def keep_state(self, entry: StateEntry, replaced_us: int) -> None:
        """Keep a version of a state."""
        self.states.setdefault(entry.key, []).append(StateVersion(entry, replaced_us))

    def forget(self, item_id: str) -> None:
        """Forget all of an item."""
        self.items.pop(item_id, None)
        self.texts.pop(item_id, None)

    def prune(self, before_us: int) -> None:
        """Forget what was replaced or deleted before a time."""
        for item_id, items in list(self.items.items()):
            self.items[item_id] = [v for v in items if v.replaced_us >= before_us]
        for key, states in list(self.states.items()):
            self.states[key] = [v for v in states if v.replaced_us >= before_us]
        self.removals = [removal for removal in self.removals if removal[0] >= before_us]

    def note_end(self, item: Item) -> None:
        """Note who cut short an item that has expired, if anybody did, before its versions go with it."""
        self.removals += _end([*(version.item for version in self.items.get(item.id, ())), item])

    def note_state_end(self, entry: StateEntry) -> None:
        """Note who cut short a state that has expired, if anybody did, before its versions go with it."""
        self.removals += _end([*(version.entry for version in self.states.get(entry.key, ())), entry])

    def count_removals(self, by: WritesBy) -> int:
        """Return how often somebody deleted something, or let it expire."""
        return sum(by.has(Provenance(who.name, who.credential_id), at_us) for at_us, who in self.removals)

    # --- items --------------------------------------------------------------------------------

    def has(self, item: Item, by: WritesBy) -> bool:
        """Whether an item has, or had, a version of somebody's."""
        versions = [item, *(version.item for version in self.items.get(item.id, ()))]
        return any(by.has(version.provenance, version.update_us) for version in versions)

    def decide_item(self, item: Item, by: WritesBy, at_us: int) -> Decision[ItemVersion]:
        """Return what becomes of an item."""
        before = self.items.get(item.id, [])
        if not by.has(item.provenance, item.update_us):
            theirs = [v.item for v in before if by.has(v.item.provenance, v.item.update_us)]
            return Decision(unrestorable=any(version.content == item.content for version in theirs))
        wanted = next((v for v in reversed(before) if not by.has(v.item.provenance, v.item.update_us)), None)
        if wanted is None:
            first = before[0].item if before else item
            added = _origin(first.provenance, first.revision) == item.position
            return Decision(remove=added, unrestorable=not added)
        if wanted.item.kind is ItemKind.DOCUMENT:
            return Decision(remove=True, unrestorable=True)
        if wanted.item.expired(at_us):
            return Decision(remove=True)
        return Decision(restore=wanted)

    def drop_item(self, item_id: str, by: WritesBy, restored: ItemVersion | None) -> None:
        """Forget the versions of somebody, and the one that is the present one again."""
        kept = [v for v in self.items.get(item_id, ()) if not by.has(v.item.provenance, v.item.update_us)]
        self.items[item_id] = [version for version in kept if version is not restored]

    # --- states -------------------------------------------------------------------------------

    def has_state(self, entry: StateEntry, by: WritesBy) -> bool:
        """Whether a state has, or had, a version of somebody's."""
        versions = [entry, *(version.entry for version in self.states.get(entry.key, ()))]
        return any(by.has(version.provenance, version.update_us) for version in versions)

    def decide_state(self, entry: StateEntry, by: WritesBy, at_us: int) -> Decision[StateVersion]:
        """Return what becomes of a state."""
        before: Sequence[StateVersion] = self.states.get(entry.key, [])
        if not by.has(entry.provenance, entry.update_us):
            theirs = [v.entry for v in before if by.has(v.entry.provenance, v.entry.update_us)]
            return Decision(unrestorable=any(version.value_json == entry.value_json for version in theirs))
        wanted = next(
            (v for v in reversed(before) if not by.has(v.entry.provenance, v.entry.update_us)), None
        )
        if wanted is None:
            first = before[0].entry if before else entry
            added = first.update_us == entry.create_us
            return Decision(remove=added, unrestorable=not added)
        expire_us = wanted.entry.expire_us
        if expire_us is not None and expire_us <= at_us:
            return Decision(remove=True)
        return Decision(restore=wanted)

    def drop_state(self, key: str, by: WritesBy, restored: StateVersion | None) -> None:
        """Forget the versions of somebody, and the one that is the present one again."""
        kept = [v for v in self.states.get(key, ()) if not by.has(v.entry.provenance, v.entry.update_us)]
        self.states[key] = [version for version in kept if version is not restored]
