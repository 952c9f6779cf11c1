"""Finds files by their paths."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from memory_service.data_model import Item, ItemFilter, ItemKind, Since
from memory_service.domain.file_items import File, file_of
from memory_service.domain.file_paths import FILE_TAG, folder_tag, folders_of, path_tag
from memory_service.errors import AlreadyExists, NotFound
from memory_service.reading import Reading
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import Part
from memory_service.store import Store

_FILES = frozenset({ItemKind.FILE})
_FRAGMENTS = frozenset({ItemKind.FILE_FRAGMENT})
_LOADED_AT_ONCE = 100
"""Files loaded together. Doubled: a rename reads 200 files of 1 MiB at once."""


@dataclass(slots=True)
class Tree:
    """The files of a namespace, as of one check of its records. Paths are found through an index."""

    namespace: str
    reading: Reading

    @property
    def revision(self) -> int:
        """The revision of the namespace at that check."""
        return self.reading.info.revision if self.reading.info else 0

    async def file(self, path: str) -> File | None:
        """Return the file at a path: the last one written, if an import or an undo brought another."""
        files = await self._load(await self._scan(path_tag(path), -1))
        return max(files, key=lambda file: file.version, default=None)

    async def is_folder(self, path: str) -> bool:
        """Return whether a file is below a path."""
        return bool(await self._scan(folder_tag(path), 1))

    async def positions(self, place: str) -> list[int]:
        """Return the positions of the file at a place, or of all files below it; "" is all files."""
        if not place:
            return await self._scan(None, -1)
        return await self._scan(path_tag(place), -1) or await self._scan(folder_tag(place), -1)

    async def files(self, positions: Sequence[int], *, with_text: bool = False) -> AsyncIterator[File]:
        """Yield the files at these positions; without their texts unless asked for."""
        part = Part()
        for start in range(0, len(positions), _LOADED_AT_ONCE):
            for file in await self._load(positions[start : start + _LOADED_AT_ONCE], with_text=with_text):
                yield file
            await part.give_way_if_long()

    async def fragment_positions(self, file_ids: Sequence[str]) -> list[int]:
        """Return the positions of all fragments of some files."""
        if not file_ids:
            return []
        tags = tuple((FILE_TAG, file_id) for file_id in file_ids)
        return await self.reading.scan(ItemFilter(now_us(), kinds=_FRAGMENTS, any_tag=tags), -1, newest=False)

    async def fragments(self, file: File) -> list[Item]:
        """Return all fragments of a file."""
        found = await self.reading.load_items(await self.fragment_positions([file.item.id]))
        return [item for item in found if item is not None]

    async def check_free(self, path: str) -> None:
        """Raise AlreadyExists if a new file at this path would be a folder, or be below a file."""
        if await self.is_folder(path):
            raise AlreadyExists.path(self.namespace, path, "a folder")
        for folder in folders_of(path):
            if await self._scan(path_tag(folder), 1):
                raise AlreadyExists.path(self.namespace, folder, "a file")

    async def _scan(self, tag: tuple[str, str] | None, limit: int) -> list[int]:
        tags = () if tag is None else (tag,)
        return await self.reading.scan(ItemFilter(now_us(), kinds=_FILES, tags=tags), limit, newest=False)

    async def _load(self, positions: Sequence[int], *, with_text: bool = True) -> list[File]:
        items = await self.reading.load_items(positions, with_content=with_text)
        return [file for item in items if (file := file_of(item, now_us()))]


async def tree_of(store: Store, namespace: str) -> Tree:
    """Return the files of a namespace."""
    return Tree(namespace, await store.read(namespace))


def unchanged_since(tree: Tree) -> Since:
    """Return the precondition that no file was written since: planned paths are still free then."""
    return Since(tree.revision, kinds=frozenset({ItemKind.FILE}), removals=False)


async def paths_free_for(store: Store, namespace: str, items: Sequence[Item]) -> Since | None:
    """Return the precondition of a write that was planned earlier: the paths of its files are free, or of the
    same files; None: there are no files. Raises AlreadyExists.
    """
    files = [file for item in items if (file := file_of(item, 0))]
    if not files:
        return None
    tree = await tree_of(store, namespace)
    for file in files:
        current = await tree.file(file.path)
        if current is None:
            await tree.check_free(file.path)
        elif current.item.id != file.item.id:
            raise AlreadyExists.path(namespace, file.path, "a file")
    return unchanged_since(tree)


async def missing(tree: Tree, path: str) -> NotFound:
    """Return the error for a path without a file."""
    if await tree.is_folder(path):
        return NotFound.file(tree.namespace, path, f"{path!r} is a folder: ListFiles lists it")
    return NotFound.file(tree.namespace, path)
