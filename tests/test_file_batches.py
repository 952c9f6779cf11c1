"""Operations on files in a batch: all or none, together with those on items and states."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from file_api import Drive
from grpc_api import Api, Refusal, refusal
from memory_service.v1 import memory_pb2 as pb

Operation = pb.WriteOperation
MIB = 1 << 20


@pytest.fixture
def drive(api: Api, namespace: str) -> Drive:
    return Drive(api, namespace)


def write(path: str, content: str, **fields: Any) -> pb.WriteOperation:
    return Operation(write_file=pb.WriteFileOperation(path=path, content=content, **fields))


def append(path: str, text: str, **fields: Any) -> pb.WriteOperation:
    return Operation(edit_file=pb.EditFileOperation(path=path, append=pb.AppendText(text=text), **fields))


def rename(path: str, new_path: str, **fields: Any) -> pb.WriteOperation:
    return Operation(rename_file=pb.RenameFileOperation(path=path, new_path=new_path, **fields))


def delete(path: str, **fields: Any) -> pb.WriteOperation:
    return Operation(delete_file=pb.DeleteFileOperation(path=path, **fields))


def add(text: str) -> pb.WriteOperation:
    return Operation(add=pb.AddOperation(item=pb.MemoryItem(text=text)))


def request(drive: Drive, *operations: pb.WriteOperation, **fields: Any) -> pb.BatchWriteRequest:
    return pb.BatchWriteRequest(namespace=drive.namespace, operations=operations, **fields)


def batch(drive: Drive, *operations: pb.WriteOperation, **fields: Any) -> pb.BatchWriteResponse:
    return drive.api.memory.BatchWrite(request(drive, *operations, **fields))


def refused(drive: Drive, *operations: pb.WriteOperation) -> Refusal:
    return refusal(drive.api.memory.BatchWrite, request(drive, *operations))


def test_operations_on_files_are_applied_together(drive: Drive) -> None:
    drive.write("/edited", "one\n")
    drive.write("/old/a", "a")
    drive.write("/old/b", "b")
    drive.write("/single", "s")
    drive.write("/gone/x", "x\n" * 2000)
    operations = (
        write("/new/file", "The otter sleeps.", expected_version=0), append("/edited", "two\n"),
        rename("/old", "/moved"), rename("/single", "/alone"),
        delete("/gone", recursive=True), add("an item"),
    )  # fmt: skip
    first = batch(drive, *operations, request_id="r")
    created, edited, folder, single, removed, item = first.results
    assert created.version == drive.read("/new/file").version == created.revision
    assert edited.version == drive.read("/edited").version
    assert (folder.renamed_count, folder.version, single.renamed_count) == (2, 0, 1)
    assert single.version == drive.read("/alone").version
    assert removed.deleted_count == 1
    assert item.id and not item.version
    assert drive.paths() == ["/alone", "/edited", "/moved/", "/moved/a", "/moved/b", "/new/", "/new/file"]
    assert drive.text("/edited") == "one\ntwo\n"
    assert [hit.path for hit in drive.search("otter", limit=1)] == ["/new/file"]
    assert batch(drive, *operations, request_id="r") == first


def test_one_false_precondition_stops_all(drive: Drive) -> None:
    drive.write("/a", "one one")
    drive.write("/d/x", "x")
    before = drive.api.stats(drive.namespace).revision
    wrong = {
        "VERSION_MISMATCH": write("/a", "x", expected_version=99),
        "FILE_NOT_FOUND": append("/none", "x"),
        "FOLDER_NOT_EMPTY": delete("/d"),
        "FILE_ALREADY_EXISTS": rename("/a", "/d"),
        "OCCURRENCE_MISMATCH": Operation(
            edit_file=pb.EditFileOperation(path="/a", replace=pb.ReplaceText(old_text="one"))
        ),
    }
    for reason, operation in wrong.items():
        error = refused(drive, write("/new", "x"), add("x"), operation)
        kind = operation.WhichOneof("operation")
        assert (error.reason, error.metadata["field"]) == (reason, f"operations[2].{kind}")
    assert drive.api.stats(drive.namespace).revision == before


@pytest.mark.parametrize(
    ("operations", "field"),
    [
        ([write("/a", "x"), append("/a", "y")], "operations[1].edit_file.path"),
        ([write("/a/b", "x"), rename("/x", "/a")], "operations[0].write_file.path"),
        ([delete("/d", recursive=True), write("/d/new", "y")], "operations[1].write_file.path"),
        ([write("a", "x")], "operations[0].write_file.path"),
        ([write("/a", "x", expected_sha256="x")], "operations[0].write_file.expected_sha256"),
        ([rename("/a", "/a/b")], "operations[0].rename_file.new_path"),
        ([Operation(edit_file=pb.EditFileOperation(path="/a"))], "operations[0].edit_file.edit"),
        ([append("/a", "")], "operations[0].edit_file.append.text"),
    ],
)
def test_operations_that_do_not_fit_are_refused(
    drive: Drive, operations: list[pb.WriteOperation], field: str
) -> None:
    error = refused(drive, *operations)
    assert (error.code, error.metadata["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, field)


def test_a_folder_of_one_file_is_renamed_as_any_folder(drive: Drive) -> None:
    drive.write("/d/x", "x")
    drive.write("/y", "y")
    operations = rename("/d", "/e"), rename("/y", "/z")
    first = batch(drive, *operations, request_id="r")
    folder, single = first.results
    assert (folder.renamed_count, folder.version, folder.revision) == (1, 0, 0)
    assert single.version == drive.read("/z").version
    assert batch(drive, *operations, request_id="r") == first


def test_the_files_of_one_batch_are_bounded_together(drive: Drive) -> None:
    text = " " * (MIB - 1) + "x"
    for number in range(65):
        drive.write(f"/{'de'[number > 32]}/{number}", text)
    edit = pb.ReplaceText(old_text="x", new_text="")
    edits = [
        Operation(edit_file=pb.EditFileOperation(path=f"/{'de'[number > 32]}/{number}", replace=edit))
        for number in range(65)
    ]
    for operations, field in (
        ([rename("/d", "/f"), rename("/e", "/g")], "operations[1].rename_file.path"),
        (edits, "operations[64].edit_file.replace.new_text"),
    ):
        error = refused(drive, *operations)
        assert (error.code, error.metadata["field"]) == (grpc.StatusCode.RESOURCE_EXHAUSTED, field)
        assert error.metadata["limit_name"] == "changed_files_bytes_max"
    assert drive.entries(depth=1)[0].size_bytes == 33 * MIB
    assert len(batch(drive, *edits[:64]).results) == 64
