"""Batches: operations on items and states that are applied atomically."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from memory_service.data_model import (
    Item,
    ItemDraft,
    ItemStamp,
    OnDuplicate,
    Receipt,
    RequestKey,
    StateStamp,
    StateWrite,
)
from memory_service.domain.checks import Checks
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.deleting import Deleting
from memory_service.domain.embedding import Degradation
from memory_service.domain.item_writing import changed_item, degraded_then, write_of
from memory_service.domain.items import Items, check_own
from memory_service.domain.provenance import attribute_states
from memory_service.domain.retrieval import Selection
from memory_service.domain.screening import Screening
from memory_service.errors import (
    Conflict,
    InvalidArgument,
    MemoryServiceError,
    NotFound,
    WriteRejected,
)
from memory_service.operations import AddItems, Operation, RemoveItem, RemoveState, ReplaceItem, SaveStates
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import each
from memory_service.store import Store


@dataclass(slots=True, frozen=True)
class Add:
    """Add an item."""

    draft: ItemDraft
    on_duplicate: OnDuplicate = OnDuplicate.FAIL


@dataclass(slots=True, frozen=True)
class Update:
    """Change fields of an item."""

    draft: ItemDraft
    fields: frozenset[str]
    expected_revision: int | None = None


@dataclass(slots=True, frozen=True)
class Delete:
    """Delete an item."""

    item_id: str
    expected_revision: int | None = None
    allow_missing: bool = False


@dataclass(slots=True, frozen=True)
class DeleteWhere:
    """Delete the items that match, except those that another operation names."""

    selection: Selection


@dataclass(slots=True, frozen=True)
class SaveState:
    """Save a state."""

    write: StateWrite


@dataclass(slots=True, frozen=True)
class DeleteState:
    """Delete a state."""

    key: str
    expected_version: int | None = None
    allow_missing: bool = False


BatchOperation = Add | Update | Delete | DeleteWhere | SaveState | DeleteState


@dataclass(slots=True)
class BatchResult:
    """What one operation did: the stamp of what it wrote, or the number of entries that it deleted."""

    item: ItemStamp | None = None
    state: StateStamp | None = None
    skipped: str = ""
    """The id of an item that was skipped because it exists."""
    deleted_count: int = 0


@dataclass(slots=True)
class BatchWritten:
    """The results of all operations of a batch."""

    results: list[BatchResult]
    revision: int
    degraded: list[Degradation] = field(default_factory=list)


class Batches:
    """Applies batches."""

    def __init__(
        self,
        store: Store,
        items: Items,
        deleting: Deleting,
        checks: Checks,
        screening: Screening,
    ) -> None:
        self._store = store
        self._items = items
        self._deleting = deleting
        self._checks = checks
        self._screening = screening

    def check_size(self, operations: int) -> None:
        """Reject a batch of too many operations before they are converted."""
        self._checks.size("operations", operations, "batch_items_max")

    async def write(
        self, namespace: str, operations: Sequence[BatchOperation], fields: Sequence[str],
        request: RequestKey | None,
    ) -> BatchWritten:  # fmt: skip
        """Apply operations, all or none. `fields` names each of them in errors."""
        self._checks.namespace(namespace)
        if request is not None:
            self._checks.request_id(request.id)
        await each(lambda named: self._check(*named), zip(operations, fields, strict=True))
        _check_distinct(operations, fields)
        if (receipt := await self._applied(namespace, request)) is not None:
            return _written(operations, receipt, degraded_then(receipt))
        for attempt in range(TRIES):
            try:
                return await self._write_once(namespace, operations, fields, request)
            except MemoryServiceError as error:
                # The same request may have been applied in the meantime, and be the reason.
                if (receipt := await self._applied(namespace, request)) is not None:
                    return _written(operations, receipt, degraded_then(receipt))
                if not isinstance(error, Conflict) or _is_required(error, operations):
                    raise
                lost = error
            await pause_after(attempt)
        raise lost

    async def _applied(self, namespace: str, request: RequestKey | None) -> Receipt | None:
        return None if request is None else await self._store.find_receipt(namespace, request)

    def _check(self, operation: BatchOperation, name: str) -> None:
        match operation:
            case Add(draft):
                self._checks.draft(f"{name}.item", draft, now_us())
            case Update(draft, fields):
                self._checks.item_id(draft.id, f"{name}.item.id")
                self._items.check_changes(draft, fields, f"{name}.")
            case Delete(item_id):
                self._checks.item_id(item_id, f"{name}.id")
            case DeleteWhere(selection):
                self._deleting.check(selection, f"{name}.")
            case DeleteState(key):
                self._checks.state_key(key, f"{name}.key")

    async def _write_once(
        self,
        namespace: str,
        operations: Sequence[BatchOperation],
        fields: Sequence[str],
        request: RequestKey | None,
    ) -> BatchWritten:
        named = [item_id for operation in operations if (item_id := _item_of(operation))]
        current = await self._store.get_items(namespace, named) if named else {}
        now = now_us()
        current = {key: item for key, item in current.items() if not item.expired(now)}
        plan = _Plan(now, current)
        for operation, name in zip(operations, fields, strict=True):
            plan.check(namespace, operation, name)
        applied = await self._added(namespace, operations, fields, plan, request)
        states = [operation.write for operation in operations if isinstance(operation, SaveState)]
        attribute_states(states)
        for operation, name in zip(operations, fields, strict=True):
            await self._screen(namespace, operation, applied.get(name), name, request)
        room = self._checks.limits.delete_items_max
        spared = {item.position for item in current.values()}
        for operation, name in zip(operations, fields, strict=True):
            if isinstance(operation, DeleteWhere):
                removal = await self._deleting.find(namespace, operation.selection, room, spared)
                room -= len(removal.positions)
                applied[name] = removal
        deleted = sum(isinstance(operation, Delete) for operation in operations)
        added = sum(isinstance(operation, Add) for operation in operations)
        await self._items.check_room(namespace, added - deleted, request)
        receipt, degraded = await self._items.committing.commit(
            namespace, [applied[name] for name in fields], request=request
        )
        return _written(operations, receipt, degraded_then(receipt) if receipt.replayed else degraded)

    async def _added(
        self,
        namespace: str,
        operations: Sequence[BatchOperation],
        fields: Sequence[str],
        plan: _Plan,
        request: RequestKey | None,
    ) -> dict[str, Operation]:
        """Return the operation of the store for each operation but those that delete by conditions."""
        adds = [
            (operation, f"{name}.item")
            for operation, name in zip(operations, fields, strict=True)
            if isinstance(operation, Add)
        ]
        drafts, names = [add.draft for add, _ in adds], [name for _, name in adds]
        await self._items.check_dimensions(namespace, drafts, names)
        provenances = await self._items.attribution.of_drafts(namespace, drafts, names, request)
        reasons = await self._screening.of_drafts(namespace, drafts, provenances, names, (), request)
        for at, reason in reasons.items():
            raise WriteRejected(names[at], f"{reason}; a batch cannot wait for a review")
        waiting = iter(provenances)
        applied: dict[str, Operation] = {}
        for operation, name in zip(operations, fields, strict=True):
            match operation:
                case Add(draft, on_duplicate):
                    write = write_of(draft, next(waiting), plan.now)
                    applied[name] = AddItems([write], on_duplicate)
                case Update():
                    applied[name] = plan.update(operation)
                case Delete(item_id, expected, allow_missing):
                    applied[name] = RemoveItem(item_id, plan.now, expected, allow_missing)
                case SaveState(write):
                    applied[name] = SaveStates([write])
                case DeleteState(key, expected, allow_missing):
                    applied[name] = RemoveState(key, plan.now, expected, allow_missing)
        return applied

    async def _screen(
        self,
        namespace: str,
        operation: BatchOperation,
        applied: Operation | None,
        name: str,
        request: RequestKey | None,
    ) -> None:
        """Ask the write policy for an update or a state. Raises WriteRejected."""
        if isinstance(operation, SaveState):
            await self._screening.of_state(namespace, operation.write, request, f"{name}.value")
        elif isinstance(applied, ReplaceItem):
            reason = await self._screening.of_update(namespace, applied.write.item, request, f"{name}.item")
            if reason:
                raise WriteRejected(f"{name}.item", f"{reason}; a batch cannot wait for a review")


@dataclass(slots=True)
class _Plan:
    """Operations against the items that they name, as those are before the batch."""

    now: int
    current: dict[str, Item]

    def check(self, namespace: str, operation: BatchOperation, name: str) -> None:
        """Check that the item of an operation is as it has to be. Raises NotFound and Conflict."""
        item_id = _item_of(operation)
        item = self.current.get(item_id)
        match operation:
            case Add(_, on_duplicate):
                if item is not None and on_duplicate is OnDuplicate.REPLACE:
                    check_own(item, f"{name}.item.id")
                return
            case Update(_, _, expected):
                field_name, allow_missing = f"{name}.item.id", False
            case Delete(_, expected, allow_missing):
                field_name = f"{name}.id"
            case _:
                return
        if item is None and not allow_missing:
            raise NotFound.item(namespace, item_id)
        if item is not None:
            check_own(item, field_name)
        revision = 0 if item is None else item.revision
        if expected is not None and expected != revision:
            raise Conflict.revision(item_id, expected, revision)

    def update(self, operation: Update) -> ReplaceItem:
        """Return the operation for a checked update; it fails if the item has changed since."""
        current = self.current[operation.draft.id]
        write = changed_item(current, operation.draft, operation.fields, self.now)
        return ReplaceItem(write, current.revision)


def _item_of(operation: BatchOperation) -> str:
    """Return the id of the item that an operation names; empty if it names none."""
    match operation:
        case Add(draft) | Update(draft):
            return draft.id
        case Delete(item_id):
            return item_id
    return ""


def _is_required(conflict: Conflict, operations: Sequence[BatchOperation]) -> bool:
    """Return whether a conflict is one of a precondition of the caller, so that no further try helps."""
    if "key" in conflict.metadata:
        return True
    item_id = conflict.metadata.get("id")
    return any(
        isinstance(operation, Update | Delete)
        and operation.expected_revision is not None
        and _item_of(operation) == item_id
        for operation in operations
    )


def _check_distinct(operations: Sequence[BatchOperation], fields: Sequence[str]) -> None:
    """Reject a batch in which two operations name the same item or state."""
    seen: set[tuple[bool, str]] = set()
    for operation, name in zip(operations, fields, strict=True):
        match operation:
            case SaveState(write):
                subject, where = (True, write.key), f"{name}.key"
            case DeleteState(key):
                subject, where = (True, key), f"{name}.key"
            case Delete(item_id):
                subject, where = (False, item_id), f"{name}.id"
            case _:
                subject, where = (False, _item_of(operation)), f"{name}.item.id"
        if subject[1] and subject in seen:
            raise InvalidArgument(where, "is named by another operation of the batch")
        seen.add(subject)


def _written(
    operations: Sequence[BatchOperation], receipt: Receipt, degraded: list[Degradation]
) -> BatchWritten:
    """Return the results of operations from their receipt."""
    items, states = iter(receipt.items), iter(receipt.states)
    results = []
    for operation, count in zip(operations, receipt.counts, strict=True):
        match operation:
            case Add(draft):
                result = BatchResult(item=next(items)) if count else BatchResult(skipped=draft.id)
            case Update():
                result = BatchResult(item=next(items))
            case SaveState():
                result = BatchResult(state=next(states))
            case _:
                result = BatchResult(deleted_count=count)
        results.append(result)
    return BatchWritten(results, receipt.revision, degraded)
