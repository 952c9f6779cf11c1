"""The data of one namespace that a group of writes knows, and the changes it is about to write.

A page begins with the rows looked up under the namespace's lock; each write adds its changes, so that the
next one sees them. No write reaches the database before the whole group does.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memory_service.data_model import ChangeType, HeldWrite, ItemKind, Provenance
from memory_service.indexes.view import Entry
from memory_service.records.postgres.database import Row
from memory_service.records.postgres.rows import ItemRow, StateRow
from memory_service.records.postgres.schema import part_of
from memory_service.records.rules.derivation import Links
from memory_service.records.rules.history import Removal
from memory_service.records.stored_values import NamespaceCounts, provenance_of

EMPTIED = 1
"""Journal flag: the namespace was emptied."""
MOVED = 2
"""Journal flag: all its vectors were given up."""


class Ended(NamedTuple):
    """The fields of a version that show who set its expiry."""

    update_us: int
    expire_us: int | None
    stored: str | None
    """Its provenance."""

    @property
    def provenance(self) -> Provenance | None:
        """Return its writer."""
        return provenance_of(self.stored)


@dataclass(slots=True, frozen=True)
class StoredItem:
    """A known item: looked up, or written by the group, in which case it has a `row`."""

    position: int
    revision: int
    update_us: int
    expire_us: int | None
    vector_key: int
    kind: int
    provenance: str | None
    nbytes: int
    create_us: int
    row: ItemRow | None = None
    keeps_vector: bool = False
    """The row has no vector; the one in the database stays."""
    before: tuple[Ended, ...] = ()
    """Earlier versions, newest first; may be missing for an item without expiry."""

    @property
    def ended(self) -> Ended:
        """The fields that show who set its expiry."""
        return Ended(self.update_us, self.expire_us, self.provenance)


@dataclass(slots=True, frozen=True)
class StoredState:
    """A known state, likewise."""

    version: int
    create_us: int
    update_us: int
    expire_us: int | None
    description: str
    provenance: str | None
    nbytes: int
    row: StateRow | None = None
    before: tuple[Ended, ...] = ()

    @property
    def ended(self) -> Ended:
        """The fields that show who set its expiry."""
        return Ended(self.update_us, self.expire_us, self.provenance)


@dataclass(slots=True)
class KeptRequest:
    """An applied request as it is kept."""

    digest: bytes
    receipt: str
    whole: bytes | None
    state_key: str | None = None
    state_version: int | None = None
    description: str = ""
    """Of the saved state; "" if not kept."""
    told: frozenset[str] = frozenset()
    time_us: int = 0


@dataclass(slots=True)
class Book(NamespaceCounts):
    """The row of a namespace while it is written to."""

    name: str
    uid: int
    revision: int = 0
    seq: int = 0
    stamp: int = 0
    item_count: int = 0
    state_count: int = 0
    embedded_count: int = 0
    pending_count: int = 0
    bytes: int = 0
    dimension: int = 0
    model: str = ""
    version_floor: int = 0
    vector_epoch: int = 0
    moving: bool = False
    create_us: int = 0
    settings: str | None = None


class Renamed(NamedTuple):
    """A state with another key. Keys are in stored form."""

    key: str
    new_key: str
    version: int
    revision: int
    more: int
    """Bytes that the new key is longer."""


@dataclass(slots=True)
class Pending:
    """The pending changes of a namespace; `flushing` decides the order."""

    items: dict[int, StoredItem] = field(default_factory=dict)
    """By position, the last version of each."""
    removed: dict[int, None] = field(default_factory=dict)
    """Positions of removed items, in order."""
    keep_items: list[tuple[int, int]] = field(default_factory=list)
    """Positions whose version in the database is kept as history, and when it was replaced."""
    kept_items: list[tuple[ItemRow, int, bool]] = field(default_factory=list)
    """Versions written by the group, when they were replaced, and whether the database has the vector."""
    parents: dict[int, Sequence[str]] = field(default_factory=dict)
    """Ids of the parents of written items, by position, of those that have or had any."""
    fills: list[tuple[int, int, bytes | None]] = field(default_factory=list)
    """Position, key and vector."""
    uses: Counter[int] = field(default_factory=Counter)
    refreshed: dict[int, int] = field(default_factory=dict)
    """Positions of items whose expiry is refreshed, and from when on they live."""
    states: dict[str, StoredState | None] = field(default_factory=dict)
    keep_states: list[tuple[str, int]] = field(default_factory=list)
    kept_states: list[tuple[StateRow, int]] = field(default_factory=list)
    gone_states: set[str] = field(default_factory=set)
    """Removed keys, even if they exist again."""
    renamed: list[Renamed] = field(default_factory=list)
    changes: list[tuple[int, int, str]] = field(default_factory=list)
    removals: list[tuple[int, Removal]] = field(default_factory=list)
    requests: dict[str, KeptRequest] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    """Subjects whose answers in the database are to be forgotten."""
    held: dict[str, HeldWrite] = field(default_factory=dict)
    let_go: set[str] = field(default_factory=set)
    entries: dict[int, Entry] = field(default_factory=dict)
    """The effect on views."""
    moved: set[int] = field(default_factory=set)
    """Other positions that views must read again, changed by direct statements."""
    flags: int = 0


@dataclass
class Page:
    """A namespace while a group writes to it."""

    name: str
    book: Book | None = None
    next_uid: int = 0
    """Used if the namespace is created."""
    began: bool = False
    deleted: bool = False
    touched: bool = False
    items: dict[str, StoredItem | None] = field(default_factory=dict)
    at: dict[int, str] = field(default_factory=dict)
    """Ids of items looked up by position."""
    states: dict[str, StoredState | None] = field(default_factory=dict)
    requests: dict[str, KeptRequest] = field(default_factory=dict)
    held: dict[str, HeldWrite] = field(default_factory=dict)
    changes: list[tuple[int, int, str, int | None]] = field(default_factory=list)
    """Changes since the requested revision: number, type, subject, and the kind of the item."""
    links: Links = field(default_factory=Links)
    """All descendants of the items that the group removes with what was derived, and all their parents."""
    ends: dict[int, int | None] = field(default_factory=dict)
    """When each of these parents expires, by position."""
    pending: Pending = field(default_factory=Pending)
    seq_before: int = 0
    stamp_before: int = 0

    @property
    def part(self) -> int:
        """The part its rows are in."""
        return part_of(self.name)

    def open(self, now_us: int) -> Book:
        """Return the row for a write, creating the namespace if necessary."""
        if self.book is None:
            self.book = Book(self.name, self.next_uid, create_us=now_us)
            self.began = True
        self.touched = True
        return self.book

    def step(self) -> None:
        """Advance the internal sequence number, once for everything the group did here."""
        assert self.book is not None
        self.book.seq, self.book.stamp = self.book.seq + 1, random.getrandbits(62)
        self.book.moving = self.book.moving and self.book.pending_count > 0

    def change(self, kind: ChangeType, subject: str) -> int:
        """Log a change and return its revision."""
        assert self.book is not None
        self.book.revision += 1
        self.pending.changes.append((self.book.revision, int(kind), subject))
        return self.book.revision

    def note(self, removal: Removal | None) -> None:
        """Record who deleted, or let expire, the subject of the last logged change; None: do not record."""
        if removal is not None:
            assert self.book is not None
            self.pending.removals.append((self.book.revision, removal))

    def forget_told(self, subject: str) -> None:
        """Forget the answers that mention an item or a state."""
        self.pending.forgotten.add(subject)
        for kept in self.pending.requests.values():
            if subject in kept.told:
                kept.whole, kept.told = None, frozenset()

    def changes_since(self, revision: int) -> Iterable[tuple[ChangeType, str, ItemKind | None]]:
        """Return each change since a revision, with its subject and the item's present kind."""
        logged = [(*change, None) for change in self.pending.changes]
        for number, kind, subject, found in [*self.changes, *logged]:
            if number <= revision:
                continue
            item_kind = found
            if subject in self.items:
                item = self.items[subject]
                item_kind = None if item is None else item.kind
            yield ChangeType(kind), subject, None if item_kind is None else ItemKind(item_kind)

    def positions(self) -> list[int]:
        """Return the positions that views must read again."""
        p = self.pending
        filled = (fill[0] for fill in p.fills)
        return sorted({*p.items, *p.removed, *filled, *p.uses, *p.refreshed, *p.moved})


def book_of(name: str, row: Row) -> Book:
    """Return the namespace row from BOOK_COLUMNS."""
    return Book(name, *row)


BOOK_COLUMNS = (
    *("uid", "revision", "seq", "stamp", "item_count", "state_count", "embedded_count", "pending_count"),
    *("bytes", "dimension", "model", "version_floor", "vector_epoch", "moving", "create_us"),
    "settings",
)
