"""Replaced versions and deletions in the in-memory store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec
import numpy as np

from memory_service.data_model import Item, ItemWrite, StateEntry, WritesBy
from memory_service.records.rules.history import Removal, Version, copied
from memory_service.records.rules.versions import redacted


@dataclass(slots=True)
class ItemVersion:
    """A version of an item, with its search text and vector."""

    item: Item
    vector: np.ndarray | None
    vector_key: int
    search_text: str
    speaker: str

    def write(self, no_vector_key: int) -> ItemWrite:
        """Return the write that restores it; vectors with keys below `no_vector_key` are dropped."""
        item = msgspec.structs.replace(
            self.item,
            embedding=self.vector if self.vector_key > no_vector_key else None,
            provenance=copied(self.item.provenance, self.item.revision),
            wire=None,
            framed=None,
        )
        return ItemWrite(item, self.search_text, speaker=self.speaker)


R = TypeVar("R")


class Versions(dict[str, list[tuple[int, Version, R | None]]]):
    """Replaced versions by id or key, oldest first, each with the time at which it was replaced.

    Redacted ones have no record.
    """

    def keep(self, name: str, replaced_us: int, version: Version, record: R) -> None:
        """Keep a version."""
        self.setdefault(name, []).append((replaced_us, version, record))

    def before(self, name: str) -> list[Version]:
        """Return the versions before the present one, newest first."""
        return [version for _, version, _ in reversed(self.get(name, ()))]

    def find(self, name: str, number: int) -> R:
        """Return a kept version."""
        return next(record for _, version, record in self[name] if version.number == number and record)

    def forget(self, name: str, numbers: Sequence[int]) -> None:
        """Forget these versions."""
        self[name] = [kept for kept in self.get(name, ()) if kept[1].number not in numbers]

    def redact(self, name: str, number: int) -> None:
        """Remove the content of a version."""
        self[name] = [
            (kept[0], _bare(kept[1]), None) if kept[1].number == number else kept for kept in self[name]
        ]

    def prune(self, before_us: int) -> None:
        """Forget versions replaced before a time."""
        for name, versions in list(self.items()):
            self[name] = [kept for kept in versions if kept[0] >= before_us]


def _bare(version: Version) -> Version:
    return replace(version, content=None, redacted=True, provenance=redacted(version.provenance))


def _of_item(item: Item) -> Version:
    return Version(
        item.revision, item.update_us, item.expire_us, item.provenance, item.content, kind=item.kind
    )


def _of_state(entry: StateEntry) -> Version:
    return Version(
        entry.version, entry.update_us, entry.expire_us, entry.provenance, entry.value_json,
        revision=entry.revision,
    )  # fmt: skip


@dataclass
class History:
    """The replaced versions of a namespace, and its deletions and shortened expiries."""

    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    items: Versions[ItemVersion] = field(default_factory=Versions)
    states: Versions[StateEntry] = field(default_factory=Versions)
    removals: list[Removal] = field(default_factory=list)
    deletions: dict[int, Removal] = field(default_factory=dict)
    """Those that deleted something, by the revision of the change."""

    def keep(self, item: Item, vector: np.ndarray | None, vector_key: int, replaced_us: int) -> None:
        """Keep a version of an item."""
        version = ItemVersion(item, vector, vector_key, *self.texts[item.id])
        self.items.keep(item.id, replaced_us, _of_item(item), version)

    def keep_state(self, entry: StateEntry, replaced_us: int) -> None:
        """Keep a version of a state."""
        self.states.keep(entry.key, replaced_us, _of_state(entry), entry)

    def rename_state(self, key: str, new_key: str) -> None:
        """Keep the versions of a state under another key."""
        if kept := self.states.pop(key, None):
            self.states[new_key] = [
                (replaced_us, version, entry and replace(entry, key=new_key))
                for replaced_us, version, entry in kept
            ]

    def of_item(self, item: Item) -> list[Version]:
        """Return the versions of an item, the present one first."""
        return [_of_item(item), *self.items.before(item.id)]

    def of_state(self, entry: StateEntry) -> list[Version]:
        """Return the versions of a state, the present one first."""
        return [_of_state(entry), *self.states.before(entry.key)]

    def description(self, revision: int, present: Iterable[StateEntry]) -> str:
        """Return the description of the state that a revision saved; "" if it is not kept."""
        kept = (entry for versions in self.states.values() for _, _, entry in versions if entry)
        return next((entry.description for entry in (*present, *kept) if entry.revision == revision), "")

    def forget(self, item_id: str) -> None:
        """Forget all versions of an item."""
        self.items.pop(item_id, None)
        self.texts.pop(item_id, None)

    def prune(self, before_us: int) -> None:
        """Forget versions replaced, and deletions made, before a time."""
        self.items.prune(before_us)
        self.states.prune(before_us)
        self.removals = [removal for removal in self.removals if removal.time_us >= before_us]
        self.deletions = {at: each for at, each in self.deletions.items() if each.time_us >= before_us}

    def note(self, removal: Removal | None) -> None:
        """Record who deleted something or let it expire; None: do not record."""
        if removal is not None:
            self.removals.append(removal)

    def count_removals(self, by: WritesBy) -> int:
        """Return how many removals of a writer are recorded."""
        return sum(removal.of(by) for removal in self.removals)
