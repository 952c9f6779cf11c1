"""Decides which writes of items are applied, and to which items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from memory_service.data_model import ChangeType, ItemKind, ItemWrite, OnDuplicate, Since, StateWrite
from memory_service.errors import AlreadyExists, Conflict, NotFound
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


def grows(writes: Sequence[ItemWrite], states: Sequence[StateWrite], removals: Sequence[str]) -> bool:
    """Return whether a write adds to a namespace, which then needs room.

    Up to as many writes as removals need no room: they change remaining items, as part of forgetting.
    """
    return bool(states) or len(writes) > len(removals)


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
            raise AlreadyExists(namespace, item_id)
        if not exists or on_duplicate is OnDuplicate.REPLACE:
            seen.add(item_id)
            chosen.append((at, found, rule.take(write)))
    return chosen


def present_item(namespace: str, item_id: str, found: I | None, at_us: int, expected: int | None) -> I:
    """Return the item that a write requires. Raises NotFound and Conflict."""
    present = live(found, at_us)
    if present is None:
        raise NotFound.item(namespace, item_id)
    if expected is not None:
        _check_revision(item_id, expected, present)
    return present


def _check_revision(item_id: str, expected: int, present: FoundItem | None) -> None:
    revision = 0 if present is None else present.revision
    if expected != revision:
        raise Conflict.revision(item_id, expected, revision)
