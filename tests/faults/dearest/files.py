"""The most expensive valid requests of FileService."""

from __future__ import annotations

from typing import Any

from faults.dearest.world import MIB, Dear, World
from faults.scale import SOAK
from memory_service.v1 import file_pb2, file_pb2_grpc, memory_pb2

_FILES = 1000 if SOAK else 200


def _stub(world: World) -> Any:
    return file_pb2_grpc.FileServiceStub(world.api.channel)


def _book(world: World) -> str:
    """Return a new namespace with a large file, leaving room for an edit."""
    namespace = world.fresh()
    text = world.text(MIB - 4096)
    _stub(world).WriteFile(file_pb2.WriteFileRequest(namespace=namespace, path="/d/book", content=text))
    return namespace


def _twice(world: World) -> str:
    """Return a new namespace with a large file of two versions."""
    namespace = _book(world)
    request = file_pb2.EditFileRequest(namespace=namespace, path="/d/book", append={"text": "new"})
    _stub(world).EditFile(request)
    return namespace


def _folder(world: World) -> str:
    """Return a new namespace with a folder of as many files as one rename may move."""
    namespace, stub = world.fresh(), _stub(world)
    for at in range(_FILES):
        request = file_pb2.WriteFileRequest(namespace=namespace, path=f"/d/{at}", content=world.text(1000))
        stub.WriteFile(request)
    return namespace


def _written(world: World, text: str) -> list[file_pb2.WriteFileRequest]:
    return [
        file_pb2.WriteFileRequest(namespace=world.fresh(), path="/book", content=text, request_id="r")
        for _ in range(2)
    ]


def _edited(world: World, **edit: Any) -> list[file_pb2.EditFileRequest]:
    return [
        file_pb2.EditFileRequest(namespace=_book(world), path="/d/book", request_id="r", **edit)
        for _ in range(2)
    ]


FILES = {
    "ReadFile": [
        Dear("all", lambda w: [file_pb2.ReadFileRequest(namespace=_book(w), path="/d/book")] * 2),
    ],
    "WriteFile": [
        Dear("a mebibyte", lambda w: _written(w, w.text(MIB))),
        Dear("one word", lambda w: _written(w, "a" * MIB)),
        Dear("lines", lambda w: _written(w, "\n" * MIB)),
    ],
    "EditFile": [
        Dear("at the beginning", lambda w: _edited(w, insert=memory_pb2.InsertText(text="new"))),
        Dear("at the end", lambda w: _edited(w, append=memory_pb2.AppendText(text="new"))),
    ],
    "RenameFile": [
        Dear(
            "a folder",
            lambda w: [file_pb2.RenameFileRequest(namespace=_folder(w), path="/d", new_path="/e")],
        ),
    ],
    "DeleteFile": [
        Dear(
            "a folder",
            lambda w: [file_pb2.DeleteFileRequest(namespace=_folder(w), path="/d", recursive=True)],
        ),
    ],
    "ListFileVersions": [
        Dear("two", lambda w: [file_pb2.ListFileVersionsRequest(namespace=_twice(w), path="/d/book")] * 2),
    ],
    "RedactFileVersion": [
        Dear(
            "a large one",
            lambda w: [file_pb2.RedactFileVersionRequest(namespace=_twice(w), path="/d/book", version=1)],
        ),
    ],
    "ListFiles": [
        Dear(
            "a folder", lambda w: [file_pb2.ListFilesRequest(namespace=w.once(_folder), page_size=1000)] * 2
        ),
    ],
    "SearchFiles": [
        Dear(
            "in a folder",
            lambda w: [
                file_pb2.SearchFilesRequest(
                    namespace=w.once(_folder), query=w.most_words(), path="/d", limit=100
                )
            ],
        ),
    ],
}
