"""Fills in missing vectors after the embedder failed, or after a change of model.

Pending items are recorded in the store, so a restart loses nothing. One task embeds them in batches, with a
share for each waiting namespace. `TextEmbedding.waiting` reports new namespaces; earlier ones are read from
the store once, at the start.

Among servers that share their records, one at a time works for each model. The others leave it the namespaces
they know of, and check now and then for work that no server does: after a crash, or when the working server's
embedder fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from memory_service.data_model import Item, NamespaceInfo, Vector, VectorFill
from memory_service.domain.embedding import TextEmbedding
from memory_service.domain.search_text import indexed_text
from memory_service.embedders.base import Embedder, TextsRefused
from memory_service.errors import InvalidArgument, MemoryServiceError, Unavailable
from memory_service.records.base import ModelMismatch
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.failpoints import reach
from memory_service.store import Store

_BATCH_ITEMS_MAX = 128
_NAMES_AT_ONCE = 1000
_PAUSE_MAX_S = 60.0
# A batch takes a few seconds. Doubled: the work of a crashed server waits that much longer; halved: a slow
# batch is embedded twice.
_CLAIM_S = 30.0
# Doubled: namespaces reported to this server may wait that much longer after the others finish.
_CLAIM_AGAIN_S = 5.0
# One indexed query by each idle server. Doubled: the work of a crashed server waits that much longer; halved:
# twice as many queries.
_ASK_AGAIN_S = 30.0
# Every provider accepts this text: if it is rejected, the texts are not to blame.
_HARMLESS_TEXT = "text"
_log = EventLog(__name__)


@dataclass(frozen=True)
class _Share:
    """The part of a batch that belongs to one namespace."""

    info: NamespaceInfo
    items: Sequence[Item]

    @property
    def texts(self) -> list[str]:
        """The texts to embed, blank for items without one."""
        return [indexed_text(item) for item in self.items]


class Backfill:
    """The task that fills in the vectors of pending items."""

    def __init__(self, store: Store, embedding: TextEmbedding, pause_s: float) -> None:
        """`pause_s` is the pause after a first failure; it doubles with each further one."""
        self._store = store
        self._embedding = embedding
        self._pause_s = pause_s
        self._batch_items = _BATCH_ITEMS_MAX
        # The position up to which each namespace was processed.
        self._done: dict[str, int] = {}
        # The last name read from the store; None after the last one.
        self._last_name: str | None = ""
        self._task = f"backfill {embedding.model}"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work as long as the context lasts."""
        if self._embedding.embedder is None:
            yield
            return
        task = asyncio.create_task(self._run(self._embedding.embedder))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self, embedder: Embedder) -> None:
        failures = 0
        while True:
            try:
                await self._some_waiting()
                if await self._store.claim(self._task, _CLAIM_S) is None:
                    await asyncio.sleep(_CLAIM_AGAIN_S)
                    continue
                await self._fill_batch(embedder)
                failures = 0
                if not len(self._embedding.waiting):
                    await self._store.give_up(self._task)
                # Let others run first, even if nothing here had to wait.
                await asyncio.sleep(0)
            except Exception as error:
                failures += 1
                await self._let_others_try()
                if isinstance(error, MemoryServiceError):
                    _log.warning("backfill_failed", reason=error.reason, failures=failures)
                else:
                    _log.error("backfill_failed", failures=failures, exc_info=error)
                await self._pause(failures)

    async def _some_waiting(self) -> None:
        """Return when a namespace is waiting, reported to this server or found in the store."""
        await self._find_waiting()
        again_s = random.uniform(1, 1.2) * _ASK_AGAIN_S if self._store.capabilities.shared else None
        while not len(self._embedding.waiting):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(again_s):
                    await self._embedding.waiting.some()
                return
            self._last_name = ""
            await self._find_waiting()

    async def _let_others_try(self) -> None:
        """Release the claim, because another server's embedder may succeed."""
        with contextlib.suppress(MemoryServiceError):
            await self._store.give_up(self._task)

    async def _pause(self, failures: int) -> None:
        """Wait before the next try. Later pauses end early when the embedder answers another call."""
        pause_s = min(self._pause_s * 2 ** min(failures - 1, 16), _PAUSE_MAX_S)
        # Servers must not all retry at once when a provider recovers.
        pause_s *= random.uniform(1, 1.2)
        await asyncio.sleep(min(pause_s, self._pause_s * 1.1))
        self._embedding.answered.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s - self._pause_s):
                await self._embedding.answered.wait()

    async def _find_waiting(self) -> None:
        """Read waiting namespaces from the store, up to those at the time of the call."""
        while self._last_name is not None and not len(self._embedding.waiting):
            names = await self._store.namespaces_with_pending(
                self._last_name, _NAMES_AT_ONCE, model=self._embedding.model
            )
            for name in names:
                self._embedding.waiting.add(name)
            self._last_name = names[-1] if len(names) == _NAMES_AT_ONCE else None

    async def _fill_batch(self, embedder: Embedder) -> None:
        """Embed a batch of pending items and write the vectors."""
        waiting = self._embedding.waiting
        names = waiting.take(self._batch_items)
        try:
            shares = await self._take_shares(names)
        except BaseException:
            for name in names:
                waiting.add(name)
            raise
        for share in shares:
            # There may be more of it; if not, the next read shows that.
            waiting.add(share.info.name)
        if not shares:
            return
        reach("reembedding.before_batch")
        try:
            vectors = await self._embed(embedder, [text for share in shares for text in share.texts])
        except Unavailable:
            if self._batch_items == 1:
                # One text that makes the provider fail must not block all the others.
                self._pass(shares)
            self._batch_items = max(1, self._batch_items // 2)
            raise
        self._batch_items = min(_BATCH_ITEMS_MAX, self._batch_items * 2)
        reach("reembedding.after_embedding")
        await self._write(shares, vectors)
        reach("reembedding.after_batch")
        self._pass(shares)

    async def _take_shares(self, names: Sequence[str]) -> list[_Share]:
        """Return a share of the batch for each namespace that has something to embed."""
        limit = max(1, self._batch_items // len(names))
        shares = []
        for name in names:
            info = await self._store.namespace(name)
            if info is None or not info.pending_count or self._embedding.obstacle(info) is not None:
                self._done.pop(name, None)
                continue
            items = await self._store.pending_items(name, self._done.get(name, 0), limit)
            if not items and self._done.pop(name, 0):
                # Start again from the beginning: items may have been written at earlier positions, or changed
                # in the meantime.
                items = await self._store.pending_items(name, 0, limit)
            if items:
                shares.append(_Share(info, items))
        return shares

    def _pass(self, shares: Sequence[_Share]) -> None:
        for share in shares:
            self._done[share.info.name] = share.items[-1].position

    async def _embed(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector | None]:
        """Return the vector of each text, None for blank and rejected ones."""
        at = [n for n, text in enumerate(texts) if text.strip()]
        vectors: list[Vector | None] = [None] * len(texts)
        if at:
            found = await self._embed_or_halve(embedder, [texts[n] for n in at])
            for n, vector in zip(at, found, strict=True):
                vectors[n] = vector
        return vectors

    async def _embed_or_halve(self, embedder: Embedder, texts: list[str]) -> list[Vector | None]:
        try:
            return await embedder.embed(texts, background=True)
        except TextsRefused:
            if len(texts) == 1:
                await self._check_taken(embedder)
                _log.warning("text_refused_by_embedder", model=embedder.name, characters=len(texts[0]))
                return [None]
        half = len(texts) // 2
        first = await self._embed_or_halve(embedder, texts[:half])
        return first + await self._embed_or_halve(embedder, texts[half:])

    async def _check_taken(self, embedder: Embedder) -> None:
        """Raise Unavailable if the embedder rejects every text."""
        try:
            await embedder.embed([_HARMLESS_TEXT], background=True)
        except TextsRefused as error:
            raise Unavailable.embedder() from error

    async def _write(self, shares: Sequence[_Share], vectors: Sequence[Vector | None]) -> None:
        found = iter(vectors)
        await asyncio.gather(
            *(
                self._fill(
                    share.info,
                    [VectorFill(item.position, item.revision, next(found)) for item in share.items],
                )
                for share in shares
            )
        )

    async def _fill(self, info: NamespaceInfo, fills: Sequence[VectorFill]) -> None:
        try:
            await self._store.fill_vectors(info.name, info.uid, self._embedding.model, fills)
        except (ModelMismatch, InvalidArgument) as error:
            # A concurrent change affected the namespace's vectors: the server no longer makes them.
            _log.warning("backfill_refused", uid=info.uid, reason=error.reason)
