"""The memory of Pydantic AI Harness in files of a memory server. Needs the extra `pydantic-ai`.

async with MemoryServiceMemoryStore("127.0.0.1:50051", namespace="ada") as store:
    agent = Agent("openai:gpt-5", capabilities=[Memory(store)])
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from hashlib import sha256
from typing import Any

from pydantic_ai_harness.memory import (
    MemoryConflictError,
    MemoryFile,
    MemoryMutation,
    MemoryOperation,
    MemoryOperationConflictError,
    MemorySearchResult,
)

from memory_client._adapters import AsyncAdapter
from memory_client._word_matches import matched
from memory_client.aio import AsyncMemoryClient
from memory_client.errors import AlreadyExists, Conflict, NotFound
from memory_client.operations import (
    DeleteFileOperation,
    DeleteStateOperation,
    SaveStateOperation,
    WriteFileOperation,
    WriteOperation,
)

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_FILES = "pydantic_ai/files/"
"""Prefix of the states with what a write recorded about itself, by path."""
_OPERATIONS = "pydantic_ai/operations/"
"""Prefix of the states with receipts, by hash of the operation's id."""
_READ_MAX = 20
"""Files that a search reads to count words. Half of them: fewer matches beside those that the server finds
best; twice as many: a search takes twice as long."""


class MemoryServiceMemoryStore(AsyncAdapter):
    """A store for `Memory(store)`: implements `MemoryStore`, `MetadataMemoryStore`, `SearchableMemoryStore`.

    The files are those of the namespace below `root`, which other tools see too. Versions never repeat. A
    write, its metadata and its receipt are one atomic change. Conflicts raise the framework's errors, other
    failures the client's.
    """

    def __init__(
        self,
        client: AsyncMemoryClient | str,
        *,
        namespace: str | None = None,
        root: str = "/memories",
        receipts_ttl: timedelta = timedelta(days=7),
    ) -> None:
        """Make a store.

        Args:
            client: A client, or the address of a server.
            namespace: The namespace for the files. None: the client's, or "default" for an address.
            root: The folder for them.
            receipts_ttl: How long an operation that is repeated is recognized.
        """
        self._connect(client, namespace)
        self._root = f"{root.rstrip('/')}/"
        self._receipts_ttl = receipts_ttl

    async def read(self, path: str, *, max_chars: int) -> MemoryFile | None:
        """Return the file at `path`. None: there is none."""
        _check_path(path)
        if max_chars <= 0:
            raise ValueError("max_chars must be positive")
        try:
            file = await self._client.read_file(self._root + path)
        except NotFound:
            return None
        recorded: Any = await self._state(_FILES + path)
        if not recorded or recorded["sha256"] != file.sha256:
            recorded = {}  # Another tool has written the file.
        return MemoryFile(
            content=file.content[:max_chars],
            version=str(file.version),
            operation_id=recorded.get("operation_id"),
            truncated=len(file.content) > max_chars,
            metadata=recorded.get("metadata"),
        )

    async def get_operation(self, operation: MemoryOperation) -> MemoryMutation | None:
        """Return the result of an operation that was applied. None: it was not.

        Raises:
            MemoryOperationConflictError: Its id was used with another fingerprint.
        """
        try:
            state = await self._client.load_state(_receipt_key(operation))
        except NotFound:
            return None
        receipt: Any = state.value
        if receipt["fingerprint"] != operation.fingerprint:
            raise MemoryOperationConflictError(
                f"operation id {operation.id!r} was reused with different arguments"
            )
        version = None
        if receipt["path"] is not None:
            version = state.revision  # Of a file that is deleted: no file has this version.
            with suppress(NotFound):
                # The receipt was written right before the file, in the same change.
                async for each in self._client.list_file_versions(self._root + receipt["path"]):
                    if each.version <= state.revision:
                        break
                    version = each.version
        return MemoryMutation(
            version=None if version is None else str(version), replayed=True, existed=receipt["existed"]
        )

    async def write(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Create or replace a file if its version is `expected_version`; None: if there is none.

        Raises:
            MemoryConflictError: It has another version.
            MemoryOperationConflictError: The id of the operation was used with another fingerprint.
        """
        return await self.write_with_metadata(
            path, content, expected_version=expected_version, metadata=None, operation=operation
        )

    async def write_with_metadata(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        metadata: Mapping[str, str] | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Do as `write` does, and record metadata with it, which `read` returns."""
        _check_path(path)
        existed = expected_version is not None
        changes: list[WriteOperation] = [DeleteStateOperation(_FILES + path, allow_missing=True)]
        if operation is not None or metadata:
            recorded = {
                "sha256": sha256(content.encode(errors="replace")).hexdigest(),
                "operation_id": operation.id if operation else None,
                "metadata": _checked_metadata(metadata),
            }
            changes = [SaveStateOperation(_FILES + path, recorded)]
        if operation is not None:
            changes.append(self._receipt(operation, path, existed))
        version = _number(path, expected_version)
        changes.append(WriteFileOperation(self._root + path, content, expected_version=version))
        return await self._applied(changes, path, existed, operation)

    async def delete(
        self, path: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> MemoryMutation:
        """Delete a file if its version is `expected_version`; None: do nothing if there is none.

        Raises:
            MemoryConflictError: It has another version.
            MemoryOperationConflictError: The id of the operation was used with another fingerprint.
        """
        _check_path(path)
        existed = expected_version is not None
        changes: list[WriteOperation] = [DeleteStateOperation(_FILES + path, allow_missing=True)]
        if operation is not None:
            changes.append(self._receipt(operation, None, existed))
        if existed:
            version = _number(path, expected_version)
            changes.append(DeleteFileOperation(self._root + path, expected_version=version))
        elif await self.read(path, max_chars=1) is not None:
            return await self._replayed(path, operation)
        return await self._applied(changes, path, existed, operation)

    async def _applied(
        self, changes: list[WriteOperation], path: str, existed: bool, operation: MemoryOperation | None
    ) -> MemoryMutation:
        try:
            results = await self._client.batch_write(changes)
        except (Conflict, AlreadyExists, NotFound):
            return await self._replayed(path, operation)
        is_write = isinstance(changes[-1], WriteFileOperation)
        version = str(results[-1].version) if is_write else None
        return MemoryMutation(version=version, replayed=False, existed=existed)

    async def _replayed(self, path: str, operation: MemoryOperation | None) -> MemoryMutation:
        """Return the result of an operation that was applied before, or raise the conflict."""
        if operation is not None and (receipt := await self.get_operation(operation)) is not None:
            return receipt
        raise MemoryConflictError(f"memory path {path!r} is not at the expected version")

    def _receipt(self, operation: MemoryOperation, path: str | None, existed: bool) -> WriteOperation:
        receipt = {"id": operation.id, "fingerprint": operation.fingerprint, "path": path, "existed": existed}
        key = _receipt_key(operation)
        return SaveStateOperation(key, receipt, expected_version=0, ttl=self._receipts_ttl)

    async def _state(self, key: str) -> Any:
        try:
            return (await self._client.load_state(key)).value
        except NotFound:
            return None

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """Return the first paths that begin with `prefix`, sorted."""
        _check_prefix(prefix)
        if limit <= 0:
            raise ValueError("limit must be positive")
        return await self._paths(prefix, limit, depth=0)

    async def _paths(self, prefix: str, limit: int, *, depth: int) -> list[str]:
        folder = self._folder(prefix)
        files = self._client.list_files(folder, depth=depth, page_size=min(limit + 1, 1000))
        paths: list[str] = []
        with suppress(NotFound):
            async for entry in files:
                path = entry.path.removeprefix(self._root)
                if not entry.is_folder and path.startswith(prefix):
                    paths.append(path)
                if len(paths) == limit:
                    break
        return paths

    def _folder(self, prefix: str) -> str:
        return (self._root + prefix).rpartition("/")[0]

    async def search(
        self, prefix: str, query: str, *, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> MemorySearchResult:
        """Return the files right below `prefix` in which words of the query occur most often.

        Of more than 20 files it compares those that the server finds best.
        """
        _check_prefix(prefix)
        terms = query.lower().split()
        if not terms or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return MemorySearchResult(matches=[], scanned=0, truncated=False)
        paths = await self._paths(prefix, max_files + 1, depth=1)
        is_truncated, paths = len(paths) > max_files, paths[:max_files]
        scanned = len(paths)
        if scanned > _READ_MAX:
            found = await self._client.search_files(query, path=self._folder(prefix), limit=100)
            best = dict.fromkeys(each.path.removeprefix(self._root) for each in found)
            paths = [path for path in best if path in set(paths)][:_READ_MAX]
        files = await asyncio.gather(*(self.read(path, max_chars=max_file_chars) for path in paths))
        read = {path: file for path, file in zip(paths, files, strict=True) if file is not None}
        is_truncated = is_truncated or any(file.truncated for file in read.values())
        contents = {path: file.content for path, file in read.items()}
        matches, is_cut = matched(contents, terms, prefix=prefix, limit=limit, max_chars=max_chars)
        return MemorySearchResult(matches, scanned, is_truncated or is_cut)


def _check_path(path: str) -> None:
    names = path.split("/")
    if not all(_NAME.fullmatch(name) and ".." not in name and name != "." for name in names):
        raise ValueError(f"invalid memory path: {path!r}")


def _check_prefix(prefix: str) -> None:
    if prefix:
        _check_path(prefix.removesuffix("/"))


def _checked_metadata(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    if metadata and not all(isinstance(each, str) for pair in metadata.items() for each in pair):
        raise TypeError("memory metadata keys and values must be strings")
    return dict(metadata) if metadata else None


def _number(path: str, version: str | None) -> int:
    if version is None:
        return 0
    if not version.isdecimal() or version == "0":
        raise MemoryConflictError(f"memory path {path!r} is not at the expected version")
    return int(version)


def _receipt_key(operation: MemoryOperation) -> str:
    return _OPERATIONS + sha256(operation.id.encode(errors="replace")).hexdigest()[:40]
