"""The methods of a client that keep items and find them again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from memory_client._aio.transport import Bound
from memory_client._calls import importing, memory
from memory_client._calls.memory import as_ttl
from memory_client._calls.resume import Resumption
from memory_client.messages import Content
from memory_client.models import (
    Change,
    ImportSummary,
    ItemKind,
    MemoryItem,
    OnDuplicate,
    Provenance,
    Removed,
    Results,
    RetrieveMode,
    ScoreWeights,
    SourceKind,
    StateEntry,
    Vector,
)
from memory_client.unset import UNSET, Unset


class MemoryMethods(Bound):
    """Items: written, found, changed, removed, watched. All in the client's namespace."""

    async def add(
        self,
        content: Content,
        *,
        session_id: str = "",
        labels: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        embedding: Vector | None = None,
        importance: float | None = None,
        provenance: Provenance | None = None,
        ttl: timedelta | float | None = None,
        expire_time: datetime | None = None,
        create_time: datetime | None = None,
        id: str = "",
        request_id: str | None = None,
    ) -> MemoryItem:
        """Write one item. When this returns, it is on disk and every later read sees it.

        Args:
            content: A text, data (a mapping of JSON values), a `ChatMessage` or a `ToolCallResult`.
            session_id: The conversation that the item belongs to.
            labels: For exact matching, as in {"topic": "travel"}.
            metadata: JSON values to keep with the item.
            embedding: The content's vector. None: the server embeds the text.
            importance: 0 to 1, for searches that weigh it. None: not said, which counts as 0.5.
            provenance: Where the content comes from, and how far it is trusted. None: nothing is said.
            ttl: How long the item lives, a timedelta or seconds. None: for ever.
            expire_time: Another way to say it: the moment when the item ceases to exist.
            create_time: When it happened, an aware datetime. None: now.
            id: Names the item. Empty: the server makes an id.
            request_id: Applied once, however often it is sent. None: a new one for this call.

        Returns:
            The item as written, without its embedding.

        Raises:
            AlreadyExists: An item of this id exists.
            InvalidArgument: A field is malformed, or the vector has another dimension than the namespace.
        """
        item = MemoryItem(
            content=content,
            id=id,
            session_id=session_id,
            create_time=create_time,
            expire_time=expire_time,
            ttl=as_ttl(ttl),
            labels=labels or {},
            metadata=metadata or {},
            embedding=embedding,
            importance=importance,
            provenance=provenance,
        )
        return await self._transport.unary(memory.add(self._namespace, item, request_id))

    async def batch_add(
        self, items: Iterable[MemoryItem | Content], *, request_id: str | None = None
    ) -> list[MemoryItem]:
        """Write up to 1000 items, all or none; return them as written, in the same order."""
        return await self._transport.unary(memory.batch_add(self._namespace, items, request_id))

    async def import_items(
        self,
        records: importing.AsyncRecords,
        *,
        on_duplicate: OnDuplicate | str = OnDuplicate.FAIL,
        batch_records: int = importing.BATCH_RECORDS,
        timeout_s: float | None = None,
    ) -> ImportSummary:
        """Write any number of items and state entries as fast as the server takes them.

        The records are iterated as they are sent, in the event loop. They go in batches, each written
        whole or not at all. An import that breaks, or whose iterable raises, leaves the batches before
        that; send it again with `on_duplicate="skip"` if its items carry ids. What `export` gave keeps
        its kind: facts, interactions and documents are again what they were.

        Raises:
            AlreadyExists: A record exists already, and `on_duplicate` is "fail".
        """
        batcher = importing.Batcher(self._namespace, on_duplicate, batch_records)
        requests = importing.async_batches(batcher, records)
        return await self._transport.upload(importing.import_call(self._namespace), requests, timeout_s)

    async def retrieve(
        self,
        query: str | None = None,
        *,
        limit: int = 10,
        session_id: str = "",
        labels: Mapping[str, str] | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        min_score: float | None = None,
        mode: RetrieveMode | str | None = None,
        explain: bool = False,
        embedding: Vector | None = None,
        include_embedding: bool = False,
        kinds: Sequence[ItemKind | str] = (),
        filter: str = "",
        min_trust: float | None = None,
        sources: Sequence[SourceKind | str] = (),
        now: datetime | None = None,
        weights: ScoreWeights | None = None,
        context_window: int = 0,
        max_tokens: int | None = None,
        rerank: bool = False,
        record_usage: bool = False,
        page_size: int = 0,
    ) -> Results:
        """Return what an agent needs for its next step.

        Without a query these are the newest items, the oldest of them first; with one the best items,
        the best first.

        Args:
            query: A text to find items for.
            limit: The most results wanted. -1: all.
            session_id: Only items of this conversation. Empty: of any.
            labels: Only items that have all these labels.
            start_time: Only items whose create_time is at or after it.
            end_time: Only items whose create_time is before it.
            min_score: Only results that score at least this. Only with a query.
            mode: By what the query is answered. None: what fits it.
            explain: Add to each result how its score came about.
            embedding: The query's vector, in place of embedding the text.
            include_embedding: Return the items' vectors.
            kinds: Only items of one of these kinds. Empty: those of a conversation, which are plain items,
                messages, responses and reflections.
            filter: An expression over labels, metadata, role, kind and times, such as
                `labels.topic = "travel" AND NOT metadata.draft = true`: see docs/filters.md.
            min_trust: Only items that are trusted at least this much, 0 to 1.
            sources: Only items whose content comes from one of these. Empty: from any.
            now: What "yesterday" in the query is relative to, and from which ages count. None: the time of
                the call.
            weights: What a score is made of. None: the defaults. Only with a query.
            context_window: How many neighbours come with a result, at most so many before it and after it,
                0 to 20.
            max_tokens: What the texts of the results, with their neighbours, may take together, estimated,
                1 or more: the best that fit are returned, without a query the newest. None: no bound.
            rerank: Let the server's reranker put the best results in order: slower, and often better. Only
                with a query text.
            record_usage: Count each result as used once, for searches that weigh usage.
            page_size: How many results are fetched at a time; 0: as many as fit into a response.

        Returns:
            A list of results; its `degraded` names what the server could not do, if anything.

        Raises:
            InvalidArgument: An option is out of range, or `filter` is no expression; the message says where.
        """
        call = memory.retrieve(
            self._namespace,
            query,
            limit=limit,
            session_id=session_id,
            labels=labels,
            start_time=start_time,
            end_time=end_time,
            min_score=min_score,
            mode=mode,
            explain=explain,
            embedding=embedding,
            include_embedding=include_embedding,
            kinds=kinds,
            filter=filter,
            min_trust=min_trust,
            sources=sources,
            now=now,
            weights=weights,
            context_window=context_window,
            max_tokens=max_tokens,
            rerank=rerank,
            record_usage=record_usage,
            page_size=page_size,
        )
        return memory.results_of(await self._transport.all_pages(call))

    async def get(self, id: str, *, include_embedding: bool = False) -> MemoryItem:
        """Return one item.

        Raises:
            NotFound: No item of this id is in the namespace.
        """
        return await self._transport.unary(memory.get(self._namespace, id, include_embedding))

    def list_items(
        self,
        *,
        session_id: str = "",
        labels: Mapping[str, str] | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        newest_first: bool = False,
        include_embedding: bool = False,
        kinds: Sequence[ItemKind | str] = (),
        filter: str = "",
        min_trust: float | None = None,
        sources: Sequence[SourceKind | str] = (),
        page_size: int = 0,
    ) -> AsyncIterator[MemoryItem]:
        """Yield the items in the order in which they were added, page by page.

        The filters are those of `retrieve`. `page_size` is how many are fetched at a time; 0: 100.
        """
        call = memory.list_items(
            self._namespace,
            session_id=session_id,
            labels=labels,
            start_time=start_time,
            end_time=end_time,
            newest_first=newest_first,
            include_embedding=include_embedding,
            kinds=kinds,
            filter=filter,
            min_trust=min_trust,
            sources=sources,
            page_size=page_size,
        )
        return self._transport.entries(call)

    async def update(
        self,
        id: str,
        *,
        content: Content | Unset = UNSET,
        session_id: str | Unset = UNSET,
        labels: Mapping[str, str] | Unset = UNSET,
        metadata: Mapping[str, Any] | Unset = UNSET,
        create_time: datetime | Unset = UNSET,
        expire_time: datetime | Unset | None = UNSET,
        ttl: timedelta | float | Unset = UNSET,
        embedding: Vector | Unset = UNSET,
        importance: float | Unset | None = UNSET,
        expected_revision: int | None = None,
        request_id: str | None = None,
    ) -> MemoryItem:
        """Change those fields of an item that are given; return it as written.

        `labels` and `metadata` are replaced whole, `expire_time=None` lets the item live for ever,
        `importance=None` unsays it. New content that comes without an embedding is embedded by the server.
        With `expected_revision` the change happens only if that is the item's revision.

        Raises:
            NotFound: No item of this id is in the namespace.
            Conflict: The item has another revision; `metadata["current_revision"]` tells which.
        """
        call = memory.update(
            self._namespace,
            id,
            content=content,
            session_id=session_id,
            labels=labels,
            metadata=metadata,
            create_time=create_time,
            expire_time=expire_time,
            ttl=ttl,
            embedding=embedding,
            importance=importance,
            expected_revision=expected_revision,
            request_id=request_id,
        )
        return await self._transport.unary(call)

    async def delete(
        self, id: str, *, expected_revision: int | None = None, request_id: str | None = None
    ) -> int:
        """Remove an item and everything derived from it; return the namespace's revision.

        Raises:
            NotFound: No item of this id is in the namespace.
            Conflict: The item has another revision than `expected_revision`.
        """
        call = memory.delete(self._namespace, id, expected_revision, request_id)
        return await self._transport.unary(call)

    async def reset(self, *, request_id: str | None = None) -> Removed:
        """Remove everything of the namespace: items, state and history."""
        return await self._transport.unary(memory.reset(self._namespace, request_id))

    def watch(
        self,
        *,
        after_revision: int | None = None,
        heartbeat_interval: timedelta | float | None = None,
        give_up_after_s: float | None = None,
    ) -> AsyncGenerator[Change, None]:
        """Yield every change of the namespace, for as long as the caller wants.

        A stream that breaks because the server went away is taken up again where it broke, with no
        change lost or repeated. Closing the iterator ends the watch.

        Args:
            after_revision: Changes later than this. 0: all from the beginning. None: from now on.
            heartbeat_interval: How long the server may be silent, a timedelta or seconds. None: 15 s.
            give_up_after_s: Raise `Unavailable` when the server is away for longer. None: never.

        Raises:
            Unavailable: The server could not be reached at the first attempt, or for too long.
        """
        return self._transport.resumed(
            lambda position: memory.watch(self._namespace, position, heartbeat_interval),
            Resumption(after_revision, give_up_after_s),
        )

    def export(
        self,
        *,
        after_revision: int = 0,
        include_embedding: bool = False,
        give_up_after_s: float | None = 60.0,
    ) -> AsyncGenerator[MemoryItem | StateEntry, None]:
        """Yield every item and every state entry of the namespace, ordered by revision.

        A stream that breaks is taken up again where it broke, unless the server stays away for longer
        than `give_up_after_s`. To continue an export of another day, pass the revision of its last
        record, less one, as `after_revision`.

        Raises:
            NotFound: Nothing was ever written to the namespace.
        """
        return self._transport.resumed(
            lambda position: memory.export(self._namespace, position or 0, include_embedding),
            Resumption(after_revision, give_up_after_s),
        )
