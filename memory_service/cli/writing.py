"""The command that applies a file of operations as one batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_service.cli import output, rendering
from memory_service.cli.options import client_command
from memory_service.cli.session import Session

if TYPE_CHECKING:
    from memory_client import WriteOperation, WriteResult


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@client_command
def write(session: Session, file: str) -> None:
    """Apply the operations in FILE, all or none, and print a line for each. "-" is stdin.

    FILE has up to 1000 operations, one JSON object per line: the protobuf JSON of WriteOperation, such as
    {"add": {"item": {"text": "Ada likes tea"}}}. The operations are add, update, delete, delete_where,
    save_state, delete_state, write_file, edit_file, rename_file and delete_file.
    """
    from memory_service.importing import read_operations

    name = "stdin" if file == "-" else Path(file).name
    with click.open_file(file, "rb") as opened:
        operations = list(read_operations(opened, name=name))
    results = session.client.batch_write(operations)
    for operation, result in zip(operations, results, strict=True):
        session.tell(result, _row(operation, result))
    session.note(results.degraded)


def _row(operation: WriteOperation, result: WriteResult) -> str:
    from memory_client import (
        AddOperation,
        DeleteFileOperation,
        DeleteOperation,
        DeleteWhereOperation,
        EditFileOperation,
        RenameFileOperation,
        SaveStateOperation,
        UpdateOperation,
        WriteFileOperation,
    )

    match operation:
        case AddOperation():
            return f"{'skipped' if result.skipped else 'added'} {rendering.one_line(result.id)}"
        case UpdateOperation():
            return f"updated {rendering.one_line(result.id)}"
        case DeleteWhereOperation():
            return f"deleted {result.deleted_count} items{output.and_derived(result.derived_count)}"
        case SaveStateOperation():
            return f"saved {rendering.one_line(operation.key)}, version {result.version}"
        case WriteFileOperation() | EditFileOperation():
            return f"wrote {rendering.one_line(operation.path)}, version {result.version}"
        case RenameFileOperation():
            return f"renamed {result.renamed_count} files"
        case DeleteFileOperation():
            return f"deleted {result.deleted_count} files"
    name = operation.id if isinstance(operation, DeleteOperation) else operation.key
    done = "deleted" if result.deleted_count else "missing"
    return f"{done} {rendering.one_line(name)}{output.and_derived(result.derived_count)}"
