"""Brings files back as an undo restores them: at a free path, with their fragments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memory_service.data_model import Facet, OnDuplicate, WritesBy
from memory_service.domain.checks import Checks
from memory_service.domain.committing import Committing
from memory_service.domain.file_items import File, draft_of, file_of
from memory_service.domain.file_lookup import Tree, tree_of
from memory_service.domain.file_text import FileText
from memory_service.domain.file_vacancy import clashes, taken, unchanged_since
from memory_service.domain.item_writing import write_of
from memory_service.domain.splitting import Split, split_text
from memory_service.operations import AddItems, RemoveItems
from memory_service.records.base import RestoredFiles
from memory_service.runtime.caller import present_caller
from memory_service.store import Store


@dataclass(slots=True)
class FilesPlanned:
    """What the store needs to restore files, and the fragments to remove afterwards."""

    files: RestoredFiles
    left_over: list[str] = field(default_factory=list)


class FileUndo:
    """Prepares files for an undo. `split` is how files are split into fragments."""

    def __init__(self, store: Store, committing: Committing, checks: Checks, split: Split) -> None:
        self._store = store
        self._committing = committing
        self._checks = checks
        self._split = split

    async def plan(self, namespace: str, files: Mapping[str, int], whose: WritesBy) -> FilesPlanned:
        """Plan how files come back at a version, given by id; those at version 0 are to be removed.

        Fragments of the restored versions are written at once: searches pass over them until their file has
        them. A file whose former path is taken keeps its present one.
        """
        tree = await tree_of(self._store, namespace)
        present: dict[str, str] = {}
        wanted: dict[str, str] = {}
        # One by one: a file may be large.
        for file_id, revision in files.items():
            now, then = (
                await self._file(namespace, file_id, 0),
                await self._file(namespace, file_id, revision),
            )
            if now and then and revision:
                present[file_id], wanted[file_id] = now.path, then.path
        paths = await _settled(tree, present, wanted, files)
        facets: dict[tuple[str, int], Facet] = {}
        planned = FilesPlanned(RestoredFiles(facets, unchanged_since(tree)))
        for file_id, path in paths.items():
            version = file_id, files[file_id]
            facets[version] = await self._prepare(tree, version, path, whose, planned.left_over)
        return planned

    async def clean(self, namespace: str, planned: FilesPlanned) -> None:
        """Remove the fragments that no restored file has."""
        if planned.left_over:
            await self._store.write(namespace, [RemoveItems(planned.left_over)], by=present_caller())

    async def _prepare(
        self, tree: Tree, version: tuple[str, int], path: str, whose: WritesBy, left_over: list[str]
    ) -> Facet:
        """Write the fragments that a restored version lacks; return the facet that it needs."""
        file_id, revision = version
        now = await self._file(tree.namespace, file_id, 0)
        then = await self._file(tree.namespace, file_id, revision)
        assert now is not None and then is not None
        item, text = then.item, FileText(then.text)
        pieces = await split_text(text.text, self._split, self._checks.limits.document_fragments_max, path)
        # Those of the writer go with a later step of the undo.
        staying = [one for one in await tree.fragments(now) if not whose.has(one.provenance, one.update_us)]
        fitting = [one for one in staying if one.provenance == item.provenance]
        planned = draft_of(
            path, text, pieces, file_id=file_id, current=now, fragments=fitting, reuse=True, claims=None
        )
        left_over += planned.removals
        left_over += [one.id for one in staying if one not in fitting]
        writes = [write_of(draft, item.provenance, item.update_us) for draft in planned.drafts[1:]]
        if writes:
            await self._committing.commit(tree.namespace, [AddItems(writes, OnDuplicate.REPLACE)])
        facet = planned.drafts[0].facet
        assert facet is not None
        return facet

    async def _file(self, namespace: str, file_id: str, revision: int) -> File | None:
        """Return a file at a version, or 0 for the present one."""
        if not revision:
            return file_of((await self._store.get_items(namespace, [file_id])).get(file_id), 0)
        versions = await self._store.get_versions(namespace, [(file_id, revision)])
        return file_of(versions.get((file_id, revision)), 0)


async def _settled(
    tree: Tree, present: Mapping[str, str], wanted: Mapping[str, str], concerned: Mapping[str, int]
) -> dict[str, str]:
    """Return the path of each file: the wanted one, or the present one if another file is in the way."""
    paths = dict(wanted)
    moving = {file_id for file_id, path in wanted.items() if path != present[file_id]}
    blocked = {file_id for file_id in moving if await taken(tree, wanted[file_id], concerned.keys())}
    while blocked := blocked or moving & clashes(paths):
        paths |= {file_id: present[file_id] for file_id in blocked}
        moving -= blocked
        blocked = set()
    return paths
