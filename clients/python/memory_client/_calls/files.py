"""The calls of FileService: requests from arguments, answers from responses."""

from __future__ import annotations

from typing import Any

from memory_client._calls.call import Call, Page, request_id_or_new
from memory_client._calls.versions import version_kind
from memory_client._gen.memory_service.v1 import file_pb2 as pb
from memory_client.convert import degraded_to, provenance_to, time_to
from memory_client.errors import InvalidArgument
from memory_client.files import (
    AppendText,
    DeletedFiles,
    FileContent,
    FileEdit,
    FileEntry,
    FileSearchResult,
    FileVersion,
    InsertText,
    RenamedFiles,
    ReplaceText,
    WrittenFile,
)

_SERVICE = "/memory_service.v1.FileService/"


def read_file(
    namespace: str, path: str, *, start_line: int, end_line: int, version: int, max_characters: int
) -> Call[FileContent]:
    """Call ReadFile."""
    request = pb.ReadFileRequest(
        namespace=namespace,
        path=path,
        start_line=start_line,
        end_line=end_line,
        version=version,
        max_characters=max_characters,
    )
    return Call(_SERVICE + "ReadFile", request, pb.ReadFileResponse, _content_to)


def _content_to(response: pb.ReadFileResponse) -> FileContent:
    return FileContent(
        content=response.content,
        version=response.version,
        sha256=response.sha256,
        line_count=response.line_count,
        size_bytes=response.size_bytes,
        start_line=response.start_line,
        end_line=response.end_line,
        truncated=response.truncated,
        create_time=time_to(response, "create_time"),
        update_time=time_to(response, "update_time"),
        revision=response.revision,
        provenance=provenance_to(response),
    )


def write_file(
    namespace: str,
    path: str,
    content: str,
    *,
    expected_version: int | None,
    expected_sha256: str,
    request_id: str | None,
) -> Call[WrittenFile]:
    """Call WriteFile."""
    request = pb.WriteFileRequest(
        namespace=namespace,
        path=path,
        content=content,
        expected_version=expected_version,
        expected_sha256=expected_sha256,
        request_id=request_id_or_new(request_id),
    )

    def read(response: pb.WriteFileResponse) -> WrittenFile:
        return _written_to(response, created=response.created)

    return Call(_SERVICE + "WriteFile", request, pb.WriteFileResponse, read)


def edit_file(
    namespace: str,
    path: str,
    edit: FileEdit,
    *,
    expected_version: int | None,
    expected_sha256: str,
    request_id: str | None,
) -> Call[WrittenFile]:
    """Call EditFile."""
    request = pb.EditFileRequest(
        namespace=namespace,
        path=path,
        expected_version=expected_version,
        expected_sha256=expected_sha256,
        request_id=request_id_or_new(request_id),
    )
    set_edit(request, edit)

    def read(response: pb.EditFileResponse) -> WrittenFile:
        return _written_to(response, start_line=response.start_line)

    return Call(_SERVICE + "EditFile", request, pb.EditFileResponse, read)


def set_edit(message: Any, edit: FileEdit) -> None:
    """Set the edit of a message."""
    match edit:
        case ReplaceText(old_text, new_text):
            message.replace.old_text, message.replace.new_text = old_text, new_text
        case InsertText(after_line, text):
            message.insert.after_line, message.insert.text = after_line, text
        case AppendText(text):
            message.append.text = text
        case _:
            raise InvalidArgument(
                "edit: must be ReplaceText, InsertText or AppendText",
                code="INVALID_ARGUMENT",
                reason="INVALID_FIELD",
                field="edit",
            )


def _written_to(
    response: pb.WriteFileResponse | pb.EditFileResponse, *, created: bool = False, start_line: int = 0
) -> WrittenFile:
    return WrittenFile(
        version=response.version,
        sha256=response.sha256,
        line_count=response.line_count,
        size_bytes=response.size_bytes,
        created=created,
        start_line=start_line,
        revision=response.revision,
        degraded=degraded_to(response.degraded),
    )


def rename_file(
    namespace: str, path: str, new_path: str, *, expected_version: int | None, request_id: str | None
) -> Call[RenamedFiles]:
    """Call RenameFile."""
    request = pb.RenameFileRequest(
        namespace=namespace,
        path=path,
        new_path=new_path,
        expected_version=expected_version,
        request_id=request_id_or_new(request_id),
    )

    def read(response: pb.RenameFileResponse) -> RenamedFiles:
        return RenamedFiles(
            renamed_count=response.renamed_count, version=response.version, revision=response.revision
        )

    return Call(_SERVICE + "RenameFile", request, pb.RenameFileResponse, read)


def delete_file(
    namespace: str, path: str, *, recursive: bool, expected_version: int | None, request_id: str | None
) -> Call[DeletedFiles]:
    """Call DeleteFile."""
    request = pb.DeleteFileRequest(
        namespace=namespace,
        path=path,
        recursive=recursive,
        expected_version=expected_version,
        request_id=request_id_or_new(request_id),
    )

    def read(response: pb.DeleteFileResponse) -> DeletedFiles:
        return DeletedFiles(deleted_count=response.deleted_count, revision=response.revision)

    return Call(_SERVICE + "DeleteFile", request, pb.DeleteFileResponse, read)


def list_files(namespace: str, path: str, *, depth: int, page_size: int) -> Call[Page[FileEntry]]:
    """Call ListFiles."""
    request = pb.ListFilesRequest(namespace=namespace, path=path, depth=depth, page_size=page_size)

    def read(response: pb.ListFilesResponse) -> Page[FileEntry]:
        return Page([_entry_to(entry) for entry in response.entries], response.next_page_token, response)

    return Call(_SERVICE + "ListFiles", request, pb.ListFilesResponse, read)


def _entry_to(entry: pb.FileEntry) -> FileEntry:
    return FileEntry(
        path=entry.path,
        is_folder=entry.is_folder,
        size_bytes=entry.size_bytes,
        file_count=entry.file_count,
        version=entry.version,
        create_time=time_to(entry, "create_time"),
        update_time=time_to(entry, "update_time"),
    )


def search_files(
    namespace: str, query: str, *, path: str, limit: int, max_characters: int
) -> Call[Page[FileSearchResult]]:
    """Call SearchFiles."""
    request = pb.SearchFilesRequest(
        namespace=namespace, query=query, path=path, limit=limit, max_characters=max_characters
    )

    def read(response: pb.SearchFilesResponse) -> Page[FileSearchResult]:
        return Page([_result_to(result) for result in response.results], "", response)

    return Call(_SERVICE + "SearchFiles", request, pb.SearchFilesResponse, read)


def _result_to(result: pb.FileSearchResult) -> FileSearchResult:
    return FileSearchResult(
        path=result.path,
        start_line=result.start_line,
        end_line=result.end_line,
        text=result.text,
        score=result.score,
        version=result.version,
    )


def list_file_versions(namespace: str, path: str, page_size: int) -> Call[Page[FileVersion]]:
    """Call ListFileVersions for its first page."""
    request = pb.ListFileVersionsRequest(namespace=namespace, path=path, page_size=page_size)

    def read(response: pb.ListFileVersionsResponse) -> Page[FileVersion]:
        return Page([_version_to(found) for found in response.versions], response.next_page_token, response)

    return Call(_SERVICE + "ListFileVersions", request, pb.ListFileVersionsResponse, read)


def _version_to(proto: pb.FileVersion) -> FileVersion:
    return FileVersion(
        version=proto.version,
        kind=version_kind(proto.kind),
        time=time_to(proto, "time"),
        writer=proto.writer,
        credential_id=proto.credential_id,
        path=proto.path,
        size_bytes=proto.size_bytes,
    )


def redact_file_version(namespace: str, path: str, version: int) -> Call[int]:
    """Call RedactFileVersion; read the revision of the namespace."""
    request = pb.RedactFileVersionRequest(namespace=namespace, path=path, version=version)

    def read(response: pb.RedactFileVersionResponse) -> int:
        return response.revision

    return Call(_SERVICE + "RedactFileVersion", request, pb.RedactFileVersionResponse, read)
