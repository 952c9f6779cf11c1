"""FileService: convert requests, call the domain, convert results."""

from __future__ import annotations

from typing import Any

import grpc

from memory_service.domain.file_edits import AppendText, Edit, InsertText, ReplaceText
from memory_service.domain.file_listing import Entry, FileListing
from memory_service.domain.file_planning import Expected
from memory_service.domain.file_search import FileSearch
from memory_service.domain.file_versions import FileVersions
from memory_service.domain.files import Files, Range
from memory_service.errors import InvalidArgument
from memory_service.runtime.yielding import each
from memory_service.server.decisions import degradations
from memory_service.server.provenance import fill_provenance
from memory_service.server.requests import optional, request_key
from memory_service.server.values import fill_time
from memory_service.server.versions import fill_file_version
from memory_service.v1 import file_pb2 as pb
from memory_service.v1 import file_pb2_grpc, memory_pb2

Context = grpc.aio.ServicerContext[Any, Any]


class FileServicer(file_pb2_grpc.FileServiceServicer):
    """Files over gRPC."""

    def __init__(
        self, files: Files, listing: FileListing, search: FileSearch, versions: FileVersions
    ) -> None:
        self._files = files
        self._listing = listing
        self._search = search
        self._versions = versions

    async def ReadFile(self, request: pb.ReadFileRequest, context: Context) -> pb.ReadFileResponse:
        wanted = Range(request.start_line, request.end_line, request.max_characters)
        read = await self._files.read(request.namespace, request.path, wanted, request.version)
        response = pb.ReadFileResponse(
            content=read.content,
            version=read.file.version,
            sha256=read.text.sha256,
            line_count=read.text.line_count,
            size_bytes=len(read.text.data),
            start_line=read.first,
            end_line=read.last,
            truncated=read.truncated,
            revision=read.revision,
        )
        fill_time(response.create_time, read.file.item.create_us)
        fill_time(response.update_time, read.file.item.update_us)
        fill_provenance(response.provenance, read.file.item)
        return response

    async def WriteFile(self, request: pb.WriteFileRequest, context: Context) -> pb.WriteFileResponse:
        key = await request_key(request.request_id, request)
        written = await self._files.write(
            request.namespace, request.path, request.content, to_expected(request), key
        )
        return pb.WriteFileResponse(
            version=written.version,
            sha256=written.sha256,
            line_count=written.line_count,
            size_bytes=written.size_bytes,
            created=written.created,
            revision=written.revision,
            degraded=degradations(written.degraded),
        )

    async def EditFile(self, request: pb.EditFileRequest, context: Context) -> pb.EditFileResponse:
        key = await request_key(request.request_id, request)
        written = await self._files.edit(
            request.namespace, request.path, to_edit("edit", request), to_expected(request), key
        )
        return pb.EditFileResponse(
            version=written.version,
            sha256=written.sha256,
            line_count=written.line_count,
            size_bytes=written.size_bytes,
            start_line=written.start_line,
            revision=written.revision,
            degraded=degradations(written.degraded),
        )

    async def RenameFile(self, request: pb.RenameFileRequest, context: Context) -> pb.RenameFileResponse:
        key = await request_key(request.request_id, request)
        expected = Expected(optional(request, "expected_version"))
        renamed = await self._files.rename(request.namespace, request.path, request.new_path, expected, key)
        return pb.RenameFileResponse(
            renamed_count=renamed.count, version=renamed.version, revision=renamed.revision
        )

    async def DeleteFile(self, request: pb.DeleteFileRequest, context: Context) -> pb.DeleteFileResponse:
        key = await request_key(request.request_id, request)
        expected = Expected(optional(request, "expected_version"))
        deleted = await self._files.delete(
            request.namespace, request.path, expected, key, recursive=request.recursive
        )
        return pb.DeleteFileResponse(deleted_count=deleted.count, revision=deleted.revision)

    async def ListFiles(self, request: pb.ListFilesRequest, context: Context) -> pb.ListFilesResponse:
        page = await self._listing.list_files(
            request.namespace,
            request.path,
            request.depth,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        response = pb.ListFilesResponse(revision=page.revision, next_page_token=page.next_page_token)
        await each(lambda entry: _fill_entry(response.entries.add(), entry), page.entries)
        return response

    async def SearchFiles(self, request: pb.SearchFilesRequest, context: Context) -> pb.SearchFilesResponse:
        found = await self._search.search(
            request.namespace,
            request.query,
            request.path,
            limit=optional(request, "limit"),
            max_characters=request.max_characters,
        )
        response = pb.SearchFilesResponse(revision=found.revision, degraded=degradations(found.degraded))
        for hit in found.hits:
            response.results.add(
                path=hit.file.path,
                start_line=hit.start_line,
                end_line=hit.end_line,
                text=hit.text,
                score=hit.score,
                version=hit.file.version,
            )
        return response

    async def ListFileVersions(
        self, request: pb.ListFileVersionsRequest, context: Context
    ) -> pb.ListFileVersionsResponse:
        page = await self._versions.list_versions(
            request.namespace, request.path, request.page_size, request.page_token
        )
        response = pb.ListFileVersionsResponse(next_page_token=page.next_page_token)
        await each(lambda version: fill_file_version(response.versions.add(), version), page.versions)
        return response

    async def RedactFileVersion(
        self, request: pb.RedactFileVersionRequest, context: Context
    ) -> pb.RedactFileVersionResponse:
        revision = await self._versions.redact(request.namespace, request.path, request.version)
        return pb.RedactFileVersionResponse(revision=revision)


def to_edit(field: str, message: pb.EditFileRequest | memory_pb2.EditFileOperation) -> Edit:
    """Return the edit of a request. Raises InvalidArgument for `field` if there is none."""
    match message.WhichOneof("edit"):
        case "replace":
            return ReplaceText(message.replace.old_text, message.replace.new_text)
        case "insert":
            return InsertText(message.insert.after_line, message.insert.text)
        case "append":
            return AppendText(message.append.text)
    raise InvalidArgument(field, "is required")


def to_expected(
    message: pb.WriteFileRequest
    | pb.EditFileRequest
    | memory_pb2.WriteFileOperation
    | memory_pb2.EditFileOperation,
) -> Expected:
    """Return what a caller requires of a file."""
    return Expected(optional(message, "expected_version"), message.expected_sha256)


def _fill_entry(target: pb.FileEntry, entry: Entry) -> None:
    target.path, target.is_folder, target.version = entry.path, not entry.version, entry.version
    target.size_bytes, target.file_count = entry.size_bytes, entry.file_count
    fill_time(target.create_time, entry.create_us)
    fill_time(target.update_time, entry.update_us)
