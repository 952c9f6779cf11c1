"""The client's methods for items."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from memory_client._aio.transport import Bound
from memory_client._calls import importing, memory
from memory_client._calls.memory import as_ttl
from memory_client._calls.resume import Resumption
from memory_client.found import Deleted
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
    """Methods that write, find, change, remove and watch items of the client's namespace."""

    async def add(
        self,
        content: Content,
        *,
        session_id: str = "",
        labels: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        embedding: Vector | None = None,
        importance: float | None = None,
        index: str | None = None,
        provenance: Provenance | None = None,
        ttl: timedelta | float | None = None,
        expire_time: datetime | None = None,
        create_time: datetime | None = None,
        id: str = "",
        on_duplicate: OnDuplicate | str = OnDuplicate.FAIL,
        request_id: str | None = None,
    ) -> MemoryItem:
        """Write one item. When this returns, it is on disk and every later read sees it.

        Args:
            content: A text, data (a mapping of JSON values), a `ChatMessage` or a `ToolCallResult`. A mapping
                with "role" and "content" or "tool_calls" is a message in OpenAI's format and becomes a
                `ChatMessage`.
            session_id: The conversation that the item belongs to.
            labels: For exact matching, as in {"topic": "travel"}.
            metadata: JSON values to keep with the item.
            embedding: The content's vector. None: the server embeds the text.
            importance: 0 to 1, for searches that weigh it. None: counts as 0.5.
            index: The text to search in place of the content, by words and by vectors. Empty: searches do
                not find the item. None: the content.
            provenance: Where the content comes from, and how far it is trusted. None: not given.
            ttl: Time until the item expires, a timedelta or seconds. None: never.
            expire_time: When the item expires, in place of `ttl`.
            create_time: When it happened, an aware datetime. None: now.
            id: Id of the item. Empty: the server makes one.
            on_duplicate: What to do if an item with this id exists: "fail", "skip" or "replace".
            request_id: Makes a retry safe: the write is applied once. None: a new id for this call.

        Returns:
            The item as written, without its embedding. If it was skipped: the item as given here, with
            revision 0.

        Raises:
            AlreadyExists: An item with this id exists, and `on_duplicate` is "fail".
            InvalidArgument: A field is malformed, or the vector's dimension is not the namespace's.
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
            index=index,
            provenance=provenance,
        )
        return await self._transport.unary(memory.add(self._namespace, item, on_duplicate, request_id))

    async def batch_add(
        self,
        items: Iterable[MemoryItem | Content],
        *,
        on_duplicate: OnDuplicate | str = OnDuplicate.FAIL,
        request_id: str | None = None,
    ) -> list[MemoryItem]:
        """Write up to 1000 items, all or none. Return them as written, in the same order.

        With `on_duplicate="skip"`, items whose id exists are neither written nor returned.

        Raises:
            AlreadyExists: An item with one of the ids exists, and `on_duplicate` is "fail".
        """
        call = memory.batch_add(self._namespace, items, on_duplicate, request_id)
        return await self._transport.unary(call)

    async def import_items(
        self,
        records: importing.AsyncRecords,
        *,
        on_duplicate: OnDuplicate | str = OnDuplicate.FAIL,
        batch_records: int = importing.BATCH_RECORDS,
        timeout_s: float | None = None,
    ) -> ImportSummary:
        """Write any number of items and state entries as fast as the server takes them.

        The records are iterated while they are sent, in the event loop. They are sent in batches, each
        written as a whole or not at all. If an import breaks, or its iterable raises, earlier batches stay
        written; if the items have ids, send them again with `on_duplicate="skip"`. Records from `export`
        keep their kind, so facts, interactions and documents are restored as such.

        Raises:
            AlreadyExists: An item already exists, and `on_duplicate` is "fail".
            Conflict: A state key already exists, and `on_duplicate` is "fail".
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
        order_by: str = "",
        skip: int = 0,
        page_size: int = 0,
        queries: Sequence[str] = (),
        namespaces: Sequence[str] = (),
        min_relevance: float | None = None,
        neighbour_weight: float | None = None,
        whole_exchanges: bool = False,
        refresh_ttl: bool = False,
        time_zone: str = "",
    ) -> Results:
        """Return what an agent needs for its next step.

        With a query, these are the best items, best first; without one, the newest items, the oldest of
        them first.

        Args:
            query: A text to find items for.
            limit: Maximum number of results. -1: all.
            session_id: Only items of this conversation. Empty: of any.
            labels: Only items that have all these labels.
            start_time: Only items whose create_time is at or after it.
            end_time: Only items whose create_time is before it.
            min_score: Only results that score at least this. Only with a query.
            mode: How the query is matched. None: as suits the query.
            explain: Explain the score of each result.
            embedding: The query's vector, in place of embedding the text.
            include_embedding: Return the items' vectors.
            kinds: Only items of these kinds. Empty: those of a conversation, which are plain items, messages,
                responses and reflections.
            filter: An expression over labels, metadata, role, kind and times, such as
                `labels.topic = "travel" AND NOT metadata.draft = true`: see docs/filters.md.
            min_trust: Only items that are trusted at least this much, 0 to 1.
            sources: Only items whose content comes from these sources. Empty: from any.
            now: The time to which "yesterday" in the query and the items' ages are relative. None: the time
                of the call.
            weights: Weights of the parts of a score. None: the defaults. Only with a query.
            context_window: Up to this many neighbours before and after each result, 0 to 20.
            max_tokens: Maximum estimated tokens of the results' texts together, neighbours included, at least
                1. The best results that fit are returned, without a query the newest. None: no limit.
            rerank: Reorder the best results by the server's reranker: slower, and often better. Only with a
                query text.
            record_usage: Count each result as used once, for searches that weigh usage.
            order_by: The order of the results, if there is no query: "create_time", "update_time", "revision"
                or "metadata.KEY", with " desc" for descending. Empty: the newest items.
            skip: Number of results to leave out, if there is no query: the first in this order, or the
                newest.
            page_size: Number of results to fetch at a time; 0: as many as fit in a response.
            queries: Further texts to find items for, such as the parts of a question; at most 8. The
                results of all are ordered by reciprocal rank fusion.
            namespaces: Further namespaces to search together with this one, at most 16. Only with a query.
            min_relevance: Only results with at least this relevance, 0 to 1; there may be none. Short
                questions may have no word in common with their answer. Only with a query.
            neighbour_weight: How much the words of the neighbours of an item count, 0 to 1. 0: it is found by
                its own words only. None: 1. Only with a query.
            whole_exchanges: Leave out tool calls without all of their results, and results without their
                call. Only without a query.
            refresh_ttl: Let each result live for its time to live from now; it gets no new revision.
            time_zone: Time zone of "yesterday" in the query, such as "Europe/Berlin". Empty: that of the
                namespace's settings. Only with a query.

        Returns:
            A list of results; its `degraded` lists what the server could not do.

        Raises:
            InvalidArgument: An option is out of range, or `filter` is malformed; the message shows where.
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
            order_by=order_by,
            skip=skip,
            page_size=page_size,
            queries=queries,
            namespaces=namespaces,
            min_relevance=min_relevance,
            neighbour_weight=neighbour_weight,
            whole_exchanges=whole_exchanges,
            refresh_ttl=refresh_ttl,
            time_zone=time_zone,
        )
        return memory.results_of(await self._transport.all_pages(call))

    async def get(
        self, id: str, *, include_embedding: bool = False, revision: int = 0, refresh_ttl: bool = False
    ) -> MemoryItem:
        """Return one item.

        Args:
            id: The id of the item.
            include_embedding: Return its vector; not with a revision.
            revision: Return the version that was written at this revision; 0: the current one.
            refresh_ttl: Let it live for its time to live from now: the ttl, or the time to the expire_time,
                of the write that set it. It gets no new revision. Not with a revision.

        Raises:
            NotFound: The namespace has no item with this id, or the version is not kept.
        """
        call = memory.get(self._namespace, id, include_embedding, revision, refresh_ttl)
        return await self._transport.unary(call)

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
        order_by: str = "",
        skip: int = 0,
        page_size: int = 0,
    ) -> AsyncIterator[MemoryItem]:
        """Yield the items in the order in which they were added, or in that of a field, page by page.

        The filters and orders are those of `retrieve`. `skip` is the number to leave out at the beginning;
        `page_size` is the number to fetch at a time; 0: 100.
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
            order_by=order_by,
            skip=skip,
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
        index: str | Unset | None = UNSET,
        expected_revision: int | None = None,
        request_id: str | None = None,
    ) -> MemoryItem:
        """Change the given fields of an item; return it as written.

        `labels` and `metadata` are replaced as a whole; `expire_time=None`, `importance=None` and
        `index=None` clear the field. The server embeds new content that comes without an embedding. With
        `expected_revision`, the change happens only if that is the item's revision.

        Raises:
            NotFound: The namespace has no item with this id.
            Conflict: The expected revision is not the item's, which is in `metadata["current_revision"]`.
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
            index=index,
            expected_revision=expected_revision,
            request_id=request_id,
        )
        return await self._transport.unary(call)

    async def delete(
        self,
        id: str,
        *,
        expected_revision: int | None = None,
        keep_derived: bool = False,
        request_id: str | None = None,
    ) -> Deleted:
        """Remove an item, and what was made only from it; return the namespace's revision.

        Its `derived_count` is the number of items removed beside this one.

        Derived from an item are those that name it as a parent, facts extracted from it, responses,
        reflections and documents, and what was made from these. An item with several parents is removed with
        the last of them.

        Args:
            id: Id of the item.
            expected_revision: Remove it only if this is its revision. None: in any case.
            keep_derived: Keep what was made from it.
            request_id: Makes a retry safe. None: a new id for this call.

        Raises:
            NotFound: The namespace has no item with this id.
            Conflict: The item's revision is not `expected_revision`.
        """
        call = memory.delete(self._namespace, id, expected_revision, keep_derived, request_id)
        return await self._transport.unary(call)

    async def reset(self, *, request_id: str | None = None) -> Removed:
        """Remove everything in the namespace: items, state and history."""
        return await self._transport.unary(memory.reset(self._namespace, request_id))

    def watch(
        self,
        *,
        after_revision: int | None = None,
        heartbeat_interval: timedelta | float | None = None,
        give_up_after_s: float | None = None,
    ) -> AsyncGenerator[Change, None]:
        """Yield every change to the namespace until the caller stops.

        A stream that breaks because the server is unavailable resumes where it broke, with no change lost or
        repeated. Closing the iterator ends the watch.

        Args:
            after_revision: Yield changes after this revision. 0: from the beginning. None: from now on.
            heartbeat_interval: How long the server may be silent, a timedelta or seconds. None: 15 s.
            give_up_after_s: Raise `Unavailable` if the server is unavailable for longer. None: never.

        Raises:
            Unavailable: The server could not be reached at first, or for too long.
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

        A broken stream resumes where it broke, unless the server is unavailable for longer than
        `give_up_after_s`. To continue an earlier export, pass the revision of its last record, less one, as
        `after_revision`.

        Raises:
            NotFound: Nothing was ever written to the namespace.
        """
        return self._transport.resumed(
            lambda position: memory.export(self._namespace, position or 0, include_embedding),
            Resumption(after_revision, give_up_after_s),
        )
