"""Conversion of batches to the domain, and of their results to protobuf."""

from __future__ import annotations

from memory_service.domain.batches import (
    Add,
    BatchOperation,
    BatchResult,
    Delete,
    DeleteState,
    DeleteWhere,
    SaveState,
    Update,
)
from memory_service.domain.file_batches import DeleteFile, EditFile, RenameFile, WriteFile
from memory_service.domain.file_planning import Expected
from memory_service.domain.states import States
from memory_service.errors import InvalidArgument
from memory_service.server.file_servicer import to_edit, to_expected
from memory_service.server.items import to_draft
from memory_service.server.requests import optional
from memory_service.server.selections import to_on_duplicate, to_selection, update_fields
from memory_service.server.values import fill_time, to_json, ttl_us
from memory_service.v1 import memory_pb2 as pb


async def to_operation(name: str, message: pb.WriteOperation, states: States) -> BatchOperation:
    """Return an operation of a batch. Raises InvalidArgument for a field, named after `name`."""
    match message.WhichOneof("operation"):
        case "add":
            duplicate = to_on_duplicate(f"{name}.on_duplicate", message.add.on_duplicate)
            return Add(to_draft(f"{name}.item", _item_of(name, message.add)), duplicate)
        case "update":
            item = _item_of(name, message.update)
            return Update(
                to_draft(f"{name}.item", item),
                update_fields(f"{name}.", message.update),
                optional(message.update, "expected_revision"),
            )
        case "delete":
            delete = message.delete
            return Delete(
                delete.id,
                optional(delete, "expected_revision"),
                delete.allow_missing,
                delete.keep_derived,
            )
        case "delete_where":
            selection = to_selection(message.delete_where, f"{name}.")
            return DeleteWhere(selection, message.delete_where.keep_derived)
        case "save_state":
            return await _to_save(f"{name}.", message.save_state, states)
        case "delete_state":
            removal = message.delete_state
            return DeleteState(removal.key, optional(removal, "expected_version"), removal.allow_missing)
        case "write_file":
            write = message.write_file
            return WriteFile(write.path, write.content, to_expected(write))
        case "edit_file":
            edit = message.edit_file
            return EditFile(edit.path, to_edit(f"{name}.edit", edit), to_expected(edit))
        case "rename_file":
            rename = message.rename_file
            return RenameFile(rename.path, rename.new_path, Expected(optional(rename, "expected_version")))
        case "delete_file":
            file = message.delete_file
            return DeleteFile(file.path, file.recursive, Expected(optional(file, "expected_version")))
    raise InvalidArgument(name, "has no operation")


async def _to_save(prefix: str, message: pb.SaveStateOperation, states: States) -> SaveState:
    if not message.HasField("value"):
        raise InvalidArgument(f"{prefix}value", "is required")
    write = await states.write_of(
        prefix,
        message.key,
        to_json(f"{prefix}value", message.value),
        nbytes=message.value.ByteSize(),
        expected_version=optional(message, "expected_version"),
        ttl_us=ttl_us(f"{prefix}ttl", message.ttl) if message.HasField("ttl") else None,
        description=optional(message, "description"),
    )
    return SaveState(write)


def _item_of(name: str, message: pb.AddOperation | pb.UpdateOperation) -> pb.MemoryItem:
    if not message.HasField("item"):
        raise InvalidArgument(f"{name}.item", "is required")
    return message.item


def operation_name(at: int, message: pb.WriteOperation) -> str:
    """Return the name of an operation in errors, such as "operations[3].add"."""
    kind = message.WhichOneof("operation")
    return f"operations[{at}].{kind}" if kind else f"operations[{at}]"


def fill_result(target: pb.WriteResult, result: BatchResult) -> None:
    """Set the result of an operation."""
    target.skipped, target.id = bool(result.skipped), result.skipped
    target.deleted_count, target.derived_count = result.deleted_count, result.derived_count
    target.renamed_count = result.renamed_count
    stamp = result.item or result.state or result.file
    if stamp is None:
        return
    target.revision = stamp.revision
    fill_time(target.create_time, stamp.create_us)
    fill_time(target.update_time, stamp.update_us)
    if stamp.expire_us is not None:
        fill_time(target.expire_time, stamp.expire_us)
    if result.item is not None:
        target.id = result.item.id
    if result.state is not None:
        target.version = result.state.version
    if result.file is not None:
        target.version = result.file.revision
