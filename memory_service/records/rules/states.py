"""Decides which values of states are saved, with which version and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from memory_service.data_model import OnDuplicate, Receipt, StateEntry, StateWrite
from memory_service.errors import Conflict, NotFound
from memory_service.records.rules.presence import Found, live


class FoundState(Found, Protocol):
    """A stored state as a write finds it."""

    @property
    def version(self) -> int: ...
    @property
    def create_us(self) -> int: ...
    @property
    def description(self) -> str: ...


S = TypeVar("S", bound=FoundState)


def check_version(write: StateWrite, found: FoundState | None) -> None:
    """Raise Conflict if a write expects a version other than the present one; 0 means none."""
    present = live(found, write.now_us)
    _check_version(write.key, write.expected_version, 0 if present is None else present.version)


def present_state(namespace: str, key: str, found: S | None, at_us: int, expected: int | None) -> S:
    """Return the state that a write requires. Raises NotFound and Conflict."""
    present = live(found, at_us)
    if present is None:
        raise NotFound.state(namespace, key)
    _check_version(key, expected, present.version)
    return present


def _check_version(key: str, expected: int | None, version: int) -> None:
    if expected is not None and expected != version:
        raise Conflict.version(key, expected, version)


def choose_states(
    writes: Sequence[StateWrite], find: Callable[[StateWrite], FoundState | None], on_duplicate: OnDuplicate
) -> list[StateWrite]:
    """Return the writes to apply from one step; a repeated key finds the write before it.

    `find` returns the stored state of a write, expired or not. Raises Conflict.
    """
    if on_duplicate is OnDuplicate.REPLACE:
        return list(writes)
    chosen: list[StateWrite] = []
    seen: set[str] = set()
    for write in writes:
        present = live(find(write), write.now_us)
        version = int(write.key in seen) if present is None else present.version
        if version and on_duplicate is OnDuplicate.FAIL:
            raise Conflict.version(write.key, 0, version)
        if not version:
            seen.add(write.key)
            chosen.append(write)
    return chosen


def next_entry(
    write: StateWrite, present: FoundState | None, version_floor: int, revision: int
) -> StateEntry:
    """Return the entry that a write saves over `present`, which is None if there is no state, or no longer.

    Versions of a key continue above `version_floor`, the highest version at which any key was removed.
    """
    before = "" if present is None else present.description
    return StateEntry(
        key=write.key,
        value_json=write.value_json,
        version=(version_floor if present is None else present.version) + 1,
        create_us=write.now_us if present is None else present.create_us,
        update_us=write.now_us,
        expire_us=write.expire_us,
        size_bytes=len(write.value_json),
        description=before if write.description is None else write.description,
        revision=revision,
        provenance=write.provenance,
    )


def floor_without(version_floor: int, removed: Iterable[int]) -> int:
    """Return the version floor after states of these versions were removed."""
    return max(version_floor, *removed, 0)


def saved(entry: StateEntry) -> Receipt:
    """Return the receipt of a saved state."""
    return Receipt(
        entry.revision,
        version=entry.version,
        create_us=entry.create_us,
        update_us=entry.update_us,
        expire_us=entry.expire_us,
        description=entry.description,
    )


def saved_again(receipt: Receipt, write: StateWrite) -> Receipt:
    """Return the receipt of a save that was already applied, with its description as far as it is kept."""
    # The body is the same, so it has the description even if the state no longer does.
    receipt.description = receipt.description or write.description or ""
    return receipt
