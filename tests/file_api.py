"""A short form of FileService for one namespace."""

from __future__ import annotations

from typing import Any

from grpc_api import Api, Refusal, refusal
from memory_service.v1 import file_pb2 as pb
from memory_service.v1 import file_pb2_grpc, memory_pb2


class Drive:
    """The service for one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.stub: Any = file_pb2_grpc.FileServiceStub(api.channel)

    def write(self, path: str, content: str, **fields: Any) -> pb.WriteFileResponse:
        """Write a file."""
        return self.stub.WriteFile(self._of(pb.WriteFileRequest, path=path, content=content, **fields))

    def read(self, path: str, **fields: Any) -> pb.ReadFileResponse:
        """Read a file."""
        return self.stub.ReadFile(self._of(pb.ReadFileRequest, path=path, **fields))

    def text(self, path: str, **fields: Any) -> str:
        """Return the content of a file."""
        return self.read(path, **fields).content

    def replace(self, path: str, old: str, new: str, **fields: Any) -> pb.EditFileResponse:
        """Replace a text in a file."""
        return self._edit(path, replace=memory_pb2.ReplaceText(old_text=old, new_text=new), **fields)

    def insert(self, path: str, after_line: int, text: str, **fields: Any) -> pb.EditFileResponse:
        """Insert lines into a file."""
        return self._edit(path, insert=memory_pb2.InsertText(after_line=after_line, text=text), **fields)

    def append(self, path: str, text: str, **fields: Any) -> pb.EditFileResponse:
        """Add to the end of a file."""
        return self._edit(path, append=memory_pb2.AppendText(text=text), **fields)

    def rename(self, path: str, new_path: str, **fields: Any) -> pb.RenameFileResponse:
        """Rename a file or a folder."""
        return self.stub.RenameFile(self._of(pb.RenameFileRequest, path=path, new_path=new_path, **fields))

    def delete(self, path: str, **fields: Any) -> pb.DeleteFileResponse:
        """Delete a file or a folder."""
        return self.stub.DeleteFile(self._of(pb.DeleteFileRequest, path=path, **fields))

    def entries(self, path: str = "", **fields: Any) -> list[pb.FileEntry]:
        """Return the entries below a folder, from all pages."""
        entries: list[pb.FileEntry] = []
        token = ""
        while True:
            request = self._of(pb.ListFilesRequest, path=path, page_token=token, **fields)
            page = self.stub.ListFiles(request)
            entries += page.entries
            token = page.next_page_token
            if not token:
                return entries

    def paths(self, path: str = "", **fields: Any) -> list[str]:
        """Return the paths below a folder; those of folders end with a slash."""
        return [entry.path + "/" * entry.is_folder for entry in self.entries(path, **fields)]

    def search(self, query: str, **fields: Any) -> list[pb.FileSearchResult]:
        """Return the results of a search."""
        return list(self.stub.SearchFiles(self._of(pb.SearchFilesRequest, query=query, **fields)).results)

    def refused(self, name: str, **fields: Any) -> Refusal:
        """Return how a call is refused."""
        return refusal(getattr(self.stub, name), self._of(getattr(pb, f"{name}Request"), **fields))

    def _edit(self, path: str, **fields: Any) -> pb.EditFileResponse:
        return self.stub.EditFile(self._of(pb.EditFileRequest, path=path, **fields))

    def _of(self, kind: Any, **fields: Any) -> Any:
        return kind(namespace=self.namespace, **fields)
