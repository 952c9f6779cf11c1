"""Decides which writes of items are applied, and to which items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from memory_service.data_model import ChangeType, ItemKind, ItemWrite, OnDuplicate, Since
from memory_service.errors import AlreadyExists, Conflict, NotFound
from memory_service.operations import (
    AddItems,
    Operation,
    RemoveAt,
    RemoveItem,
    RemoveItems,
    ReplaceItem,
    SaveStates,
)
from memory_service.records.rules.presence import Found, live
from memory_service.records.rules.vectors import VectorRule

_OF_ITEMS = frozenset(
    (ChangeType.ITEM_ADDED, ChangeType.ITEM_UPDATED, ChangeType.ITEM_DELETED, ChangeType.ITEM_EXPIRED)
)


class FoundItem(Found, Protocol):
    """A stored item as a write finds it."""

    @property
    def revision(self) -> int: ...


I = TypeVar("I", bound=FoundItem)  # noqa: E741 - an item


def grows(operations: Sequence[Operation]) -> bool:
    """Return whether a write adds to a namespace, which then needs room.

    Up to as many writes as RemoveItems removes need no room: they change remaining items, as part of
    forgetting. A caller's own removals could remove little, or nothing, and make room for much.
    """
    added = removed = 0
    for operation in operations:
        match operation:
            case ReplaceItem() | SaveStates():
                return True
            case AddItems(writes, forgets=False):
                added += len(writes)
            case RemoveItems(item_ids):
                removed += len(item_ids)
    return added > removed


def check_unchanged(
    since: Since, revision: int, changes: Iterable[tuple[ChangeType, str, ItemKind | None]]
) -> None:
    """Reject a write if one of the changes since a revision counts; the namespace is at `revision`.

    Each change has its type, its subject, and the kind of the item if it still exists. Raises Conflict.
    """
    if revision < since.revision or any(_counts(since, *change) for change in changes):
        raise Conflict.changed_since(since.revision, revision)


def _counts(since: Since, change: ChangeType, subject: str, kind: ItemKind | None) -> bool:
    if change not in _OF_ITEMS:
        return change is ChangeType.RESET
    if kind is None:
        return subject in since.ids or (since.removals and bool(since.kinds))
    return subject in since.ids or kind in since.kinds


def choose(
    namespace: str,
    writes: Sequence[ItemWrite],
    find: Callable[[ItemWrite], I | None],
    on_duplicate: OnDuplicate,
    rule: VectorRule,
) -> list[tuple[int, I | None, bool]]:
    """Return the places of the writes to apply, each with the stored item and whether it awaits a vector.

    `find` returns the stored item of a write, expired or not. Raises Conflict, AlreadyExists, and the errors
    of `VectorRule.take`.
    """
    chosen: list[tuple[int, I | None, bool]] = []
    seen: set[str] = set()
    for at, write in enumerate(writes):
        item_id = write.item.id
        found = find(write)
        present = None if found is None else live(found, write.item.update_us)
        if write.expected_revision is not None:
            _check_revision(item_id, write.expected_revision, present)
        exists = item_id in seen or present is not None
        if exists and on_duplicate is OnDuplicate.FAIL:
            raise AlreadyExists.item(namespace, item_id)
        if not exists or on_duplicate is OnDuplicate.REPLACE:
            seen.add(item_id)
            chosen.append((at, found, rule.take(write)))
    return chosen


def item_to_replace(namespace: str, replacement: ReplaceItem, found: I | None) -> I:
    """Return the item to replace. Raises NotFound and Conflict."""
    item = replacement.write.item
    present = live(found, item.update_us)
    if present is None:
        raise NotFound.item(namespace, item.id)
    if replacement.expected_revision is not None:
        _check_revision(item.id, replacement.expected_revision, present)
    return present


def item_to_remove(namespace: str, removal: RemoveItem, found: I | None) -> I | None:
    """Return the item to remove; None if there is none and that is allowed. Raises NotFound and Conflict."""
    present = live(found, removal.at_us)
    if present is None and not removal.allow_missing:
        raise NotFound.item(namespace, removal.item_id)
    if removal.expected_revision is not None:
        _check_revision(removal.item_id, removal.expected_revision, present)
    return present


def check_unwritten(removal: RemoveAt, found: Iterable[FoundItem], revision: int) -> None:
    """Raise Conflict if one of these items was written after the revision at which it was found.

    The namespace is at `revision`.
    """
    if any(item.revision > removal.revision for item in found):
        raise Conflict.changed_since(removal.revision, revision)


def _check_revision(item_id: str, expected: int, present: FoundItem | None) -> None:
    revision = 0 if present is None else present.revision
    if expected != revision:
        raise Conflict.revision(item_id, expected, revision)
