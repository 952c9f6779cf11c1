"""Operations on files in a batch: checked, and turned into operations of the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memory_service.data_model import Json, OnDuplicate, RequestKey, Since
from memory_service.domain.checks import Checks
from memory_service.domain.file_edits import Edit, changed_field, check_edit
from memory_service.domain.file_lookup import Tree, tree_of
from memory_service.domain.file_paths import check_path, folders_of
from memory_service.domain.file_planning import (
    Expected,
    FilePlanning,
    FileRoom,
    Written,
    check_rename,
    moved_items,
)
from memory_service.domain.file_vacancy import unchanged_since
from memory_service.domain.item_writing import write_of
from memory_service.domain.items import Items
from memory_service.domain.screening import Screening
from memory_service.errors import InvalidArgument, MemoryServiceError, WriteRejected
from memory_service.operations import AddItems, Operation, RemoveAt, RemoveItems
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import each
from memory_service.store import Store


@dataclass(slots=True, frozen=True)
class WriteFile:
    """Create a file or replace its content."""

    path: str
    content: str
    expected: Expected


@dataclass(slots=True, frozen=True)
class EditFile:
    """Edit a file."""

    path: str
    edit: Edit
    expected: Expected


@dataclass(slots=True, frozen=True)
class RenameFile:
    """Rename a file or a folder."""

    path: str
    new_path: str
    expected: Expected


@dataclass(slots=True, frozen=True)
class DeleteFile:
    """Delete a file or a folder."""

    path: str
    recursive: bool
    expected: Expected


FileOperation = WriteFile | EditFile | RenameFile | DeleteFile


@dataclass(slots=True)
class PlannedFiles:
    """The store's operations for each operation, and the precondition of all of them."""

    applied: dict[str, list[Operation]] = field(default_factory=dict)
    unchanged: Since | None = None
    folders: list[Json] = field(default_factory=list)
    """Whether each rename is one of a folder."""


class FileBatches:
    """Plans operations on files."""

    def __init__(
        self, store: Store, items: Items, planning: FilePlanning, checks: Checks, screening: Screening
    ) -> None:
        self._store = store
        self._items = items
        self._planning = planning
        self._checks = checks
        self._screening = screening

    def check(self, name: str, operation: FileOperation) -> None:
        """Check the fields of an operation, named after `name`. Raises InvalidArgument and LimitExceeded."""
        check_path(self._checks, f"{name}.path", operation.path)
        operation.expected.check_fields(self._checks, f"{name}.")
        match operation:
            case WriteFile(_, content):
                self._checks.size(f"{name}.content", len(content.encode()), "file_bytes_max")
            case EditFile(_, edit):
                check_edit(edit, f"{name}.")
            case RenameFile(path, new_path):
                check_rename(self._checks, path, new_path, f"{name}.")

    def check_distinct(self, operations: Mapping[str, FileOperation]) -> None:
        """Reject operations of which one names a path, or a folder of a path, that another one names."""
        owners: dict[str, str] = {}
        for name, operation in operations.items():
            for path in _paths_of(operation):
                if owners.setdefault(path, name) != name:
                    raise InvalidArgument(f"{name}.path", "is named by another operation of the batch")
        for path, name in owners.items():
            if any(owners.get(folder, name) != name for folder in folders_of(path)):
                raise InvalidArgument(f"{name}.path", "is in a folder that another operation names")

    async def plan(
        self, namespace: str, operations: Mapping[str, FileOperation], room: int, request: RequestKey | None
    ) -> PlannedFiles:
        """Plan operations; they delete at most `room` items, and change files within the limits of one call.
        Raises the errors of the single calls.
        """
        planned = PlannedFiles()
        if not operations:
            return planned
        tree, changes = await tree_of(self._store, namespace), FileRoom(self._checks)
        for name, operation in operations.items():
            try:
                its = await self._applied(tree, name, operation, room, changes, planned, request)
            except MemoryServiceError as error:
                error.name_field(name)
                raise
            planned.applied[name] = its
            room -= sum(len(one.positions) for one in its if isinstance(one, RemoveAt))
        if any(isinstance(operation, WriteFile | RenameFile) for operation in operations.values()):
            planned.unchanged = unchanged_since(tree)
        return planned

    async def _applied(
        self,
        tree: Tree,
        name: str,
        operation: FileOperation,
        room: int,
        changes: FileRoom,
        planned: PlannedFiles,
        request: RequestKey | None,
    ) -> list[Operation]:
        prefix, planning = f"{name}.", self._planning
        match operation:
            case WriteFile(path, content, expected):
                written = await planning.write(tree, path, content, expected, prefix, changes)
                return await self._written(tree, written, f"{prefix}content", request)
            case EditFile(path, edit, expected):
                written = await planning.edit(tree, path, edit, expected, prefix, changes)
                return await self._written(tree, written, f"{prefix}{changed_field(edit)}", request)
            case RenameFile(path, new_path, expected):
                renamed = await planning.rename(tree, path, new_path, expected, prefix, changes)
                for item in moved_items(renamed):
                    if await self._screening.of_update(tree.namespace, item, request, f"{prefix}new_path"):
                        raise WriteRejected(f"{prefix}new_path", "a batch cannot wait for a review")
                planned.folders.append(renamed.is_folder)
                return [renamed.operation]
            case DeleteFile(path, recursive, expected):
                removed = await planning.delete(tree, path, expected, room, prefix, recursive=recursive)
                return [removed.files, removed.fragments]

    async def _written(
        self, tree: Tree, written: Written, name: str, request: RequestKey | None
    ) -> list[Operation]:
        drafts, now = written.file.drafts, now_us()
        fields = [name] * len(drafts)
        provenances = await self._items.attribution.of_drafts(tree.namespace, drafts, fields, request)
        reasons = await self._screening.of_drafts(tree.namespace, drafts, provenances, fields, (), request)
        for reason in reasons.values():
            raise WriteRejected(name, f"{reason}; a batch cannot wait for a review")
        writes = await each(
            lambda attributed: write_of(*attributed, now), zip(drafts, provenances, strict=True)
        )
        return [RemoveItems(written.file.removals), AddItems(writes, OnDuplicate.REPLACE)]


def steps_of(operation: object) -> int:
    """Return how many of the store's operations an operation of a batch becomes."""
    return 2 if isinstance(operation, WriteFile | EditFile | DeleteFile) else 1


def _paths_of(operation: FileOperation) -> list[str]:
    return [operation.path, *([operation.new_path] if isinstance(operation, RenameFile) else [])]
