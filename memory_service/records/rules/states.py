"""Which values of states are saved, and with which version and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from memory_service.data_model import OnDuplicate, Receipt, StateEntry, StateWrite
from memory_service.errors import Conflict, NotFound
from memory_service.records.rules.presence import Found, live


class FoundState(Found, Protocol):
    """What is found of a state."""

    @property
    def version(self) -> int: ...
    @property
    def create_us(self) -> int: ...
    @property
    def description(self) -> str: ...


S = TypeVar("S", bound=FoundState)


def check_version(write: StateWrite, found: FoundState | None) -> None:
    """Raise Conflict where a write expects another version than the one there is, 0 for none."""
    present = live(found, write.now_us)
    _check_version(write.key, write.expected_version, 0 if present is None else present.version)


def present_state(namespace: str, key: str, found: S | None, at_us: int, expected: int | None) -> S:
    """Return the state that a write has to find. Raises NotFound and Conflict."""
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
    """Return the writes to apply, of several in one step; one whose key is there again finds the one before.

    `find` returns what there is of the state of a write, expired or not. Raises Conflict.
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
    """Return what a write saves at a revision over the present state; None: there is none, or no more.

    Versions of a key go on above the highest that any key was removed at, `version_floor`.
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
    """Return above what versions go on once states of these versions are removed."""
    return max(version_floor, *removed, 0)


def saved(entry: StateEntry) -> Receipt:
    """Return the receipt of a state that was saved."""
    return Receipt(
        entry.revision,
        version=entry.version,
        create_us=entry.create_us,
        update_us=entry.update_us,
        expire_us=entry.expire_us,
        description=entry.description,
    )


def saved_again(receipt: Receipt, write: StateWrite) -> Receipt:
    """Return the receipt of a save that was applied before, with the description of what is kept of it."""
    # It was of the same body, which told the description that the state may not have any more.
    receipt.description = receipt.description or write.description or ""
    return receipt
