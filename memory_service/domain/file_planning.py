"""Plans changes of files: what a change would write, by the files that it finds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from memory_service.data_model import Item, ItemWrite, OnDuplicate, ProvenanceDraft
from memory_service.domain.checks import Checks
from memory_service.domain.file_edits import Edit, changed_field, edited
from memory_service.domain.file_items import File, FileDraft, draft_of
from memory_service.domain.file_lookup import Tree, missing
from memory_service.domain.file_paths import check_path, tags_of
from memory_service.domain.file_text import FileText
from memory_service.domain.file_vacancy import check_free
from memory_service.domain.ids import new_id
from memory_service.domain.items import Items
from memory_service.domain.provenance import of_update
from memory_service.domain.splitting import Split, split_text
from memory_service.errors import (
    Conflict,
    FailedPrecondition,
    InvalidArgument,
    LimitExceeded,
    NotFound,
)
from memory_service.operations import AddItems, RemoveAt
from memory_service.runtime.clock import now_us

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Expected:
    """What a caller requires of a file: a version, a content, both or nothing."""

    version: int | None = None
    sha256: str = ""

    def check_fields(self, checks: Checks, prefix: str = "") -> None:
        """Check the fields themselves. Raises InvalidArgument."""
        if self.version is not None:
            checks.count(f"{prefix}expected_version", self.version)
        if self.sha256 and not _SHA256.fullmatch(self.sha256):
            raise InvalidArgument(f"{prefix}expected_sha256", "must be 64 lower-case hexadecimal digits")

    def check(self, path: str, file: File | None) -> None:
        """Compare with the file at a path. Raises Conflict."""
        version = file.version if file else 0
        if self.version is not None and self.version != version:
            raise Conflict.file_version(path, self.version, version)
        if self.sha256:
            digest = FileText(file.text).sha256 if file else ""
            if digest != self.sha256:
                raise Conflict.file_digest(path, self.sha256, version, digest)


class FileRoom:
    """How many files one call may still change, and of which total size: it holds them all in memory."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._files = self._bytes = 0

    def take(self, field: str, nbytes: int, files: int = 1) -> None:
        """Count files to be changed, with their larger size before or after. Raises LimitExceeded."""
        self._files += files
        self._bytes += nbytes
        self._checks.size(field, self._files, "changed_files_max")
        self._checks.size(field, self._bytes, "changed_files_bytes_max")


@dataclass(slots=True)
class Written:
    """What a write or an edit of a file would do."""

    file: FileDraft
    created: bool = False
    start_line: int = 1


@dataclass(slots=True)
class Renamed:
    """What a rename would do."""

    operation: AddItems
    is_folder: bool


@dataclass(slots=True)
class Removed:
    """What a deletion would do, and to how many files."""

    files: RemoveAt
    fragments: RemoveAt


class FilePlanning:
    """Plans changes. `split` is how files are split into fragments."""

    def __init__(self, items: Items, checks: Checks, split: Split) -> None:
        self._items = items
        self._checks = checks
        self._split = split

    async def write(
        self, tree: Tree, path: str, content: str, expected: Expected, prefix: str, room: FileRoom
    ) -> Written:
        """Plan the creation of a file, or the replacement of its content. Raises Conflict, AlreadyExists."""
        current = await tree.file(path)
        expected.check(path, current)
        if current is None:
            await check_free(tree, path)
        file = await self._next(tree, path, content, current, None, f"{prefix}content", room)
        return Written(file, created=current is None)

    async def edit(
        self, tree: Tree, path: str, edit: Edit, expected: Expected, prefix: str, room: FileRoom
    ) -> Written:
        """Plan an edit. Raises NotFound, Conflict, and what the edit raises."""
        current = await tree.file(path)
        if current is None:
            raise await missing(tree, path)
        expected.check(path, current)
        text, start_line = edited(path, current.text, edit, prefix)
        field = f"{prefix}{changed_field(edit)}"
        # The rest of the text stays, so that the file is trusted no more than before.
        claims = ProvenanceDraft(trust=current.item.trust) if current.item.trust < 1 else None
        file = await self._next(tree, path, text, current, claims, field, room)
        return Written(file, start_line=start_line)

    async def _next(
        self,
        tree: Tree,
        path: str,
        content: str,
        current: File | None,
        claims: ProvenanceDraft | None,
        field: str,
        room: FileRoom,
    ) -> FileDraft:
        """Return the next version of a file. Raises LimitExceeded for `field`."""
        text = FileText(content)
        self._checks.size(field, len(text.data), "file_bytes_max")
        room.take(field, max(len(text.data), current.kept.size_bytes if current else 0))
        pieces = await split_text(content, self._split, self._checks.limits.document_fragments_max, field)
        file_id = current.item.id if current else new_id(now_us())
        fragments = await tree.fragments(current) if current else []
        planned = draft_of(
            path, text, pieces, file_id=file_id, current=current, fragments=fragments, reuse=False,
            claims=claims,
        )  # fmt: skip
        if current is None or not fragments:
            return planned
        # A fragment has the provenance of its file, also for an undo: another writer makes new ones.
        provenance = await self._items.provenance_of(tree.namespace, planned.drafts[0])
        if provenance != current.item.provenance:
            return planned
        return draft_of(
            path, text, pieces, file_id=file_id, current=current, fragments=fragments, reuse=True,
            claims=claims,
        )  # fmt: skip

    async def rename(
        self, tree: Tree, path: str, new_path: str, expected: Expected, prefix: str, room: FileRoom
    ) -> Renamed:
        """Plan a rename of a file or a folder. Raises NotFound, Conflict, AlreadyExists, LimitExceeded."""
        file = await tree.file(path)
        if file is None:
            await self._folder(tree, path, expected, prefix)
        else:
            expected.check(path, file)
        await check_free(tree, new_path)
        positions = [file.item.position] if file else await tree.positions(path)
        room.take(f"{prefix}path", 0, len(positions))
        async for one in tree.files(positions):
            room.take(f"{prefix}path", one.kept.size_bytes, 0)
        writes: list[ItemWrite] = []
        now = now_us()
        async for one in tree.files(positions, with_text=True):
            moved = new_path + one.path.removeprefix(path)
            check_path(self._checks, f"{prefix}new_path", moved)
            writes.append(_moved(one, moved, now))
        return Renamed(AddItems(writes, OnDuplicate.REPLACE), is_folder=file is None)

    async def delete(
        self, tree: Tree, path: str, expected: Expected, room: int, prefix: str, *, recursive: bool
    ) -> Removed:
        """Plan a deletion of a file or a folder, of `room` items at most. Raises NotFound, Conflict,
        FailedPrecondition, LimitExceeded.
        """
        file = await tree.file(path)
        if file is None:
            await self._folder(tree, path, expected, prefix)
            if not recursive:
                raise FailedPrecondition.folder_not_empty(tree.namespace, path)
        else:
            expected.check(path, file)
        positions = await tree.positions(path)
        limit = self._checks.limits.delete_items_max
        ids: list[str] = []
        if len(positions) <= room:
            ids = [one.item.id async for one in tree.files(positions)]
        fragments = await tree.fragment_positions(ids)
        count = len(positions) + len(fragments)
        if count > room:
            raise LimitExceeded(f"{prefix}path", "delete_items_max", limit, limit - room + count)
        revision = tree.revision
        return Removed(RemoveAt(positions, revision), RemoveAt(fragments, revision))

    async def _folder(self, tree: Tree, path: str, expected: Expected, prefix: str) -> None:
        """Check that a path is a folder. Raises NotFound, and InvalidArgument if a version is expected."""
        if not await tree.is_folder(path):
            expected.check(path, None)
            raise NotFound.file(tree.namespace, path)
        if expected.version is not None:
            raise InvalidArgument(f"{prefix}expected_version", "is not valid for a folder")


def check_rename(checks: Checks, path: str, new_path: str, prefix: str = "") -> None:
    """Check the new path of a rename. Raises InvalidArgument."""
    check_path(checks, f"{prefix}new_path", new_path)
    if new_path == path:
        raise InvalidArgument(f"{prefix}new_path", "is the path")
    if new_path.startswith(f"{path}/"):
        raise InvalidArgument(f"{prefix}new_path", "is below the path")


def moved_items(renamed: Renamed) -> Sequence[Item]:
    """Return the files of a rename as they will be."""
    return [write.item for write in renamed.operation.writes]


def _moved(file: File, path: str, now: int) -> ItemWrite:
    """Return the write that gives a file another path."""
    assert file.item.facet is not None
    kept = msgspec.structs.replace(file.kept, path=path)
    facet = msgspec.structs.replace(file.item.facet, tags=tags_of(path), attributes=msgspec.to_builtins(kept))
    item = msgspec.structs.replace(
        file.item, update_us=now, facet=facet, embedding=None, wire=None, framed=None,
        provenance=of_update(file.item, whole=False, content=False),
    )  # fmt: skip
    return ItemWrite(item, "", keep_vector=True, expected_revision=file.version)
