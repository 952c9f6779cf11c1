"""Applies the operations of a write to a namespace. Everything is checked before anything is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from memory_service.data_model import ChangeType, ItemKind, Receipt
from memory_service.operations import (
    AddItems,
    Operation,
    RemoveAt,
    RemoveItem,
    RemoveItems,
    RemoveState,
    ReplaceItem,
    SaveStates,
)
from memory_service.records.in_memory.namespace import Namespace
from memory_service.records.rules.derivation import check_counts, named_ids, named_positions, removes_derived
from memory_service.records.rules.items import check_unwritten, choose, item_to_remove, item_to_replace
from memory_service.records.rules.states import choose_states, note_saved, state_to_remove
from memory_service.records.rules.vectors import VectorRule
from memory_service.runtime.caller import Caller
from memory_service.runtime.clock import now_us

Step = Callable[[Receipt], int]
"""Makes the changes of a checked operation, and returns how many items or states it wrote or removed."""


class Plan:
    """Checks operations against a namespace as it is before the write."""

    def __init__(
        self, found: Namespace, by: Caller, operations: Sequence[Operation], derived_max: int | None
    ) -> None:
        self._derived_max = derived_max
        self._found, self._by = found, by
        self.derived: list[tuple[str, ItemKind]] = []
        """The items that the operations remove as derived."""
        self.derived_counts: list[int] = []
        """How many of them each operation removes."""
        self._gone: set[int] = set()
        self._spared: set[int] = set()
        if removes_derived(operations):
            self._spared = self._positions(named_ids(operations)) | named_positions(operations)
        self.rule = VectorRule(found.dimension, found.model)

    def step(self, operation: Operation) -> Step:
        """Check an operation and return the step that makes its changes."""
        self.derived_counts.append(0)
        match operation:
            case AddItems():
                return self._add(operation)
            case ReplaceItem():
                return self._replace(operation)
            case RemoveItem():
                return self._remove(operation)
            case RemoveItems():
                return self._remove_all(operation.item_ids, derived=operation.derived)
            case RemoveAt():
                return self._remove_at(operation)
            case SaveStates():
                return self._save(operation)
            case RemoveState():
                return self._remove_state(operation)

    def _add(self, operation: AddItems) -> Step:
        found, writes = self._found, operation.writes
        chosen = choose(
            found.name,
            writes,
            lambda write: found.items.get(write.item.id),
            operation.on_duplicate,
            self.rule,
        )

        def step(receipt: Receipt) -> int:
            for at, _, waits in chosen:
                found.put(writes[at], waits)
                receipt.add(writes[at].item)
            receipt.skipped_count += len(writes) - len(chosen)
            return len(chosen)

        return step

    def _replace(self, operation: ReplaceItem) -> Step:
        found, write = self._found, operation.write
        stored = item_to_replace(found.name, operation, found.items.get(write.item.id))
        waits = not write.keep_vector and self.rule.take(write)

        def step(receipt: Receipt) -> int:
            found.give_way(write, stored)
            found.replace(write, stored, waits)
            receipt.add(write.item)
            return 1

        return step

    def _remove(self, operation: RemoveItem) -> Step:
        present = item_to_remove(self._found.name, operation, self._found.items.get(operation.item_id))
        named = [] if present is None else [operation.item_id]
        return self._remove_all(named, derived=operation.derived)

    def _remove_all(self, item_ids: Iterable[str], *, derived: bool) -> Step:
        named = list(dict.fromkeys(item_ids))
        self._gone |= self._positions(named)
        derived_ids = self._derived() if derived else []

        def step(receipt: Receipt) -> int:
            removed = self._removed(named)
            receipt.removed_count += removed
            self._removed(derived_ids)
            return removed

        return step

    def _positions(self, item_ids: Iterable[str]) -> set[int]:
        return {item.position for item_id in item_ids if (item := self._found.items.get(item_id))}

    def _derived(self) -> list[str]:
        """Return the ids of what was made only from the items that go."""
        found, now = self._found, now_us()
        positions = found.links.derived(
            self._gone, self._spared, lambda position: not found.items[found.ids[position]].expired(now)
        )
        self.derived_counts[-1] = len(positions)
        check_counts(self.derived_counts, self._derived_max)
        self._gone.update(positions)
        ids = [found.ids[position] for position in positions]
        self.derived += [(item_id, found.items[item_id].kind) for item_id in ids]
        return ids

    def _removed(self, item_ids: Iterable[str]) -> int:
        found = self._found
        removed = [found.items[item_id] for item_id in item_ids if item_id in found.items]
        for item in removed:
            found.remove(item, ChangeType.ITEM_DELETED)
            found.note_removal(self._by)
        return len(removed)

    def _remove_at(self, operation: RemoveAt) -> Step:
        found = self._found
        ids = [found.ids[position] for position in sorted(operation.positions) if position in found.ids]
        check_unwritten(operation, [found.items[item_id] for item_id in ids], found.revision)
        return self._remove_all(ids, derived=operation.derived)

    def _save(self, operation: SaveStates) -> Step:
        found = self._found
        chosen = choose_states(
            operation.writes, lambda write: found.states.get(write.key), operation.on_duplicate
        )

        def step(receipt: Receipt) -> int:
            entries = [found.save(write) for write in chosen]
            note_saved(receipt, entries)
            receipt.skipped_state_count += len(operation.writes) - len(chosen)
            return len(chosen)

        return step

    def _remove_state(self, operation: RemoveState) -> Step:
        found, key = self._found, operation.key
        present = state_to_remove(found.name, operation, found.states.get(key))

        def step(receipt: Receipt) -> int:
            if present is None:
                return 0
            found.remove_state(key, ChangeType.STATE_DELETED)
            found.note_removal(self._by)
            receipt.removed_state_count += 1
            return 1

        return step
