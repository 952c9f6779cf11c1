"""The client's methods for files."""

from __future__ import annotations

from collections.abc import AsyncIterator

from memory_client._aio.transport import Bound
from memory_client._calls import files
from memory_client._calls.fields import found_of
from memory_client.files import (
    DeletedFiles,
    FileContent,
    FileEdit,
    FileEntry,
    FileSearchResult,
    FileVersion,
    RenamedFiles,
    WrittenFile,
)
from memory_client.found import Found


class FileMethods(Bound):
    """Methods for the files of the client's namespace: text files below folders, for a model's notes."""

    async def read_file(
        self, path: str, *, start_line: int = 0, end_line: int = 0, version: int = 0, max_characters: int = 0
    ) -> FileContent:
        """Return a file, or a range of its lines.

        Args:
            path: Path of the file, as "/memories/ada.md".
            start_line: The first line, from 1. 0: the first of the file.
            end_line: The last line, inclusive. 0 or -1: the last of the file.
            version: Read this version. 0: the current one.
            max_characters: Maximum number of characters; the content ends with the last whole line that
                fits. 0: no limit.

        Raises:
            NotFound: There is no such file, or the version is no longer kept.
        """
        call = files.read_file(
            self._namespace,
            path,
            start_line=start_line,
            end_line=end_line,
            version=version,
            max_characters=max_characters,
        )
        return await self._transport.unary(call)

    async def write_file(
        self,
        path: str,
        content: str,
        *,
        expected_version: int | None = None,
        expected_sha256: str = "",
        request_id: str | None = None,
    ) -> WrittenFile:
        """Create a file, or replace its content.

        Args:
            path: Path of the file. Its folders need not exist.
            content: The content, at most 1 MiB.
            expected_version: Write only if this is the file's version; 0: only if there is no such file.
            expected_sha256: Write only if the current content has this SHA-256, in hexadecimal.
            request_id: Makes a retry safe: the write is applied once. None: a new id for this call.

        Raises:
            AlreadyExists: The path is a folder, or one of its folders is a file.
            Conflict: The file is not as expected; `metadata["current_version"]` has its version.
        """
        call = files.write_file(
            self._namespace,
            path,
            content,
            expected_version=expected_version,
            expected_sha256=expected_sha256,
            request_id=request_id,
        )
        return await self._transport.unary(call)

    async def edit_file(
        self,
        path: str,
        edit: FileEdit,
        *,
        expected_version: int | None = None,
        expected_sha256: str = "",
        request_id: str | None = None,
    ) -> WrittenFile:
        """Change a part of a file: the current version, unless another one is expected.

        Args:
            path: Path of the file.
            edit: `ReplaceText`, `InsertText` or `AppendText`.
            expected_version: Edit only if this is the file's version.
            expected_sha256: Edit only if the current content has this SHA-256, in hexadecimal.
            request_id: Makes a retry safe: the write is applied once. None: a new id for this call.

        Raises:
            NotFound: There is no such file.
            Conflict: The file is not as expected; `metadata["current_version"]` has its version.
            FailedPrecondition: The text to replace does not occur exactly once;
                `metadata["occurrences"]` says how often.
        """
        call = files.edit_file(
            self._namespace,
            path,
            edit,
            expected_version=expected_version,
            expected_sha256=expected_sha256,
            request_id=request_id,
        )
        return await self._transport.unary(call)

    async def rename_file(
        self, path: str, new_path: str, *, expected_version: int | None = None, request_id: str | None = None
    ) -> RenamedFiles:
        """Move a file, or a folder with everything below it; versions go along.

        Raises:
            NotFound: There is no such file or folder.
            AlreadyExists: There is a file or a folder at the new path.
            Conflict: The file's version is not `expected_version`.
        """
        call = files.rename_file(
            self._namespace, path, new_path, expected_version=expected_version, request_id=request_id
        )
        return await self._transport.unary(call)

    async def delete_file(
        self,
        path: str,
        *,
        recursive: bool = False,
        expected_version: int | None = None,
        request_id: str | None = None,
    ) -> DeletedFiles:
        """Remove a file, or with `recursive` a folder with everything below it.

        Raises:
            NotFound: There is no such file or folder.
            FailedPrecondition: It is a folder, and `recursive` is not set.
            Conflict: The file's version is not `expected_version`.
        """
        call = files.delete_file(
            self._namespace,
            path,
            recursive=recursive,
            expected_version=expected_version,
            request_id=request_id,
        )
        return await self._transport.unary(call)

    def list_files(self, path: str = "", *, depth: int = 0, page_size: int = 0) -> AsyncIterator[FileEntry]:
        """Yield the files and folders below a folder, by path.

        Args:
            path: The folder, or a file. Empty: all files.
            depth: How many levels to list; deeper files count in their folder. 0: all.
            page_size: Number to fetch at a time; 0: 100.
        """
        call = files.list_files(self._namespace, path, depth=depth, page_size=page_size)
        return self._transport.entries(call)

    async def search_files(
        self, query: str, *, path: str = "", limit: int = 5, max_characters: int = 0
    ) -> Found[FileSearchResult]:
        """Return the pieces of files that match a text best, best first, with their lines.

        Args:
            query: A text to find pieces for.
            path: Only this file, or the files below this folder. Empty: all.
            limit: Maximum number of results, at most 100.
            max_characters: Maximum number of characters of all texts together. 0: no limit.
        """
        call = files.search_files(
            self._namespace, query, path=path, limit=limit, max_characters=max_characters
        )
        return found_of([await self._transport.unary(call)])

    def list_file_versions(self, path: str, *, page_size: int = 0) -> AsyncIterator[FileVersion]:
        """Yield the versions of a file, newest first, page by page; those before a rename too.

        Raises:
            NotFound: There is no such file.
        """
        return self._transport.entries(files.list_file_versions(self._namespace, path, page_size))

    async def redact_file_version(self, path: str, version: int) -> int:
        """Remove the content of a replaced version of a file; return the namespace's revision.

        Raises:
            NotFound: There is no such file or version.
            FailedPrecondition: It is the current version.
        """
        return await self._transport.unary(files.redact_file_version(self._namespace, path, version))
