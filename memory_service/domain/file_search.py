"""Searches files by their fragments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.data_model import Item, ItemKind, TextPart
from memory_service.domain.checks import Checks
from memory_service.domain.embedding import Degradation
from memory_service.domain.file_items import File, file_of
from memory_service.domain.file_lookup import tree_of
from memory_service.domain.file_paths import FILE_TAG, checked_place
from memory_service.domain.file_text import line_at
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.retrieve_options import RetrieveOptions, Selection
from memory_service.errors import InvalidArgument
from memory_service.runtime.clock import now_us
from memory_service.store import Store

_DEFAULT_LIMIT = 5


@dataclass(slots=True)
class FileHit:
    """A piece of a file that was found, with its lines."""

    file: File
    text: str
    start_line: int
    end_line: int
    score: float


@dataclass(slots=True)
class FileHits:
    """The hits of a search, the best first."""

    hits: list[FileHit]
    revision: int
    degraded: Sequence[Degradation] = ()


class FileSearch:
    """Searches files."""

    def __init__(self, store: Store, retrieval: Retrieval, checks: Checks) -> None:
        self._store = store
        self._retrieval = retrieval
        self._checks = checks

    async def search(
        self, namespace: str, query: str, path: str, *, limit: int | None, max_characters: int
    ) -> FileHits:
        """Return the pieces that match a text best, of all files or those at or below a path."""
        self._checks.namespace(namespace)
        if not query:
            raise InvalidArgument("query", "is required")
        self._checks.text("query", query)
        place = checked_place(self._checks, "path", path)
        limit = _DEFAULT_LIMIT if limit is None else limit
        self._checks.count("limit", limit)
        self._checks.size("limit", limit, "search_files_max")
        self._checks.count("max_characters", max_characters)
        selection = Selection(kinds=frozenset({ItemKind.FILE_FRAGMENT}))
        if place:
            tree = await tree_of(self._store, namespace)
            ids = [file.item.id async for file in tree.files(await tree.positions(place))]
            if not ids:
                return FileHits([], tree.revision)
            selection.any_tag = tuple((FILE_TAG, one) for one in ids)
        page = await self._retrieval.retrieve(namespace, RetrieveOptions(selection, limit, query))
        hits = await self._hits(namespace, page.items, page.scores)
        return FileHits(_fitting(hits, max_characters), page.revision, page.degraded)

    async def _hits(
        self, namespace: str, fragments: Sequence[Item], scores: Sequence[float]
    ) -> list[FileHit]:
        """Return the hits of fragments, without those whose file is gone or has changed."""
        owners = [fragment.facet.tags.get(FILE_TAG, "") if fragment.facet else "" for fragment in fragments]
        items = await self._store.get_items(namespace, list(dict.fromkeys(owners)))
        files = {one: file_of(item, now_us()) for one, item in items.items()}
        hits = []
        for fragment, owner, score in zip(fragments, owners, scores, strict=True):
            file = files.get(owner)
            start = file.start_of(fragment) if file else None
            if file and start is not None and isinstance(fragment.content, TextPart):
                text = fragment.content.text
                first = line_at(file.text, start)
                hits.append(FileHit(file, text, first, first + text.count("\n"), score))
        return hits


def _fitting(hits: list[FileHit], max_characters: int) -> list[FileHit]:
    """Return the best hits whose texts fit together; 0: all."""
    taken, chars = [], 0
    for hit in hits:
        chars += len(hit.text)
        if max_characters and chars > max_characters:
            break
        taken.append(hit)
    return taken
