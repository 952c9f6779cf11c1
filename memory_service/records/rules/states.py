"""Decides which values of states are saved, with which version and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from memory_service.data_model import OnDuplicate, Receipt, StateEntry, StateStamp, StateWrite
from memory_service.errors import AlreadyExists, Conflict, NotFound
from memory_service.operations import RemoveState, RenameState
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
_LAST = "\U0010ffff"


def state_to_remove(namespace: str, removal: RemoveState, found: S | None) -> S | None:
    """Return the state to remove; None if there is none and that is allowed. Raises NotFound and Conflict."""
    present = live(found, removal.at_us)
    if present is None and not removal.allow_missing:
        raise NotFound.state(namespace, removal.key)
    _check_version(removal.key, removal.expected_version, 0 if present is None else present.version)
    return present


def state_to_rename(namespace: str, renaming: RenameState, found: S | None, taken: Found | None) -> S:
    """Return the state to rename; `taken` has the new key, expired or not. Raises NotFound, Conflict and
    AlreadyExists.
    """
    present = live(found, renaming.at_us)
    if present is None:
        raise NotFound.state(namespace, renaming.key)
    _check_version(renaming.key, renaming.expected_version, present.version)
    if live(taken, renaming.at_us) is not None:
        raise AlreadyExists.state(namespace, renaming.new_key)
    return present


def renamed_version(version: int, version_floor: int) -> int:
    """Return the version under a new key, which may have had every version up to the floor before."""
    return version if version > version_floor else version_floor + 1


def _check_version(key: str, expected: int | None, version: int) -> None:
    if expected is not None and expected != version:
        raise Conflict.version(key, expected, version)


def choose_states(
    writes: Sequence[StateWrite], find: Callable[[StateWrite], FoundState | None], on_duplicate: OnDuplicate
) -> list[StateWrite]:
    """Return the writes to apply from one step; a repeated key finds the write before it.

    `find` returns the stored state of a write, expired or not. Raises Conflict.
    """
    chosen: list[StateWrite] = []
    seen: set[str] = set()
    for write in writes:
        present = live(find(write), write.now_us)
        version = 0 if present is None else present.version
        _check_version(write.key, write.expected_version, version)
        exists = write.key in seen or present is not None
        if exists and on_duplicate is OnDuplicate.FAIL:
            raise Conflict.version(write.key, 0, version or 1)
        if not exists or on_duplicate is OnDuplicate.REPLACE:
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


def end_of(prefix: str) -> str:
    """Return the least text above all that begin with a prefix, in the order of UTF-8; "" if none is."""
    rest = prefix.rstrip(_LAST)
    if not rest:
        return ""
    following = ord(rest[-1]) + 1
    # Surrogates are not characters.
    return rest[:-1] + chr(0xE000 if following == 0xD800 else following)


def key_range(after_key: str, prefix: str, condition: str) -> tuple[str, list[str]]:
    """Return SQL for the keys above one that begin with a prefix, and its values.

    `condition` compares the column by the operator put in place of `{}`.
    """
    above = after_key >= prefix
    where, values = condition.format(">" if above else ">="), [after_key if above else prefix]
    if end := end_of(prefix):
        where, values = f"{where} AND {condition.format('<')}", [*values, end]
    return where, values


def floor_without(version_floor: int, removed: Iterable[int]) -> int:
    """Return the version floor after states of these versions were removed."""
    return max(version_floor, *removed, 0)


def note_saved(receipt: Receipt, entries: Sequence[StateEntry]) -> None:
    """Put saved states into the receipt of a write."""
    for entry in entries:
        stamp = StateStamp(
            entry.version, entry.revision, entry.create_us, entry.update_us, entry.expire_us, entry.size_bytes
        )
        receipt.states.append(stamp)
        receipt.version, receipt.description = entry.version, entry.description
        receipt.create_us, receipt.update_us = entry.create_us, entry.update_us
        receipt.expire_us = entry.expire_us
