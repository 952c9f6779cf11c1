"""Files: read, written, edited, renamed and deleted by their paths."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakValueDictionary

from memory_service.data_model import OnDuplicate, Receipt, RequestKey
from memory_service.domain.checks import Checks
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.embedding import Degradation
from memory_service.domain.file_edits import Edit, check_edit
from memory_service.domain.file_items import File, file_of
from memory_service.domain.file_lookup import Tree, missing, tree_of
from memory_service.domain.file_paths import check_path
from memory_service.domain.file_planning import (
    Expected,
    FilePlanning,
    FileRoom,
    Written,
    check_rename,
    moved_items,
)
from memory_service.domain.file_text import FileText
from memory_service.domain.file_vacancy import unchanged_since
from memory_service.domain.item_writing import Remembered, degraded_then
from memory_service.domain.items import Items
from memory_service.domain.screening import Screening
from memory_service.domain.versions import is_redacted
from memory_service.errors import Conflict, InvalidArgument, NotFound, WriteRejected
from memory_service.runtime.caller import present_caller
from memory_service.runtime.yielding import aside
from memory_service.store import Store

T = TypeVar("T")
_NEW = ""
"""Stands for all paths that are not taken yet."""


@dataclass(slots=True)
class Range:
    """Lines of a file, as the caller sent them: 0 is the first or the last."""

    start_line: int = 0
    end_line: int = 0
    max_characters: int = 0


@dataclass(slots=True)
class ReadLines:
    """Lines of a file, from the first to the last, 0 if it is empty."""

    file: File
    text: FileText
    content: str
    first: int
    last: int
    truncated: bool
    revision: int


@dataclass(slots=True)
class WrittenFile:
    """A version of a file that was written; version 0: it waits for a review."""

    version: int
    sha256: str
    line_count: int
    size_bytes: int
    created: bool
    start_line: int
    revision: int
    degraded: list[Degradation]


@dataclass(slots=True)
class Changed:
    """The number of files that were renamed or deleted; the version of a single renamed one."""

    count: int
    revision: int
    version: int = 0


class Files:
    """Reads and changes files."""

    def __init__(
        self, store: Store, items: Items, planning: FilePlanning, checks: Checks, screening: Screening
    ) -> None:
        self._store = store
        self._items = items
        self._planning = planning
        self._checks = checks
        self._screening = screening
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    # --- reading ------------------------------------------------------------------------------

    async def read(self, namespace: str, path: str, wanted: Range, version: int) -> ReadLines:
        """Return lines of a file, at a version or 0 for the present one. Raises NotFound."""
        self._check(namespace, path)
        for name in ("start_line", "max_characters"):
            self._checks.count(name, getattr(wanted, name))
        if wanted.end_line < -1:
            raise InvalidArgument("end_line", "must be -1 (the last line), 0 or more")
        self._checks.count("version", version)
        tree = await tree_of(self._store, namespace)
        file = await tree.file(path)
        if file is None:
            raise await missing(tree, path)
        if version and version != file.version:
            kept = (file.item.id, version)
            file = file_of((await self._store.get_versions(namespace, [kept])).get(kept), 0)
            if file is None:
                redacted = await is_redacted(self._store, namespace, *kept)
                raise NotFound.file_version(namespace, path, version, redacted=redacted)
        return _lines(file, wanted, tree.revision)

    # --- writing ------------------------------------------------------------------------------

    async def write(
        self, namespace: str, path: str, content: str, expected: Expected, request: RequestKey | None
    ) -> WrittenFile:
        """Create a file or replace its content. Raises Conflict and AlreadyExists."""
        self._check(namespace, path, request)
        expected.check_fields(self._checks)
        self._checks.size("content", len(content.encode()), "file_bytes_max")

        async def plan(tree: Tree) -> Written:
            return await self._planning.write(tree, path, content, expected, "", FileRoom(self._checks))

        async with self._turn(namespace, path):
            return await self._write(namespace, plan, request)

    async def edit(
        self, namespace: str, path: str, edit: Edit, expected: Expected, request: RequestKey | None
    ) -> WrittenFile:
        """Change a part of a file. Raises NotFound, Conflict, FailedPrecondition."""
        self._check(namespace, path, request)
        expected.check_fields(self._checks)
        check_edit(edit)

        async def plan(tree: Tree) -> Written:
            return await self._planning.edit(tree, path, edit, expected, "", FileRoom(self._checks))

        async with self._turn(namespace, path):
            return await self._write(namespace, plan, request)

    async def _write(
        self,
        namespace: str,
        plan: Callable[[Tree], Awaitable[Written]],
        request: RequestKey | None,
    ) -> WrittenFile:
        """Write what is planned, and plan again if files have changed since."""

        async def attempt() -> WrittenFile:
            if request and (receipt := await self._store.find_receipt(namespace, request)):
                return _written_of(receipt, degraded_then(receipt))
            tree = await tree_of(self._store, namespace)
            planned = await plan(tree)
            if not planned.created:
                return await self._write_once(tree, planned, request)
            # Of new files of a namespace, each must know the others.
            async with self._turn(namespace, _NEW):
                tree = await tree_of(self._store, namespace)
                return await self._write_once(tree, await plan(tree), request)

        return await _repeated(attempt)

    async def _write_once(self, tree: Tree, planned: Written, request: RequestKey | None) -> WrittenFile:
        file = planned.file
        text = file.text
        note = [text.sha256, text.line_count, len(text.data), planned.created, planned.start_line]
        added = await self._items.add(
            tree.namespace,
            file.drafts,
            fields=["content", *(f"content.fragments[{at}]" for at in range(len(file.drafts) - 1))],
            removals=file.removals,
            on_duplicate=OnDuplicate.REPLACE,
            request=request,
            bounded=True,
            unchanged=unchanged_since(tree) if planned.created else None,
            remembered=Remembered(note),
        )
        if added.receipt.replayed:
            return _written_of(added.receipt, degraded_then(added.receipt))
        added.receipt.note = note
        return _written_of(added.receipt, added.degraded)

    # --- renaming and deleting ----------------------------------------------------------------

    async def rename(
        self, namespace: str, path: str, new_path: str, expected: Expected, request: RequestKey | None
    ) -> Changed:
        """Rename a file, or a folder with everything below it. Raises NotFound, Conflict, AlreadyExists."""
        self._check(namespace, path, request)
        check_rename(self._checks, path, new_path)
        expected.check_fields(self._checks)

        async def attempt() -> Changed:
            receipt = await self._store.find_receipt(namespace, request) if request else None
            if receipt is None:
                tree = await tree_of(self._store, namespace)
                room = FileRoom(self._checks)
                planned = await self._planning.rename(tree, path, new_path, expected, "", room)
                for item in moved_items(planned):
                    if await self._screening.of_update(namespace, item, request, "new_path"):
                        raise WriteRejected("new_path", "needs a review, for which a rename cannot wait")
                receipt, _ = await self._items.committing.commit(
                    namespace,
                    [planned.operation],
                    request=request,
                    unchanged=unchanged_since(tree),
                    note=lambda receipt, _: _note(receipt, planned.is_folder),
                )
                if not receipt.replayed:
                    _note(receipt, planned.is_folder)
            version = 0 if receipt.note == [True] else receipt.items[0].revision
            return Changed(len(receipt.items), receipt.revision, version)

        async with self._turn(namespace, _NEW):
            return await _repeated(attempt)

    async def delete(
        self, namespace: str, path: str, expected: Expected, request: RequestKey | None, *, recursive: bool
    ) -> Changed:
        """Remove a file, or a folder with everything below it. Raises NotFound, Conflict,
        FailedPrecondition.
        """
        self._check(namespace, path, request)
        expected.check_fields(self._checks)
        room = self._checks.limits.delete_items_max

        async def attempt() -> Changed:
            receipt = await self._store.find_receipt(namespace, request) if request else None
            if receipt is None:
                tree = await tree_of(self._store, namespace)
                planned = await self._planning.delete(tree, path, expected, room, "", recursive=recursive)
                receipt = await self._store.write(
                    namespace, [planned.files, planned.fragments], request=request, by=present_caller()
                )
            return Changed(receipt.counts[0], receipt.revision)

        async with self._turn(namespace, path):
            return await _repeated(attempt)

    def _check(self, namespace: str, path: str, request: RequestKey | None = None) -> None:
        self._checks.namespace(namespace)
        if request is not None:
            self._checks.request_id(request.id)
        check_path(self._checks, "path", path)

    def _turn(self, namespace: str, path: str) -> _Turn:
        """Return the lock for changes of a file.

        It only saves work: of concurrent writers of one file, all but one would split and embed a text in
        vain. Conditional writes keep them apart, also across servers.
        """
        return _Turn(self._turns.setdefault((namespace, path), asyncio.Lock()))


class _Turn:
    """A lock, for which a call waits aside."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock

    async def __aenter__(self) -> None:
        await aside(self._lock.acquire())

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


async def _repeated(attempt: Callable[[], Awaitable[T]]) -> T:
    """Try until no other writer comes between. A version that the caller requires is never such a case."""
    for number in range(TRIES):
        try:
            return await attempt()
        except (Conflict, NotFound) as error:
            if "path" in error.metadata:
                raise
            lost = error
        await pause_after(number)
    raise lost


def _note(receipt: Receipt, is_folder: bool) -> None:
    receipt.note = [is_folder]


def _written_of(receipt: Receipt, degraded: list[Degradation]) -> WrittenFile:
    """Return the answer of a receipt; a write that waits for a review has no version."""
    version = receipt.items[0].revision if receipt.items else 0
    sha256, line_count, size_bytes, created, start_line = receipt.note
    return WrittenFile(
        version, sha256, line_count, size_bytes, created, start_line, receipt.revision, degraded
    )  # fmt: skip


def _lines(file: File, wanted: Range, revision: int) -> ReadLines:
    text = FileText(file.text)
    count = text.line_count
    first, last = max(wanted.start_line, 1), count if wanted.end_line <= 0 else min(wanted.end_line, count)
    if first > max(count, 1):
        raise InvalidArgument("start_line", f"is {first}, but the file has {count} lines")
    if 0 < wanted.end_line < first:
        raise InvalidArgument("end_line", "is before start_line")
    content = text.lines(first, last)
    truncated = 0 < wanted.max_characters < len(content)
    if truncated:
        content = content[: wanted.max_characters]
        whole = content.rfind("\n") + 1
        content = content[:whole] if whole else content
        last = first + max(content.count("\n") - 1, 0) if whole else first
    if not count:
        first = last = 0
    return ReadLines(file, text, content, first, last, truncated, revision)
