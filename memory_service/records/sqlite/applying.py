"""Applies the operations of a write to the database. Everything is checked before anything is changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property

from memory_service.data_model import ChangeType, ItemKind, Receipt, RequestKey, Since
from memory_service.errors import MemoryServiceError
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
from memory_service.records.rules.derivation import (
    check_counts,
    check_facts,
    check_parents,
    named_ids,
    named_positions,
)
from memory_service.records.rules.items import (
    check_unchanged,
    check_unwritten,
    choose,
    item_to_remove,
    item_to_replace,
)
from memory_service.records.rules.states import choose_states, note_saved, state_to_remove
from memory_service.records.rules.vectors import VectorRule
from memory_service.records.sqlite.connection import Connection, Row
from memory_service.records.sqlite.history import note_removal
from memory_service.records.sqlite.item_writes import (
    StoredItem,
    put_item,
    remove_item,
    remove_items,
    replace_item,
    stored_at,
    stored_item,
    stored_items,
)
from memory_service.records.sqlite.ledger import Book, Ledger, Outcome, earlier, finish
from memory_service.records.sqlite.parents import derived_keys, have_children, kinds_of
from memory_service.records.sqlite.quarantine_writes import check_held, let_go
from memory_service.records.sqlite.schema import POSITION_MAX, key_of
from memory_service.records.sqlite.state_writes import put_state, remove_state, stored_state
from memory_service.runtime.caller import Caller
from memory_service.runtime.clock import now_us

Step = Callable[[Book, Outcome], int]
"""Makes the changes of a checked operation, and returns how many items or states it wrote or removed."""


class ManyDerived(MemoryServiceError):
    """A write that was to be applied on the event loop would remove too much as derived."""

    def __init__(self) -> None:
        super().__init__("OVERLOADED", "much was derived from the items to delete")


def apply(
    db: Connection,
    ledger: Ledger,
    namespace: str,
    operations: Sequence[Operation],
    terms: Sequence[Sequence[bytes]],
    request: RequestKey | None,
    by: Caller,
    released: str = "",
    unchanged: Since | None = None,
    facts: Collection[str] = (),
    derived_max: int | None = None,
    inline_max: int | None = None,
) -> Outcome:
    """Apply operations, each with the terms of its items; see `WriteStore.write`.

    Raises ManyDerived if more than `inline_max` items would be removed as derived.
    """
    book = ledger.find(db, namespace)
    if released:
        check_held(db, book, namespace, released)
    if (replayed := earlier(db, book, request)) is not None:
        if released and book is not None:
            let_go(db, ledger, book, released)
        return replayed
    if unchanged is not None:
        check_unchanged_in(db, book, unchanged)
    plan = _Plan(db, ledger, namespace, book, by, operations, derived_max)
    steps = [plan.step(operation, its) for operation, its in zip(operations, terms, strict=True)]
    check_parents(operations, lambda ids: stored_items(db, book, ids))
    plan.check_derived(facts, inline_max)
    began = book is None
    book = ledger.find_or_begin(db, namespace)
    outcome = Outcome(Receipt(0), began=began)
    if released:
        let_go(db, ledger, book, released)
    outcome.receipt.counts = [step(book, outcome) for step in steps]
    outcome.receipt.derived_counts = plan.derived_counts if any(plan.derived_counts) else []
    book.dimension, book.model = plan.rule.dimension, plan.rule.model
    return finish(db, book, request, outcome)


class _Plan:
    """Checks operations against a namespace as it is before the write."""

    def __init__(
        self,
        db: Connection,
        ledger: Ledger,
        namespace: str,
        book: Book | None,
        by: Caller,
        operations: Sequence[Operation],
        derived_max: int | None,
    ) -> None:
        self._derived_max = derived_max
        self._db, self._ledger, self._by = db, ledger, by
        self._namespace, self._book = namespace, book
        self.rule = VectorRule(book.dimension, book.model) if book else VectorRule(0, "")
        self.derived_counts: list[int] = []
        """How many items each operation removes as derived."""
        self._derived: dict[str, StoredItem] = {}
        self._gone: set[int] = set()
        self._operations = operations

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
                found = stored_items(self._db, self._book, operation.item_ids)
                return self._remove_all(found, derived=operation.derived)
            case RemoveAt():
                return self._remove_at(operation)
            case SaveStates():
                return self._save(operation)
            case RemoveState():
                return self._remove_state(operation)

    def _add(self, operation: AddItems, terms: Sequence[bytes]) -> Step:
        db, ledger, book, writes = self._db, self._ledger, self._book, operation.writes
        chosen = choose(
            self._namespace,
            writes,
            lambda write: None if write.new_id else stored_item(db, book, write.item.id),
            operation.on_duplicate,
            self.rule,
        )
        repeated = len({writes[at].item.id for at, _, _ in chosen}) < len(chosen)

        def step(book: Book, outcome: Outcome) -> int:
            for at, present, waits in chosen:
                write = writes[at]
                # If the operation repeats its id, the item may exist by now.
                stored = stored_item(db, book, write.item.id) if repeated else present
                put_item(db, ledger, book, write, terms[at], stored, waits, outcome)
                outcome.receipt.add(write.item)
            outcome.receipt.skipped_count += len(writes) - len(chosen)
            return len(chosen)

        return step

    def _replace(self, operation: ReplaceItem, terms: bytes) -> Step:
        write = operation.write
        found = stored_item(self._db, self._book, write.item.id)
        stored = item_to_replace(self._namespace, operation, found)
        waits = not write.keep_vector and self.rule.take(write)

        def step(book: Book, outcome: Outcome) -> int:
            replace_item(self._db, self._ledger, book, write, terms, stored, waits, outcome)
            outcome.receipt.add(write.item)
            return 1

        return step

    def _remove(self, operation: RemoveItem) -> Step:
        item_id = operation.item_id
        stored = item_to_remove(self._namespace, operation, stored_item(self._db, self._book, item_id))
        derived = self._derived_from([] if stored is None else [stored.key], derived=operation.derived)

        def step(book: Book, outcome: Outcome) -> int:
            if stored is None:
                return 0
            position = remove_item(self._db, self._ledger, book, item_id, stored, ChangeType.ITEM_DELETED)
            note_removal(self._db, self._ledger, book, self._by)
            outcome.effect.removed.append(position)
            outcome.receipt.removed_count += 1
            outcome.effect.removed += remove_items(self._db, self._ledger, book, derived, self._by)
            return 1

        return step

    def _remove_all(self, found: Mapping[str, StoredItem], *, derived: bool) -> Step:
        also = self._derived_from([stored.key for stored in found.values()], derived=derived)

        def step(book: Book, outcome: Outcome) -> int:
            removed = remove_items(self._db, self._ledger, book, found, self._by)
            outcome.effect.removed += removed
            outcome.receipt.removed_count += len(removed)
            outcome.effect.removed += remove_items(self._db, self._ledger, book, also, self._by)
            return len(removed)

        return step

    def _derived_from(self, keys: Sequence[int], *, derived: bool) -> dict[str, StoredItem]:
        """Note that items go; return what goes with them."""
        self._gone.update(keys)
        if not derived or not keys:
            return {}
        if not have_children(self._db, self._gone):
            return {}
        going = derived_keys(self._db, self._gone, self._spared, now_us())
        self.derived_counts[-1] = len(going)
        check_counts(self.derived_counts, self._derived_max)
        self._gone.update(going)
        found = stored_at(self._db, self._book, [key & POSITION_MAX for key in going])
        self._derived |= found
        return found

    @cached_property
    def _spared(self) -> set[int]:
        """The keys of the items that the operations name, which do not go as derived."""
        assert self._book is not None
        named = stored_items(self._db, self._book, named_ids(self._operations)).values()
        positions = named_positions(self._operations)
        return {stored.key for stored in named} | {key_of(self._book.uid, place) for place in positions}

    def check_derived(self, facts: Collection[str], inline_max: int | None) -> None:
        """Check what goes as derived. Raises FactsDerived and ManyDerived."""
        if inline_max is not None and len(self._derived) > inline_max:
            raise ManyDerived
        if self._derived or facts:
            kinds = kinds_of(self._db, [stored.key for stored in self._derived.values()])
            check_facts(facts, ((item_id, kinds[of.key]) for item_id, of in self._derived.items()))

    def _remove_at(self, operation: RemoveAt) -> Step:
        found = stored_at(self._db, self._book, operation.positions)
        check_unwritten(operation, found.values(), self._book.revision if self._book else 0)
        return self._remove_all(found, derived=operation.derived)

    def _save(self, operation: SaveStates) -> Step:
        db, book = self._db, self._book

        chosen = choose_states(
            operation.writes, lambda write: stored_state(db, book, write.key), operation.on_duplicate
        )

        def step(book: Book, outcome: Outcome) -> int:
            entries = [
                put_state(db, self._ledger, book, write, stored_state(db, book, write.key))
                for write in chosen
            ]
            note_saved(outcome.receipt, entries)
            outcome.receipt.skipped_state_count += len(operation.writes) - len(chosen)
            return len(chosen)

        return step

    def _remove_state(self, operation: RemoveState) -> Step:
        key = operation.key
        stored = state_to_remove(self._namespace, operation, stored_state(self._db, self._book, key))

        def step(book: Book, outcome: Outcome) -> int:
            if stored is None:
                return 0
            remove_state(self._db, self._ledger, book, key, stored.version, ChangeType.STATE_DELETED)
            note_removal(self._db, self._ledger, book, self._by)
            outcome.receipt.removed_state_count += 1
            return 1

        return step


def check_unchanged_in(db: Connection, book: Book | None, since: Since) -> None:
    """Raise Conflict if what a precondition names has changed."""
    uid, revision = (book.uid, book.revision) if book else (0, 0)
    changes: list[Row] = []
    if revision > since.revision:
        changes = db.execute(
            "SELECT c.type, c.subject, i.id IS NOT NULL, i.facet ->> 'kind' FROM changes c"
            " LEFT JOIN items i ON i.uid = ? AND i.id = c.subject WHERE c.key BETWEEN ? AND ?",
            (uid, key_of(uid, since.revision + 1), key_of(uid, revision)),
        ).fetchall()
    check_unchanged(
        since,
        revision,
        (
            (ChangeType(c), subject, ItemKind(kind or 0) if there else None)
            for c, subject, there, kind in changes
        ),
    )
