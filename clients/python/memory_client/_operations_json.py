"""Operations of a batch, read from their protobuf messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from memory_client._gen.memory_service.v1 import memory_pb2
from memory_client.convert import item_to, kind_to, time_to
from memory_client.files import AppendText, FileEdit, InsertText, ReplaceText
from memory_client.models import OnDuplicate
from memory_client.operations import (
    AddOperation,
    DeleteFileOperation,
    DeleteOperation,
    DeleteStateOperation,
    DeleteWhereOperation,
    EditFileOperation,
    RenameFileOperation,
    SaveStateOperation,
    UpdateOperation,
    WriteFileOperation,
    WriteOperation,
)
from memory_client.values import duration_to, value_to

_CHANGES = {field.name for field in fields(UpdateOperation)} - {"id", "expected_revision"}
_CONTENTS = {"text", "data", "chat_message", "tool_call_result"}


def operation_to(message: memory_pb2.WriteOperation) -> WriteOperation:
    """Return the operation of a message.

    Raises:
        ValueError: It has none, a required field is unset, or an update changes a field that cannot change.
    """
    kind = message.WhichOneof("operation")
    if kind is None:
        raise ValueError(f"no operation: one of {', '.join(_READERS)}")
    return _READERS[kind](getattr(message, kind))


def _required(message: Any, kind: str, field: str) -> Any:
    if not message.HasField(field):
        raise ValueError(f"{kind}.{field} is required")
    return getattr(message, field)


def _optional(message: Any, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None


def _add(message: memory_pb2.AddOperation) -> AddOperation:
    item = item_to(_required(message, "add", "item"))
    number = message.on_duplicate
    if number == memory_pb2.ON_DUPLICATE_UNSPECIFIED:
        return AddOperation(item)
    try:
        name = memory_pb2.OnDuplicate.Name(number)
    except ValueError:
        raise ValueError(f"add.on_duplicate has no value {number}") from None
    return AddOperation(item, OnDuplicate(name.removeprefix("ON_DUPLICATE_").lower()))


def _update(message: memory_pb2.UpdateOperation) -> UpdateOperation:
    item = _required(message, "update", "item")
    paths = list(message.update_mask.paths) or [field.name for field, _ in item.ListFields()]
    names = {"content" if path in _CONTENTS else path for path in paths} - {"id"}
    if names == {"*"}:
        names = _CHANGES - {"expire_time" if item.HasField("ttl") else "ttl"}
    if unknown := names - _CHANGES:
        raise ValueError(f"update cannot change {min(unknown)}")
    values = item_to(item)
    changes: dict[str, Any] = {name: getattr(values, name) for name in names}
    return UpdateOperation(id=item.id, expected_revision=_optional(message, "expected_revision"), **changes)


def _delete(message: memory_pb2.DeleteOperation) -> DeleteOperation:
    return DeleteOperation(
        message.id, _optional(message, "expected_revision"), message.allow_missing, message.keep_derived
    )


def _delete_where(message: memory_pb2.DeleteWhereOperation) -> DeleteWhereOperation:
    return DeleteWhereOperation(
        session_id=message.session_id,
        labels=dict(message.labels),
        kinds=[kind_to(kind) for kind in message.kinds],
        filter=message.filter,
        start_time=time_to(message, "start_time"),
        end_time=time_to(message, "end_time"),
        keep_derived=message.keep_derived,
    )


def _save_state(message: memory_pb2.SaveStateOperation) -> SaveStateOperation:
    return SaveStateOperation(
        message.key,
        value_to(_required(message, "save_state", "value")),
        _optional(message, "expected_version"),
        duration_to(message.ttl) if message.HasField("ttl") else None,
        _optional(message, "description"),
    )


def _delete_state(message: memory_pb2.DeleteStateOperation) -> DeleteStateOperation:
    return DeleteStateOperation(message.key, _optional(message, "expected_version"), message.allow_missing)


def _write_file(message: memory_pb2.WriteFileOperation) -> WriteFileOperation:
    version = _optional(message, "expected_version")
    return WriteFileOperation(message.path, message.content, version, message.expected_sha256)


def _edit_file(message: memory_pb2.EditFileOperation) -> EditFileOperation:
    version = _optional(message, "expected_version")
    return EditFileOperation(message.path, _edit_of(message), version, message.expected_sha256)


def _edit_of(message: memory_pb2.EditFileOperation) -> FileEdit:
    match message.WhichOneof("edit"):
        case "replace":
            return ReplaceText(message.replace.old_text, message.replace.new_text)
        case "insert":
            return InsertText(message.insert.after_line, message.insert.text)
        case "append":
            return AppendText(message.append.text)
    raise ValueError("edit_file has no edit: one of replace, insert, append")


def _rename_file(message: memory_pb2.RenameFileOperation) -> RenameFileOperation:
    return RenameFileOperation(message.path, message.new_path, _optional(message, "expected_version"))


def _delete_file(message: memory_pb2.DeleteFileOperation) -> DeleteFileOperation:
    return DeleteFileOperation(message.path, message.recursive, _optional(message, "expected_version"))


_READERS: dict[str, Callable[[Any], WriteOperation]] = {
    "add": _add,
    "update": _update,
    "delete": _delete,
    "delete_where": _delete_where,
    "save_state": _save_state,
    "delete_state": _delete_state,
    "write_file": _write_file,
    "edit_file": _edit_file,
    "rename_file": _rename_file,
    "delete_file": _delete_file,
}
