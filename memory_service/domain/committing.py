"""Embeds what a write needs embedded, and writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from memory_service.data_model import (
    CLIENT_MODEL,
    ItemWrite,
    NamespaceInfo,
    OnDuplicate,
    Receipt,
    RequestKey,
    Since,
)
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.derivation import orphan_writes
from memory_service.domain.embedding import Degradation, TextEmbedding
from memory_service.domain.file_lookup import tree_of
from memory_service.domain.file_vacancy import check_all_free, placed_files, unchanged_since
from memory_service.domain.item_writing import completed, degraded_as_kept
from memory_service.errors import Conflict, Unavailable
from memory_service.operations import AddItems, Operation, ReplaceItem
from memory_service.records.base import FactsDerived, ModelMismatch, ParentsMissing
from memory_service.runtime.caller import present_caller
from memory_service.store import Store

Note = Callable[[Receipt, list[Degradation]], None]
"""Completes the receipt of a request that is applied for the first time."""


class Committing:
    """The last step of every write of items."""

    def __init__(self, store: Store, embedding: TextEmbedding, derived_max: int) -> None:
        self._store = store
        self._embedding = embedding
        self._derived_max = derived_max

    async def commit(
        self,
        namespace: str,
        operations: Sequence[Operation],
        *,
        request: RequestKey | None = None,
        released: str = "",
        unchanged: Since | None = None,
        note: Note | None = None,
    ) -> tuple[Receipt, list[Degradation]]:
        """Apply operations as `WriteStore.write` does, with vectors for texts that lack one. If facts go as
        derived, other facts lose their references to them in the same write. Raises TooManyDerived if more
        items would go as derived than one call may delete, and AlreadyExists if the path of a new file is
        taken; a caller that gives `unchanged` has checked this.

        Returns the degradations of this call, also for a repeated request.
        """
        paths = placed_files(operations) if unchanged is None else {}
        facts: frozenset[str] = frozenset()
        orphans: list[Operation] = []
        lost: Conflict
        for attempt in range(TRIES):
            try:
                if paths:
                    unchanged = await self._vacancy(namespace, paths, request)
                return await self._commit(
                    namespace, [*operations, *orphans], request, released, unchanged, note, facts
                )
            except FactsDerived as error:
                facts, lost = error.ids, error
                writes = await orphan_writes(self._store, namespace, facts)
                orphans = [AddItems(writes, OnDuplicate.REPLACE, forgets=True)] if writes else []
            except ParentsMissing as error:
                if not orphans:
                    raise
                # Perhaps of the orphans, which then go, too.
                facts, orphans, lost = frozenset(), [], error
            except Conflict as error:
                if not paths or "current_revision" not in error.metadata or "id" in error.metadata:
                    raise
                # Another file was written.
                lost = error
            await pause_after(attempt)
        raise lost

    async def _vacancy(
        self, namespace: str, paths: Mapping[str, str], request: RequestKey | None
    ) -> Since | None:
        """Return the precondition that the paths of files are free. Raises AlreadyExists."""
        if request is not None and await self._store.find_receipt(namespace, request) is not None:
            return None
        tree = await tree_of(self._store, namespace)
        await check_all_free(tree, paths)
        return unchanged_since(tree)

    async def _commit(
        self,
        namespace: str,
        operations: Sequence[Operation],
        request: RequestKey | None,
        released: str,
        unchanged: Since | None,
        note: Note | None,
        facts: frozenset[str],
    ) -> tuple[Receipt, list[Degradation]]:
        writes = [write for operation in operations for write in _writes_of(operation)]
        degraded = await self._give_vectors(namespace, writes)

        def complete(receipt: Receipt) -> None:
            receipt.degraded = degraded_as_kept(degraded)
            if note is not None:
                note(receipt, degraded)

        async def write() -> Receipt:
            return await self._store.write(
                namespace,
                operations,
                request=completed(request, complete),
                released=released,
                unchanged=unchanged,
                facts=facts,
                derived_max=self._derived_max,
                by=present_caller(),
            )

        try:
            receipt = await write()
        except ModelMismatch:
            # Another writer was first, with vectors from a client.
            degraded = self._forget_vectors(writes)
            receipt = await write()
        if degraded:
            await self._report_pending(namespace)
        return receipt, degraded

    async def _give_vectors(self, namespace: str, writes: Sequence[ItemWrite]) -> list[Degradation]:
        """Embed the texts that have no vector; return the degradations."""
        lacking = [
            w for w in writes if w.item.embedding is None and not w.keep_vector and w.search_text.strip()
        ]
        if not lacking:
            return []
        has_own = len(lacking) < sum(
            1 for w in writes if w.item.embedding is not None or w.search_text.strip()
        )
        # The write itself checks the model, but not whether there was none before it.
        info = await self._store.namespace(namespace, fresh=has_own)
        begins_with_own = has_own and (info is None or not info.model)
        if begins_with_own and self._embedding.obstacle(info) is None:
            return [self._embedding.foreign]
        return await self._embed(info, lacking)

    async def _embed(self, info: NamespaceInfo | None, writes: Sequence[ItemWrite]) -> list[Degradation]:
        """Give writes their vectors, or mark them as pending; return the degradations."""
        texts = [write.search_text for write in writes]
        try:
            vectors, trouble = await self._embedding.fitting_vectors(info, texts)
        except Unavailable:
            vectors, trouble = [], self._embedding.delayed
        for write in writes:
            # If the namespace moves to this model before the write, these items become pending.
            write.model, write.dimension = self._embedding.model, self._embedding.dimension
        if trouble is not None:
            return [trouble]
        for write, vector in zip(writes, vectors, strict=True):
            write.item.embedding = vector
            if vector is None:
                write.model = ""
        return []

    def _forget_vectors(self, writes: Sequence[ItemWrite]) -> list[Degradation]:
        for write in writes:
            if write.model != CLIENT_MODEL:
                write.item.embedding = None
        return [self._embedding.foreign]

    async def _report_pending(self, namespace: str) -> None:
        """Report pending items to the backfill."""
        info = await self._store.namespace(namespace)
        if info is not None and info.pending_count:
            self._embedding.waiting.add(namespace)


def _writes_of(operation: Operation) -> Sequence[ItemWrite]:
    match operation:
        case AddItems(writes):
            return writes
        case ReplaceItem(write):
            return [write]
    return ()
