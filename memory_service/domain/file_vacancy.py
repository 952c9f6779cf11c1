"""Which paths are free: a path names one file, and no file is in another one.

A write that gives a file a path checks this first, and requires that no file was written since.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memory_service.data_model import ItemKind, Since
from memory_service.domain.file_items import file_of
from memory_service.domain.file_lookup import Tree
from memory_service.domain.file_paths import folder_tag, folders_of, path_tag
from memory_service.errors import AlreadyExists
from memory_service.operations import AddItems, Operation


def unchanged_since(tree: Tree) -> Since:
    """Return the precondition that no file was written since: free paths are still free then."""
    return Since(tree.revision, kinds=frozenset({ItemKind.FILE}), removals=False)


async def taken(tree: Tree, path: str, ignored: Collection[str] = ()) -> tuple[str, str] | None:
    """Return what is in the way of a file at a path, and where; files with the ignored ids are not.

    That is a file at the path or above it, or a folder there.
    """
    if await tree.has_file(path_tag(path), ignored):
        return path, "a file"
    if await tree.has_file(folder_tag(path), ignored):
        return path, "a folder"
    for folder in folders_of(path):
        if await tree.has_file(path_tag(folder), ignored):
            return folder, "a file"
    return None


async def check_free(tree: Tree, path: str, ignored: Collection[str] = ()) -> None:
    """Raise AlreadyExists if a path is taken."""
    if found := await taken(tree, path, ignored):
        raise AlreadyExists.path(tree.namespace, *found)


async def check_all_free(tree: Tree, paths: Mapping[str, str]) -> None:
    """Raise AlreadyExists unless these files, with their paths by id, can all be written."""
    for path in paths.values():
        await check_free(tree, path, paths.keys())
    for file_id in clashes(paths):
        raise AlreadyExists.path(tree.namespace, paths[file_id], "a file")


def clashes(paths: Mapping[str, str]) -> set[str]:
    """Return the files whose path, given by id, is the path or a folder of another one, or is in it."""
    owners: dict[str, str] = {}
    found: set[str] = set()
    for file_id, path in sorted(paths.items(), key=lambda pair: pair[1].count("/")):
        for place in (path, *folders_of(path)):
            if place in owners:
                found |= {file_id, owners[place]}
        owners[path] = file_id
    return found


def placed_files(operations: Sequence[Operation]) -> dict[str, str]:
    """Return the paths of the files that operations add, by id; not of versions that follow a known one."""
    return {
        write.item.id: file.path
        for operation in operations
        if isinstance(operation, AddItems)
        for write in operation.writes
        if write.item.facet is not None and not write.expected_revision
        if (file := file_of(write.item, write.item.update_us))
    }
