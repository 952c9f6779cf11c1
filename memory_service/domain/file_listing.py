"""Lists the files and folders below a folder."""

from __future__ import annotations

from dataclasses import dataclass

from memory_service.domain.checks import Checks
from memory_service.domain.file_items import File
from memory_service.domain.file_lookup import tree_of
from memory_service.domain.file_paths import checked_place, folders_of
from memory_service.domain.page_tokens import PageTokens
from memory_service.errors import NotFound
from memory_service.store import Store


@dataclass(slots=True)
class Entry:
    """A file, or a folder with the sums of all files below it."""

    path: str
    version: int = 0
    """0: a folder."""
    size_bytes: int = 0
    file_count: int = 0
    create_us: int = 0
    update_us: int = 0

    def add(self, file: File, size_bytes: int) -> None:
        """Count a file that is below the folder."""
        item = file.item
        self.create_us = min(self.create_us, item.create_us) if self.file_count else item.create_us
        self.update_us = max(self.update_us, item.update_us)
        self.size_bytes += size_bytes
        self.file_count += 1


@dataclass(slots=True)
class EntryPage:
    """A page of entries, by path."""

    entries: list[Entry]
    revision: int
    next_page_token: str = ""


class FileListing:
    """Lists files."""

    def __init__(self, store: Store, checks: Checks, tokens: PageTokens) -> None:
        self._store = store
        self._checks = checks
        self._tokens = tokens

    async def list_files(
        self, namespace: str, path: str, depth: int, *, page_size: int, page_token: str
    ) -> EntryPage:
        """Return a page of the entries at most `depth` levels below a folder, 0 for all levels.

        Raises NotFound for a path at which there is neither a file nor a folder.
        """
        self._checks.namespace(namespace)
        place = checked_place(self._checks, "path", path)
        self._checks.count("depth", depth)
        size = self._checks.page_size(page_size)
        scope = ("files", namespace, place, depth)
        after = str(self._tokens.read(scope, page_token)[0]) if page_token else ""
        tree = await tree_of(self._store, namespace)
        positions = await tree.positions(place)
        if place and not positions:
            raise NotFound.file(namespace, path)
        entries: dict[str, Entry] = {}
        async for file in tree.files(positions):
            _add(entries, file, place, depth)
        ordered = sorted(name for name in entries if name > after)
        page = EntryPage([entries[name] for name in ordered[:size]], tree.revision)
        if len(ordered) > size:
            page.next_page_token = self._tokens.make(scope, [ordered[size - 1]])
        return page


def _add(entries: dict[str, Entry], file: File, place: str, depth: int) -> None:
    """Add a file and the folders between it and the listed one."""
    above, size_bytes = place.count("/"), file.kept.size_bytes
    for folder in folders_of(file.path):
        level = folder.count("/") - above
        if level > 0 and (not depth or level <= depth):
            entries.setdefault(folder, Entry(folder)).add(file, size_bytes)
    if not depth or file.path.count("/") - above <= depth:
        item = file.item
        entries[file.path] = Entry(file.path, file.version, size_bytes, 0, item.create_us, item.update_us)
