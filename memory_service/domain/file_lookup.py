"""Finds files by their paths."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass

from memory_service.data_model import Item, ItemFilter, ItemKind
from memory_service.domain.file_items import File, file_of
from memory_service.domain.file_paths import FILE_TAG, folder_tag, path_tag
from memory_service.errors import NotFound
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
        """Return the file at a path."""
        return next(iter(await self._load(await self._scan(path_tag(path), 1))), None)

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

    async def has_file(self, tag: tuple[str, str], ignored: Collection[str] = ()) -> bool:
        """Return whether a file has a tag, other than those with the ignored ids."""
        positions = await self._scan(tag, len(ignored) + 1)
        if not ignored or not positions:
            return bool(positions)
        return any([file.item.id not in ignored async for file in self.files(positions)])

    async def _scan(self, tag: tuple[str, str] | None, limit: int) -> list[int]:
        tags = () if tag is None else (tag,)
        return await self.reading.scan(ItemFilter(now_us(), kinds=_FILES, tags=tags), limit, newest=False)

    async def _load(self, positions: Sequence[int], *, with_text: bool = True) -> list[File]:
        items = await self.reading.load_items(positions, with_content=with_text)
        return [file for item in items if (file := file_of(item, now_us()))]


async def tree_of(store: Store, namespace: str) -> Tree:
    """Return the files of a namespace."""
    return Tree(namespace, await store.read(namespace))


async def missing(tree: Tree, path: str) -> NotFound:
    """Return the error for a path without a file."""
    if await tree.is_folder(path):
        return NotFound.file(tree.namespace, path, f"{path!r} is a folder: ListFiles lists it")
    return NotFound.file(tree.namespace, path)
