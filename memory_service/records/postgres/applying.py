"""Applies the operations of a write to a page. Everything is checked before anything is changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from memory_service.data_model import ChangeType, ItemKind, Receipt, RequestKey, Since
from memory_service.errors import NotFound
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
from memory_service.records.content_bytes import check_room
from memory_service.records.postgres.item_writes import give_way, let_go, put_item, put_version, remove_item
from memory_service.records.postgres.page import Page, StoredItem
from memory_service.records.postgres.requests import earlier, finish
from memory_service.records.postgres.state_writes import put_state, remove_state
from memory_service.records.rules.derivation import (
    check_counts,
    check_facts,
    check_parents,
    named_ids,
    named_positions,
    removes_derived,
)
from memory_service.records.rules.history import deleted
from memory_service.records.rules.items import (
    check_unchanged,
    check_unwritten,
    choose,
    grows,
    item_to_remove,
    item_to_replace,
)
from memory_service.records.rules.presence import Before
from memory_service.records.rules.states import choose_states, note_saved, state_to_remove
from memory_service.records.rules.vectors import VectorRule
from memory_service.runtime.caller import Caller
from memory_service.runtime.clock import now_us

Step = Callable[[Receipt], int]
"""Makes the changes of a checked operation, and returns how many items or states it wrote or removed."""


def apply(
    page: Page,
    operations: Sequence[Operation],
    terms: Sequence[Sequence[bytes]],
    request: RequestKey | None,
    by: Caller,
    released: str,
    unchanged: Since | None,
    facts: Collection[str] = (),
    derived_max: int | None = None,
    *,
    keeps_history: bool,
    bytes_max: int,
) -> Receipt:
    """Apply operations, each with the terms of its items; see `WriteStore.write`."""
    if released and released not in page.held:
        raise NotFound.quarantined(page.name, released)
    if (replayed := earlier(page, request)) is not None:
        if released:
            let_go(page, released)
        return replayed
    if bytes_max and page.book is not None and grows(operations):
        check_room(page.book.bytes, bytes_max)
    if unchanged is not None:
        revision = page.book.revision if page.book else 0
        check_unchanged(unchanged, revision, page.changes_since(unchanged.revision))
    plan = _Plan(page, by, operations, derived_max, keeps_history=keeps_history)
    steps = [plan.step(operation, its) for operation, its in zip(operations, terms, strict=True)]
    check_parents(operations, lambda ids: page.items)
    check_facts(facts, plan.derived)
    book = page.open(now_us())
    if released:
        let_go(page, released)
    receipt = Receipt(0)
    receipt.counts = [step(receipt) for step in steps]
    receipt.derived_counts = plan.derived_counts if plan.derived else []
    book.dimension, book.model = plan.rule.dimension, plan.rule.model
    return finish(page, request, receipt, state_key=_only_key(operations) if receipt.version else None)


def _only_key(operations: Sequence[Operation]) -> str | None:
    """Return the key of a write that saves one state and does nothing else."""
    match operations:
        case [SaveStates([write])]:
            return write.key
    return None


class _Plan:
    """Checks operations against a page as it is before the write."""

    def __init__(
        self,
        page: Page,
        by: Caller,
        operations: Sequence[Operation],
        derived_max: int | None,
        *,
        keeps_history: bool,
    ) -> None:
        self._derived_max = derived_max
        self._page, self._by = page, by
        self._keeps_history = keeps_history
        self.rule = VectorRule(page.book.dimension, page.book.model) if page.book else VectorRule(0, "")
        self.derived: list[tuple[str, ItemKind]] = []
        """The items that the operations remove as derived."""
        self.derived_counts: list[int] = []
        """How many of them each operation removes."""
        self._gone: set[int] = set()
        self._spared: set[int] = set()
        if removes_derived(operations):
            self._spared = self._positions(named_ids(operations)) | named_positions(operations)

    def step(self, operation: Operation, terms: Sequence[bytes]) -> Step:
        """Check an operation and return the step that makes its changes."""
        self.derived_counts.append(0)
        match operation:
            case AddItems():
                return self._add(operation, terms)
            case ReplaceItem():
                return self._replace(operation, terms[0])
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

    def _add(self, operation: AddItems, terms: Sequence[bytes]) -> Step:
        page, writes = self._page, operation.writes
        chosen = choose(
            page.name,
            writes,
            lambda write: page.items.get(write.item.id),
            operation.on_duplicate,
            self.rule,
        )

        def step(receipt: Receipt) -> int:
            for at, _, waits in chosen:
                put_item(page, writes[at], terms[at], waits, keeps_history=self._keeps_history)
                receipt.add(writes[at].item)
            receipt.skipped_count += len(writes) - len(chosen)
            return len(chosen)

        return step

    def _replace(self, operation: ReplaceItem, terms: bytes) -> Step:
        page, write = self._page, operation.write
        stored = item_to_replace(page.name, operation, page.items.get(write.item.id))
        waits = not write.keep_vector and self.rule.take(write)

        def step(receipt: Receipt) -> int:
            becomes = give_way(page, write, stored, self._keeps_history)
            put_version(page, write, terms, stored, waits, kept=becomes is Before.KEEP)
            receipt.add(write.item)
            return 1

        return step

    def _remove(self, operation: RemoveItem) -> Step:
        page, item_id = self._page, operation.item_id
        stored = item_to_remove(page.name, operation, page.items.get(item_id))
        return self._remove_all([] if stored is None else [item_id], derived=operation.derived)

    def _remove_all(self, item_ids: Sequence[str], *, derived: bool) -> Step:
        self._gone |= self._positions(item_ids)
        derived_ids = self._derived() if derived else []

        def step(receipt: Receipt) -> int:
            removed = self._removed(item_ids)
            receipt.removed_count += removed
            self._removed(derived_ids)
            return removed

        return step

    def _positions(self, item_ids: Iterable[str]) -> set[int]:
        return {stored.position for item_id in item_ids if (stored := self._page.items.get(item_id))}

    def _derived(self) -> list[str]:
        """Return the ids of what was made only from the items that go."""
        page, now = self._page, now_us()
        positions = page.links.derived(
            self._gone, self._spared, lambda place: (end := page.ends[place]) is None or end > now
        )
        self.derived_counts[-1] = len(positions)
        check_counts(self.derived_counts, self._derived_max)
        self._gone.update(positions)
        ids = [page.at[position] for position in positions]
        self.derived += [(item_id, ItemKind(self._known(item_id).kind)) for item_id in ids]
        return ids

    def _known(self, item_id: str) -> StoredItem:
        stored = self._page.items[item_id]
        assert stored is not None
        return stored

    def _removed(self, item_ids: Iterable[str]) -> int:
        removed = 0
        for item_id in item_ids:
            if (stored := self._page.items.get(item_id)) is not None:
                remove_item(self._page, item_id, stored, ChangeType.ITEM_DELETED)
                self._note_removal()
                removed += 1
        return removed

    def _remove_at(self, operation: RemoveAt) -> Step:
        page = self._page
        ids = [page.at[position] for position in sorted(operation.positions) if position in page.at]
        found = [stored for item_id in ids if (stored := page.items[item_id]) is not None]
        check_unwritten(operation, found, page.book.revision if page.book else 0)
        return self._remove_all(ids, derived=operation.derived)

    def _save(self, operation: SaveStates) -> Step:
        page = self._page
        chosen = choose_states(
            operation.writes, lambda write: page.states.get(write.key), operation.on_duplicate
        )

        def step(receipt: Receipt) -> int:
            entries = [put_state(page, write, keeps_history=self._keeps_history) for write in chosen]
            note_saved(receipt, entries)
            receipt.skipped_state_count += len(operation.writes) - len(chosen)
            return len(chosen)

        return step

    def _remove_state(self, operation: RemoveState) -> Step:
        page = self._page
        stored = state_to_remove(page.name, operation, page.states.get(operation.key))

        def step(receipt: Receipt) -> int:
            if stored is None:
                return 0
            remove_state(page, operation.key, stored, ChangeType.STATE_DELETED)
            self._note_removal()
            receipt.removed_state_count += 1
            return 1

        return step

    def _note_removal(self) -> None:
        self._page.note(deleted(self._by, now_us(), keeps_history=self._keeps_history))
