"""The operations of `batch_write` and their results, as frozen dataclasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from memory_client.files import FileEdit
from memory_client.messages import Content
from memory_client.models import ItemKind, MemoryItem, OnDuplicate, Vector
from memory_client.unset import UNSET, Unset


@dataclass(frozen=True, slots=True)
class AddOperation:
    """Adds an item."""

    item: MemoryItem | Content
    """The item, or only its content. Its parents must exist or be added by an earlier operation."""
    on_duplicate: OnDuplicate | str = OnDuplicate.FAIL
    """What to do if the item's id exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateOperation:
    """Changes the given fields of an item, like `update`."""

    id: str
    content: Content | Unset = UNSET
    session_id: str | Unset = UNSET
    labels: Mapping[str, str] | Unset = UNSET
    metadata: Mapping[str, Any] | Unset = UNSET
    create_time: datetime | Unset = UNSET
    expire_time: datetime | Unset | None = UNSET
    """When the item expires. None: never."""
    ttl: timedelta | float | Unset = UNSET
    embedding: Vector | Unset = UNSET
    importance: float | Unset | None = UNSET
    """None: counts as 0.5."""
    index: str | Unset | None = UNSET
    """The text to search in place of the content; empty: none. None: the content."""
    expected_revision: int | None = None
    """Update only if this is the item's revision before the batch. None: unconditionally."""


@dataclass(frozen=True, slots=True)
class DeleteOperation:
    """Deletes an item."""

    id: str
    expected_revision: int | None = None
    """Delete only if this is the item's revision before the batch. None: unconditionally."""
    allow_missing: bool = False
    """Do nothing if there is no such item. False: the batch is rejected."""
    keep_derived: bool = False
    """Keep what was made only from it. False: delete it too, except items that another operation names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteWhereOperation:
    """Deletes the items that match all of its conditions, except those that another operation names.

    At least one condition is required. All these operations of a batch may match 10,000 items together.
    """

    session_id: str = ""
    """Only items of this conversation. Empty: of any."""
    labels: Mapping[str, str] | None = None
    """Only items that have all these labels."""
    kinds: Sequence[ItemKind | str] = ()
    """Only items of these kinds of a conversation. Empty: of all of those."""
    filter: str = ""
    """An expression over labels, metadata, role, kind and times, as in `retrieve`."""
    start_time: datetime | None = None
    """Only items whose create_time is at or after it."""
    end_time: datetime | None = None
    """Only items whose create_time is before it."""
    keep_derived: bool = False
    """Keep what was made only from these items. False: delete it too, except items that another operation
    names.
    """


@dataclass(frozen=True, slots=True)
class SaveStateOperation:
    """Writes a value under a key, like `save_state`."""

    key: str
    value: Any
    """Any JSON value."""
    expected_version: int | None = None
    """Write only if this is the key's version before the batch; 0: only if there is no such key."""
    ttl: timedelta | float | None = None
    """Time until the entry expires, a timedelta or seconds. None: never."""
    description: str | None = None
    """Purpose of the value. None: keep the current description."""


@dataclass(frozen=True, slots=True)
class DeleteStateOperation:
    """Deletes a state key."""

    key: str
    expected_version: int | None = None
    """Delete only if this is the key's version before the batch. None: unconditionally."""
    allow_missing: bool = False
    """Do nothing if there is no such key. False: the batch is rejected."""


@dataclass(frozen=True, slots=True)
class WriteFileOperation:
    """Creates a file or replaces its content, like `write_file`.

    Of the operations on files, none may name the path of another, nor a folder of it.
    """

    path: str
    content: str
    expected_version: int | None = None
    """Write only if this is the file's version before the batch; 0: only if there is no such file."""
    expected_sha256: str = ""
    """Write only if the content before the batch has this SHA-256, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class EditFileOperation:
    """Changes a part of a file, like `edit_file`."""

    path: str
    edit: FileEdit
    """`ReplaceText`, `InsertText` or `AppendText`."""
    expected_version: int | None = None
    """Edit only if this is the file's version before the batch."""
    expected_sha256: str = ""
    """Edit only if the content before the batch has this SHA-256, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class RenameFileOperation:
    """Moves a file, or a folder with everything below it, like `rename_file`."""

    path: str
    new_path: str
    expected_version: int | None = None
    """Rename only if this is the file's version before the batch."""


@dataclass(frozen=True, slots=True)
class DeleteFileOperation:
    """Removes a file or a folder, like `delete_file`."""

    path: str
    recursive: bool = False
    """Delete a folder with everything below it."""
    expected_version: int | None = None
    """Delete only if this is the file's version before the batch."""


WriteOperation: TypeAlias = (
    AddOperation
    | UpdateOperation
    | DeleteOperation
    | DeleteWhereOperation
    | SaveStateOperation
    | DeleteStateOperation
    | WriteFileOperation
    | EditFileOperation
    | RenameFileOperation
    | DeleteFileOperation
)
"""One operation of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """The result of one operation."""

    id: str = ""
    """Id of the item that was added or changed. Empty: none."""
    revision: int = 0
    """Revision at which the item or the state was written. 0: nothing was written."""
    version: int = 0
    """Version of the state that was saved, or of the file that was written or renamed. 0: none."""
    create_time: datetime | None = None
    """The create_time of what was written."""
    update_time: datetime | None = None
    """When it was written."""
    expire_time: datetime | None = None
    """When it expires. None: never, or nothing was written."""
    skipped: bool = False
    """Whether an item was not written because its id exists."""
    deleted_count: int = 0
    """Number of items, states or files that were deleted, without derived ones."""
    derived_count: int = 0
    """Number of other items that were deleted because they were made only from those."""
    renamed_count: int = 0
    """Number of files that were renamed."""
