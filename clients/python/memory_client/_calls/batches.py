"""The calls that write several items and states at once: BatchWrite and DeleteWhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from memory_client._arguments import converting
from memory_client._calls.call import Call, Page, request_id_or_new
from memory_client._calls.fields import kind_numbers, set_times, set_ttl
from memory_client._calls.files import set_edit
from memory_client._calls.memory import as_item, set_changes
from memory_client._gen.memory_service.v1 import memory_pb2
from memory_client.convert import degraded_to, new_item_from, on_duplicate_number, time_to
from memory_client.errors import invalid
from memory_client.found import Deleted, Found
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
    WriteResult,
)
from memory_client.values import value_from

_SERVICE = "/memory_service.v1.MemoryService/"
_SETTINGS = {"id", "expected_revision"}
"""Fields of an update that do not change the item."""


def delete_where(
    namespace: str, conditions: DeleteWhereOperation, dry_run: bool, request_id: str | None
) -> Call[Page[Deleted]]:
    """Call DeleteWhere for its first page; read the number of deleted items."""
    request = memory_pb2.DeleteWhereRequest(
        namespace=namespace, dry_run=dry_run, request_id=request_id_or_new(request_id)
    )
    _set_conditions(request, conditions)

    def read(response: memory_pb2.DeleteWhereResponse) -> Page[Deleted]:
        deleted = Deleted(response.deleted_count, response.derived_count)
        return Page([deleted], response.next_page_token, response)

    return Call(_SERVICE + "DeleteWhere", request, memory_pb2.DeleteWhereResponse, read)


def _set_conditions(message: Any, conditions: DeleteWhereOperation) -> None:
    message.session_id = conditions.session_id
    message.labels.update(conditions.labels or {})
    message.kinds.extend(kind_numbers(conditions.kinds))
    message.filter = conditions.filter
    set_times(message, start_time=conditions.start_time, end_time=conditions.end_time)
    message.keep_derived = conditions.keep_derived


def batch_write(
    namespace: str, operations: Iterable[WriteOperation], request_id: str | None
) -> Call[Found[WriteResult]]:
    """Call BatchWrite."""
    request = memory_pb2.BatchWriteRequest(namespace=namespace, request_id=request_id_or_new(request_id))
    for index, operation in enumerate(operations):
        _set_operation(request.operations.add(), operation, f"operations[{index}]")
    return Call(_SERVICE + "BatchWrite", request, memory_pb2.BatchWriteResponse, _results)


def _set_operation(message: memory_pb2.WriteOperation, operation: WriteOperation, where: str) -> None:
    if type(operation) not in _WRITERS:
        raise invalid(where, f"is a {type(operation).__name__}, not an operation")
    name, write = _WRITERS[type(operation)]
    target = getattr(message, name)
    target.SetInParent()
    with converting(operation, type(operation), f"{where}.{name}"):
        write(target, operation)


def _set_add(message: memory_pb2.AddOperation, operation: AddOperation) -> None:
    message.item.CopyFrom(new_item_from(as_item(operation.item)))
    message.on_duplicate = on_duplicate_number(operation.on_duplicate)


def _set_update(message: memory_pb2.UpdateOperation, operation: UpdateOperation) -> None:
    message.item.id = operation.id
    changes = {field.name: getattr(operation, field.name) for field in fields(operation)}
    set_changes(message, {name: value for name, value in changes.items() if name not in _SETTINGS})
    if operation.expected_revision is not None:
        message.expected_revision = operation.expected_revision


def _set_delete(message: memory_pb2.DeleteOperation, operation: DeleteOperation) -> None:
    message.id = operation.id
    message.allow_missing = operation.allow_missing
    message.keep_derived = operation.keep_derived
    if operation.expected_revision is not None:
        message.expected_revision = operation.expected_revision


def _set_delete_where(message: memory_pb2.DeleteWhereOperation, operation: DeleteWhereOperation) -> None:
    _set_conditions(message, operation)


def _set_save_state(message: memory_pb2.SaveStateOperation, operation: SaveStateOperation) -> None:
    message.key = operation.key
    message.value.CopyFrom(value_from(operation.value, "value"))
    set_ttl(message, operation.ttl)
    if operation.expected_version is not None:
        message.expected_version = operation.expected_version
    if operation.description is not None:
        message.description = operation.description


def _set_delete_state(message: memory_pb2.DeleteStateOperation, operation: DeleteStateOperation) -> None:
    message.key = operation.key
    message.allow_missing = operation.allow_missing
    if operation.expected_version is not None:
        message.expected_version = operation.expected_version


def _set_write_file(message: memory_pb2.WriteFileOperation, operation: WriteFileOperation) -> None:
    message.path, message.content = operation.path, operation.content
    _set_expected(message, operation)


def _set_edit_file(message: memory_pb2.EditFileOperation, operation: EditFileOperation) -> None:
    message.path = operation.path
    set_edit(message, operation.edit)
    _set_expected(message, operation)


def _set_expected(message: Any, operation: WriteFileOperation | EditFileOperation) -> None:
    message.expected_sha256 = operation.expected_sha256
    if operation.expected_version is not None:
        message.expected_version = operation.expected_version


def _set_rename_file(message: memory_pb2.RenameFileOperation, operation: RenameFileOperation) -> None:
    message.path, message.new_path = operation.path, operation.new_path
    if operation.expected_version is not None:
        message.expected_version = operation.expected_version


def _set_delete_file(message: memory_pb2.DeleteFileOperation, operation: DeleteFileOperation) -> None:
    message.path, message.recursive = operation.path, operation.recursive
    if operation.expected_version is not None:
        message.expected_version = operation.expected_version


_WRITERS: dict[type, tuple[str, Callable[[Any, Any], None]]] = {
    AddOperation: ("add", _set_add),
    UpdateOperation: ("update", _set_update),
    DeleteOperation: ("delete", _set_delete),
    DeleteWhereOperation: ("delete_where", _set_delete_where),
    SaveStateOperation: ("save_state", _set_save_state),
    DeleteStateOperation: ("delete_state", _set_delete_state),
    WriteFileOperation: ("write_file", _set_write_file),
    EditFileOperation: ("edit_file", _set_edit_file),
    RenameFileOperation: ("rename_file", _set_rename_file),
    DeleteFileOperation: ("delete_file", _set_delete_file),
}
"""The field of each operation, and what sets it."""


def _results(response: memory_pb2.BatchWriteResponse) -> Found[WriteResult]:
    results = [_result(result) for result in response.results]
    return Found(results, degraded=degraded_to(response.degraded), revision=response.revision)


def _result(result: memory_pb2.WriteResult) -> WriteResult:
    return WriteResult(
        id=result.id,
        revision=result.revision,
        version=result.version,
        create_time=time_to(result, "create_time"),
        update_time=time_to(result, "update_time"),
        expire_time=time_to(result, "expire_time"),
        skipped=result.skipped,
        deleted_count=result.deleted_count,
        derived_count=result.derived_count,
        renamed_count=result.renamed_count,
    )
