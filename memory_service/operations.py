"""Operations of a write: values that a store applies together, all or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.data_model import ItemWrite, OnDuplicate, StateWrite


@dataclass(slots=True, frozen=True)
class AddItems:
    """Add items in order; `on_duplicate` decides about ids that exist.

    `forgets`: they only lose references to items that the same write removes, so they need no room.
    """

    writes: Sequence[ItemWrite]
    on_duplicate: OnDuplicate = OnDuplicate.FAIL
    forgets: bool = False


@dataclass(slots=True, frozen=True)
class ReplaceItem:
    """Replace an existing item, at `expected_revision` if that is given."""

    write: ItemWrite
    expected_revision: int | None = None


@dataclass(slots=True, frozen=True)
class RemoveItem:
    """Remove an item that exists at `at_us`; with `allow_missing`, nothing happens if there is none.

    `derived`: with what was made only from it.
    """

    item_id: str
    at_us: int
    expected_revision: int | None = None
    allow_missing: bool = False
    derived: bool = False


@dataclass(slots=True, frozen=True)
class RemoveItems:
    """Remove items, expired or not; unknown ids are skipped. `derived`: with what was made only from them."""

    item_ids: Sequence[str]
    derived: bool = False


@dataclass(slots=True, frozen=True)
class RemoveAt:
    """Remove the items at these positions, as they were found at `revision`; positions without one are
    skipped. `derived`: with what was made only from them.
    """

    positions: Sequence[int]
    revision: int
    derived: bool = False


@dataclass(slots=True, frozen=True)
class SaveStates:
    """Save values in order; `on_duplicate` decides about keys that exist."""

    writes: Sequence[StateWrite]
    on_duplicate: OnDuplicate = OnDuplicate.REPLACE


@dataclass(slots=True, frozen=True)
class RemoveState:
    """Remove a key that exists at `at_us`; with `allow_missing`, nothing happens if there is none."""

    key: str
    at_us: int
    expected_version: int | None = None
    allow_missing: bool = False


@dataclass(slots=True, frozen=True)
class RenameState:
    """Give the state that exists at `at_us` another key, which no state has then."""

    key: str
    new_key: str
    at_us: int
    expected_version: int | None = None


Operation = AddItems | ReplaceItem | RemoveItem | RemoveItems | RemoveAt | SaveStates | RemoveState
