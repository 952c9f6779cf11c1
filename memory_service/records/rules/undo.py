"""Decides what an undo does with an item or a state."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from memory_service.data_model import ItemKind, StateEntry, StateWrite, UndoStep, WritesBy
from memory_service.records.base import FilesRestored, RestoredFiles
from memory_service.records.rules.history import Version, copied

K = TypeVar("K", int, str)


class Action(enum.Enum):
    """What happens to an item or a state."""

    REMOVE = 1
    RESTORE = 2
    LEAVE = 3


@dataclass(frozen=True, slots=True)
class Undone:
    """The result for one item or state.

    `restored` is the number of the restored version, 0 if none. `forgotten` are the kept versions to delete,
    including the restored one; for a removed item or state, all of them.
    """

    action: Action
    restored: int = 0
    unrestorable: bool = False
    forgotten: Sequence[int] = ()
    is_file: bool = False


def undo_item(versions: Sequence[Version], position: int, by: WritesBy, at_us: int) -> Undone:
    """Return what happens to the item at a position with these versions, the present one first."""
    undone = _undo(versions, by, at_us, began=versions[-1].origin == position)
    return replace(undone, is_file=versions[0].kind is ItemKind.FILE)


def check_files(undone: Mapping[str, Undone], files: RestoredFiles | None) -> None:
    """Raise FilesRestored if a file is to be restored at a version that is not planned."""
    restored = {name: each.restored for name, each in undone.items() if each.is_file and each.restored}
    known = files.facets if files else {}
    if any(version not in known for version in restored.items()):
        removed = {n: 0 for n, each in undone.items() if each.is_file and each.action is Action.REMOVE}
        raise FilesRestored(restored | removed)


def undo_state(versions: Sequence[Version], create_us: int, by: WritesBy, at_us: int) -> Undone:
    """Return what happens to a state with these versions, the present one first."""
    # A state's first version has the time at which the state was created.
    return _undo(versions, by, at_us, began=versions[-1].update_us == create_us)


def _undo(versions: Sequence[Version], by: WritesBy, at_us: int, *, began: bool) -> Undone:
    """`began`: the oldest of these versions created it."""
    present, *before = versions
    theirs = [version.number for version in before if version.of(by)]
    if not present.of(by):
        # Another writer has overwritten it since; content kept from it cannot be separated from theirs. An
        # edit of a file keeps most of its text.
        edited = present.kind is ItemKind.FILE and bool(theirs)
        kept = edited or any(version.content == present.content for version in before if version.of(by))
        return Undone(Action.LEAVE, unrestorable=kept, forgotten=theirs)
    others = [version for version in before if not version.of(by)]
    wanted = next((version for version in others if not version.redacted), None)
    if wanted is None:
        if began and not others:
            return Undone(Action.REMOVE)
        return Undone(Action.LEAVE, unrestorable=True, forgotten=theirs)
    if wanted.kind is ItemKind.DOCUMENT:
        # The fragments of that version were deleted when it was replaced.
        return Undone(Action.REMOVE, unrestorable=True)
    if wanted.expire_us is not None and wanted.expire_us <= at_us:
        return Undone(Action.REMOVE)
    return Undone(Action.RESTORE, wanted.number, forgotten=[*theirs, wanted.number])


def write_again(version: StateEntry) -> StateWrite:
    """Return the write that restores a kept version of a state, with its time and provenance."""
    return StateWrite(
        version.key,
        version.value_json,
        version.update_us,
        version.description,
        version.expire_us,
        provenance=copied(version.provenance, version.version),
    )


def step_of(undone: Mapping[str, Undone], places: Sequence[K], limit: int) -> UndoStep:
    """Return the report of an undo on up to `limit` items by id, or states by key.

    `places` are their positions or keys: the undo continues after the last one if there may be more.
    """
    step = UndoStep(following=places[-1] if len(places) == limit else None)
    for name, each in undone.items():
        step.removed_count += each.action is Action.REMOVE
        step.restored_count += each.action is Action.RESTORE
        if each.unrestorable:
            step.unrestorable.append(name)
    return step
