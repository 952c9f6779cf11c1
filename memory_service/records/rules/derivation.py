"""Which items were made from which, and what goes with them when they are removed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from memory_service.data_model import UNATTRIBUTED, ItemKind
from memory_service.operations import (
    AddItems,
    Operation,
    RemoveAt,
    RemoveItem,
    RemoveItems,
    ReplaceItem,
)
from memory_service.records.base import FactsDerived, ParentsMissing, TooManyDerived
from memory_service.records.rules.presence import Found, live


def removes_derived(operations: Iterable[Operation]) -> bool:
    """Return whether a write removes what was derived from items."""
    return any(isinstance(each, RemoveItem | RemoveItems | RemoveAt) and each.derived for each in operations)


def named_positions(operations: Iterable[Operation]) -> set[int]:
    """Return the positions that operations name."""
    return {
        position
        for operation in operations
        if isinstance(operation, RemoveAt)
        for position in operation.positions
    }


def named_ids(operations: Iterable[Operation]) -> set[str]:
    """Return the ids of the items that operations name; a write does not remove these as derived."""
    named: set[str] = set()
    for operation in operations:
        match operation:
            case AddItems(writes):
                named.update(write.item.id for write in writes)
            case ReplaceItem(write):
                named.add(write.item.id)
            case RemoveItem(item_id):
                named.add(item_id)
            case RemoveItems(item_ids):
                named.update(item_ids)
    return named


def check_facts(known: Collection[str], found: Iterable[tuple[str, ItemKind]]) -> None:
    """Raise FactsDerived unless the facts among the items to remove as derived are those known."""
    facts = {item_id for item_id, kind in found if kind is ItemKind.USER_MEMORY}
    if facts != set(known):
        raise FactsDerived(facts)


def check_counts(counts: Sequence[int], most: int | None) -> None:
    """Raise TooManyDerived if the operations so far remove more than `most` items as derived."""
    if most is not None and (count := sum(counts)) > most:
        raise TooManyDerived(len(counts) - 1, most, count)


def check_parents(
    operations: Iterable[Operation], find: Callable[[Collection[str]], Mapping[str, Found | None]]
) -> None:
    """Raise ParentsMissing unless the parents exist that items are written with; see `WriteStore.write`.

    `find` returns stored items, expired or not.
    """
    writes = [write for each in operations if isinstance(each, AddItems) for write in each.writes]
    if not any(write.parents_exist for write in writes):
        return
    written: set[str] = set()
    wanted: dict[str, int] = {}
    for write in writes:
        if write.parents_exist:
            named = (write.item.provenance or UNATTRIBUTED).parent_ids
            wanted.update((parent, write.item.update_us) for parent in named if parent not in written)
        written.add(write.item.id)
    found = find(wanted)
    if missing := {parent for parent, at_us in wanted.items() if live(found.get(parent), at_us) is None}:
        raise ParentsMissing(missing)


class Links:
    """Which items were made from which, by their positions; complete for what it is asked about."""

    def __init__(self) -> None:
        self._parents: dict[int, set[int]] = {}
        self._children: dict[int, set[int]] = {}

    def add(self, child: int, parent: int) -> None:
        """Note that an item was made from another one."""
        if child != parent:
            self._parents.setdefault(child, set()).add(parent)
            self._children.setdefault(parent, set()).add(child)

    def put(self, child: int, parents: Iterable[int]) -> None:
        """Replace the parents of an item."""
        for parent in self._parents.pop(child, ()):
            self._children[parent].discard(child)
        for parent in parents:
            self.add(child, parent)

    def remove(self, position: int) -> None:
        """Forget a removed item."""
        self.put(position, ())
        for child in self._children.pop(position, ()):
            self._parents[child].discard(position)

    def derived(
        self, gone: Collection[int], spared: Collection[int], exists: Callable[[int], bool]
    ) -> Sequence[int]:
        """Return the positions of the items that were made only from items in `gone`, directly or not, in
        order; without `gone` itself.

        `gone` are the items that a write removes, `spared` those that it must not remove as derived.
        `exists` says whether another item has not expired: an expired parent keeps nothing.
        """
        family = self._descendants(gone)
        staying = [
            child
            for child in family
            if child in spared
            or any(p not in gone and p not in family and exists(p) for p in self._parents[child])
        ]
        going = family.difference(gone)
        while staying:
            child = staying.pop()
            if child in going:
                going.discard(child)
                staying += self._children.get(child, ())
        return sorted(going)

    def _descendants(self, positions: Collection[int]) -> set[int]:
        found: set[int] = set()
        waiting = list(positions)
        while waiting:
            for child in self._children.get(waiting.pop(), ()):
                if child not in found:
                    found.add(child)
                    waiting.append(child)
        return found
