"""Batches: operations on items and states that are applied atomically."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

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
from memory_service.domain.file_batches import (
    DeleteFile,
    EditFile,
    FileBatches,
    FileOperation,
    PlannedFiles,
    RenameFile,
    WriteFile,
    steps_of,
)
from memory_service.domain.item_writing import changed_item, degraded_then, write_of
from memory_service.domain.items import Items, check_own
from memory_service.domain.provenance import attribute_states
from memory_service.domain.retrieve_options import Selection
from memory_service.domain.screening import Screening
from memory_service.errors import (
    Conflict,
    InvalidArgument,
    MemoryServiceError,
    NotFound,
    WriteRejected,
)
from memory_service.operations import (
    AddItems,
    Operation,
    RemoveAt,
    RemoveItem,
    RemoveState,
    ReplaceItem,
    SaveStates,
)
from memory_service.records.base import TooManyDerived
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
    keep_derived: bool = False


@dataclass(slots=True, frozen=True)
class DeleteWhere:
    """Delete the items that match, except those that another operation names."""

    selection: Selection
    keep_derived: bool = False


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


BatchOperation = Add | Update | Delete | DeleteWhere | SaveState | DeleteState | FileOperation


@dataclass(slots=True)
class BatchResult:
    """What one operation did: the stamp of what it wrote, or the number of entries that it deleted."""

    item: ItemStamp | None = None
    state: StateStamp | None = None
    file: ItemStamp | None = None
    renamed_count: int = 0
    skipped: str = ""
    """The id of an item that was skipped because it exists."""
    deleted_count: int = 0
    derived_count: int = 0


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
        files: FileBatches,
    ) -> None:
        self._store = store
        self._items = items
        self._deleting = deleting
        self._checks = checks
        self._screening = screening
        self._files = files

    def check_size(self, operations: int) -> None:
        """Reject a batch of too many operations before they are converted."""
        self._checks.size("operations", operations, "batch_items_max")

    async def write(
        self, namespace: str, operations: Mapping[str, BatchOperation], request: RequestKey | None
    ) -> BatchWritten:
        """Apply operations, all or none, in order. They are given by the name that each has in errors."""
        self._checks.namespace(namespace)
        if request is not None:
            self._checks.request_id(request.id)
        await each(lambda named: self._check(*named), operations.items())
        _check_distinct(operations)
        self._files.check_distinct(_of_files(operations))
        if (earlier := await self._earlier(namespace, operations, request)) is not None:
            return earlier
        for attempt in range(TRIES):
            try:
                return await self._write_once(namespace, operations, request)
            except MemoryServiceError as error:
                # The same request may have been applied in the meantime, and be the reason.
                if (earlier := await self._earlier(namespace, operations, request)) is not None:
                    return earlier
                if not isinstance(error, Conflict) or _is_required(error, operations.values()):
                    _name_operation(error, operations)
                    raise
                lost = error
            await pause_after(attempt)
        raise lost

    async def _earlier(
        self, namespace: str, operations: Mapping[str, BatchOperation], request: RequestKey | None
    ) -> BatchWritten | None:
        """Return the results of a request that was already applied."""
        receipt = None if request is None else await self._store.find_receipt(namespace, request)
        return None if receipt is None else _written(operations.values(), receipt, degraded_then(receipt))

    def _check(self, name: str, operation: BatchOperation) -> None:
        match operation:
            case Add(draft):
                self._checks.new_draft(f"{name}.item", draft, now_us())
            case Update(draft, fields):
                self._checks.item_id(draft.id, f"{name}.item.id")
                self._items.check_changes(draft, fields, f"{name}.")
            case Delete(item_id):
                self._checks.item_id(item_id, f"{name}.id")
            case DeleteWhere(selection):
                self._deleting.check(selection, f"{name}.")
            case DeleteState(key):
                self._checks.state_key(key, f"{name}.key")
            case WriteFile() | EditFile() | RenameFile() | DeleteFile():
                self._files.check(name, operation)

    async def _write_once(
        self, namespace: str, operations: Mapping[str, BatchOperation], request: RequestKey | None
    ) -> BatchWritten:
        plan = await self._plan(namespace, operations)
        applied = await self._added(namespace, operations, plan.now, request)
        applied |= await self._changed(namespace, operations, plan, request)
        applied |= await self._deleted(namespace, operations, plan)
        files = await self._planned_files(namespace, operations, applied.values(), request)
        planned = {name: files.applied.get(name) or [applied[name]] for name in operations}
        steps = [step for its in planned.values() for step in its]
        await self._items.check_room(namespace, plan.growth(steps), request)

        def note(receipt: Receipt, _: list[Degradation]) -> None:
            receipt.note = files.folders

        try:
            receipt, degraded = await self._items.committing.commit(
                namespace, steps, request=request, unchanged=files.unchanged, note=note
            )
        except TooManyDerived as error:
            named = [name for name, its in planned.items() for _ in its]
            raise error.of(f"{named[error.operation]}.") from None
        if receipt.replayed:
            degraded = degraded_then(receipt)
        else:
            receipt.note = files.folders
        return _written(operations.values(), receipt, degraded)

    async def _planned_files(
        self,
        namespace: str,
        operations: Mapping[str, BatchOperation],
        applied: Iterable[Operation],
        request: RequestKey | None,
    ) -> PlannedFiles:
        """Return what the operations on files become."""
        removed = sum(len(one.positions) for one in applied if isinstance(one, RemoveAt))
        room = self._checks.limits.delete_items_max - removed
        return await self._files.plan(namespace, _of_files(operations), room, request)

    async def _plan(self, namespace: str, operations: Mapping[str, BatchOperation]) -> _Plan:
        """Look up the items that operations name. Raises NotFound and InvalidArgument."""
        named = [item_id for operation in operations.values() if (item_id := _item_of(operation))]
        found = await self._store.get_items(namespace, named) if named else {}
        now = now_us()
        plan = _Plan(now, {item_id: item for item_id, item in found.items() if not item.expired(now)})
        for name, operation in operations.items():
            plan.check(namespace, operation, name)
        return plan

    async def _added(
        self,
        namespace: str,
        operations: Mapping[str, BatchOperation],
        now: int,
        request: RequestKey | None,
    ) -> dict[str, Operation]:
        """Return the store's operations that add items. Raises WriteRejected and InvalidArgument."""
        adds = {name: operation for name, operation in operations.items() if isinstance(operation, Add)}
        drafts, fields = [add.draft for add in adds.values()], [f"{name}.item" for name in adds]
        await self._items.check_dimensions(namespace, drafts, fields)
        provenances = await self._items.attribution.of_drafts(namespace, drafts, fields, request)
        reasons = await self._screening.of_drafts(namespace, drafts, provenances, fields, (), request)
        for at, reason in reasons.items():
            raise _needs_review(fields[at], reason)
        writes = await each(
            lambda attributed: write_of(*attributed, now), zip(drafts, provenances, strict=True)
        )
        return {
            name: AddItems([write], add.on_duplicate)
            for (name, add), write in zip(adds.items(), writes, strict=True)
        }

    async def _changed(
        self,
        namespace: str,
        operations: Mapping[str, BatchOperation],
        plan: _Plan,
        request: RequestKey | None,
    ) -> dict[str, Operation]:
        """Return the store's operations that change items or save states. Raises WriteRejected."""
        applied: dict[str, Operation] = {}
        for name, operation in operations.items():
            if isinstance(operation, Update):
                (applied[name],) = replaced = await each(plan.update, [operation])
                item = replaced[0].write.item
                reason = await self._screening.of_update(namespace, item, request, f"{name}.item")
                if reason:
                    raise _needs_review(f"{name}.item", reason)
            elif isinstance(operation, SaveState):
                attribute_states([operation.write])
                await self._screening.of_state(namespace, operation.write, request, f"{name}.value")
                applied[name] = SaveStates([operation.write])
        return applied

    async def _deleted(
        self, namespace: str, operations: Mapping[str, BatchOperation], plan: _Plan
    ) -> dict[str, Operation]:
        """Return the store's operations that remove items and states. Raises LimitExceeded."""
        applied: dict[str, Operation] = {}
        room = self._checks.limits.delete_items_max
        spared = {item.position for item in plan.current.values()}
        for name, operation in operations.items():
            match operation:
                case Delete(item_id, expected, allow_missing, keep):
                    applied[name] = RemoveItem(item_id, plan.now, expected, allow_missing, not keep)
                case DeleteWhere(selection, keep):
                    removal = await self._deleting.find(
                        namespace, selection, room, spared, name, derived=not keep
                    )
                    # What one operation removes, no later one does.
                    spared.update(removal.positions)
                    room -= len(removal.positions)
                    applied[name] = removal
                case DeleteState(key, expected, allow_missing):
                    applied[name] = RemoveState(key, plan.now, expected, allow_missing)
        return applied


@dataclass(slots=True)
class _Plan:
    """Operations against the items that they name, as those are before the batch."""

    now: int
    current: dict[str, Item]

    def check(self, namespace: str, operation: BatchOperation, name: str) -> None:
        """Check that an item may be changed. Raises NotFound and InvalidArgument."""
        item = self.current.get(_item_of(operation))
        match operation:
            case Update(draft) if item is None:
                raise NotFound.item(namespace, draft.id)
            case Add(_, OnDuplicate.REPLACE) | Update() if item is not None:
                check_own(item, f"{name}.item.id")
            case Delete() if item is not None:
                check_own(item, f"{name}.id")

    def growth(self, applied: Iterable[Operation]) -> int:
        """Return how many more items there will be at most; those that may replace others count."""
        growth = 0
        for operation in applied:
            match operation:
                case AddItems(writes):
                    growth += len(writes)
                case RemoveItem(item_id):
                    growth -= item_id in self.current
                case RemoveAt(positions):
                    growth -= len(positions)
        return growth

    def update(self, operation: Update) -> ReplaceItem:
        """Return the operation for a checked update; it fails if the item has changed since."""
        current, expected = self.current[operation.draft.id], operation.expected_revision
        write = changed_item(current, operation.draft, operation.fields, self.now)
        return ReplaceItem(write, current.revision if expected is None else expected)


def _item_of(operation: BatchOperation) -> str:
    """Return the id of the item that an operation names; empty if it names none."""
    match operation:
        case Add(draft) | Update(draft):
            return draft.id
        case Delete(item_id):
            return item_id
    return ""


def _is_required(conflict: Conflict, operations: Iterable[BatchOperation]) -> bool:
    """Return whether a conflict is one of a precondition of the caller, so that no further try helps."""
    if conflict.metadata.keys() & {"key", "path"}:
        return True
    item_id = conflict.metadata.get("id")
    return any(
        isinstance(operation, Update | Delete)
        and operation.expected_revision is not None
        and _item_of(operation) == item_id
        for operation in operations
    )


def _name_operation(error: MemoryServiceError, operations: Mapping[str, BatchOperation]) -> None:
    """Name the operation that an error is about as its field."""
    item_id, key = error.metadata.get("id"), error.metadata.get("key")
    for name, operation in operations.items():
        match operation:
            case SaveState(write):
                concerned = write.key == key
            case DeleteState(named):
                concerned = named == key
            case _:
                concerned = item_id is not None and _item_of(operation) == item_id
        if concerned:
            error.name_field(name)


def _check_distinct(operations: Mapping[str, BatchOperation]) -> None:
    """Reject a batch in which two operations name the same item or state."""
    seen: set[tuple[bool, str]] = set()
    for name, operation in operations.items():
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


def _of_files(operations: Mapping[str, BatchOperation]) -> dict[str, FileOperation]:
    return {name: one for name, one in operations.items() if isinstance(one, FileOperation)}


def _needs_review(field: str, reason: str) -> WriteRejected:
    return WriteRejected(field, f"{reason}; a batch cannot wait for a review")


def _derived_in(receipt: Receipt) -> Sequence[int]:
    return receipt.derived_counts or [0] * len(receipt.counts)


def _written(
    operations: Iterable[BatchOperation], receipt: Receipt, degraded: list[Degradation]
) -> BatchWritten:
    """Return the results of operations from their receipt."""
    items, states, folders = iter(receipt.items), iter(receipt.states), iter(receipt.note)
    results = []
    # The write may have had another operation at the end, for facts that referred to those that go.
    places = iter(zip(receipt.counts, _derived_in(receipt), strict=False))
    for operation in operations:
        counts = list(islice(places, steps_of(operation)))
        count, derived = counts[0]
        match operation:
            case Add(draft):
                result = BatchResult(item=next(items)) if count else BatchResult(skipped=draft.id)
            case Update():
                result = BatchResult(item=next(items))
            case SaveState():
                result = BatchResult(state=next(states))
            case WriteFile() | EditFile():
                # After the removal of fragments: the file, then its new fragments.
                written = list(islice(items, counts[1][0]))
                result = BatchResult(file=written[0])
            case RenameFile():
                renamed = list(islice(items, count))
                result = BatchResult(file=None if next(folders) else renamed[0], renamed_count=count)
            case _:
                result = BatchResult(deleted_count=count, derived_count=derived)
        results.append(result)
    return BatchWritten(results, receipt.revision, degraded)
