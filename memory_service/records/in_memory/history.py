"""What the store in memory keeps of versions that others took the place of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from memory_service.data_model import Item, ItemWrite, StateEntry, WritesBy
from memory_service.records.rules.history import Removal, Version, copied


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
            provenance=copied(self.item.provenance, self.item.revision),
            wire=None,
            framed=None,
        )
        return ItemWrite(item, self.search_text, speaker=self.speaker)


@dataclass(slots=True)
class StateVersion:
    """A version of a state."""

    entry: StateEntry
    replaced_us: int


def _of_item(item: Item) -> Version:
    return Version(item.revision, item.update_us, item.expire_us, item.provenance, item.content, item.kind)


def _of_state(entry: StateEntry) -> Version:
    return Version(entry.version, entry.update_us, entry.expire_us, entry.provenance, entry.value_json)


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
        self.removals = [removal for removal in self.removals if removal.time_us >= before_us]

    def note(self, removal: Removal | None) -> None:
        """Note who deleted, or let expire, what is gone; None: nobody."""
        if removal is not None:
            self.removals.append(removal)

    def count_removals(self, by: WritesBy) -> int:
        """Return how often somebody deleted something, or let it expire."""
        return sum(removal.of(by) for removal in self.removals)

    # --- items --------------------------------------------------------------------------------

    def versions(self, item: Item) -> list[Version]:
        """Return the versions of an item, the present one first."""
        return [_of_item(item), *(_of_item(kept.item) for kept in reversed(self.items.get(item.id, ())))]

    def version(self, item_id: str, revision: int) -> ItemVersion:
        """Return a version of an item that is kept."""
        return next(kept for kept in self.items[item_id] if kept.item.revision == revision)

    def forget_versions(self, item_id: str, revisions: Sequence[int]) -> None:
        """Forget these versions of an item."""
        kept = self.items.get(item_id, ())
        self.items[item_id] = [version for version in kept if version.item.revision not in revisions]

    # --- states -------------------------------------------------------------------------------

    def state_versions(self, entry: StateEntry) -> list[Version]:
        """Return the versions of a state, the present one first."""
        kept = reversed(self.states.get(entry.key, ()))
        return [_of_state(entry), *(_of_state(version.entry) for version in kept)]

    def state_version(self, key: str, version: int) -> StateEntry:
        """Return a version of a state that is kept."""
        return next(kept.entry for kept in self.states[key] if kept.entry.version == version)

    def description(self, revision: int, present: Iterable[StateEntry]) -> str:
        """Return the description of the state that a revision saved; "" where that is not kept."""
        kept = (version.entry for versions in self.states.values() for version in versions)
        return next((entry.description for entry in (*present, *kept) if entry.revision == revision), "")

    def forget_state_versions(self, key: str, versions: Sequence[int]) -> None:
        """Forget these versions of a state."""
        kept = self.states.get(key, ())
        self.states[key] = [version for version in kept if version.entry.version not in versions]
