"""The calls of MemoryService: requests from arguments, answers from responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from memory_client._arguments import converting
from memory_client._calls.call import Call, Event, Page, request_id_or_new
from memory_client._calls.fields import explanation_to, kind_numbers, set_times, source_numbers
from memory_client._gen.memory_service.v1 import memory_pb2
from memory_client.convert import (
    content_from,
    degraded_to,
    entry_to,
    enum_from,
    enum_to,
    item_to,
    new_item_from,
    on_duplicate_number,
    set_content,
    set_embedding,
)
from memory_client.found import Deleted
from memory_client.messages import Content
from memory_client.models import (
    Change,
    ChangeType,
    ItemKind,
    MemoryItem,
    OnDuplicate,
    Removed,
    Result,
    Results,
    RetrieveMode,
    ScoreWeights,
    SourceKind,
    StateEntry,
    Vector,
)
from memory_client.unset import UNSET, Unset
from memory_client.values import AROUND_ITEM_FIELD, duration_from, struct_from, timestamp_from

_SERVICE = "/memory_service.v1.MemoryService/"


def as_ttl(ttl: timedelta | float | None) -> timedelta | None:
    """Return a time to live given as a timedelta or in seconds."""
    return timedelta(seconds=ttl) if isinstance(ttl, (int, float)) else ttl


def add(
    namespace: str, item: MemoryItem, on_duplicate: OnDuplicate | str, request_id: str | None
) -> Call[MemoryItem]:
    """Call Add."""
    request = memory_pb2.AddRequest(
        namespace=namespace,
        item=new_item_from(item),
        request_id=request_id_or_new(request_id),
        on_duplicate=on_duplicate_number(on_duplicate),
    )

    def read(response: memory_pb2.AddResponse) -> MemoryItem:
        return item if response.skipped else _written(response)

    return Call(_SERVICE + "Add", request, memory_pb2.AddResponse, read)


def _written(response: memory_pb2.AddResponse | memory_pb2.UpdateResponse) -> MemoryItem:
    return item_to(response.item, response.degraded)


def batch_add(
    namespace: str,
    items: Iterable[MemoryItem | Content],
    on_duplicate: OnDuplicate | str,
    request_id: str | None,
) -> Call[list[MemoryItem]]:
    """Call BatchAdd."""
    request = memory_pb2.BatchAddRequest(
        namespace=namespace,
        items=_new_items(items),
        request_id=request_id_or_new(request_id),
        on_duplicate=on_duplicate_number(on_duplicate),
    )

    def read(response: memory_pb2.BatchAddResponse) -> list[MemoryItem]:
        return [item_to(item, response.degraded) for item in response.items]

    return Call(_SERVICE + "BatchAdd", request, memory_pb2.BatchAddResponse, read)


def _new_items(items: Iterable[MemoryItem | Content]) -> list[memory_pb2.MemoryItem]:
    messages = []
    for index, item in enumerate(items):
        with converting(item, MemoryItem | Content, f"items[{index}]"):
            messages.append(new_item_from(as_item(item)))
    return messages


def as_item(item: MemoryItem | Content) -> MemoryItem:
    """Return an item, or an item with this content."""
    return item if isinstance(item, MemoryItem) else MemoryItem(content=item)


def retrieve(
    namespace: str,
    query: str | None,
    *,
    limit: int,
    session_id: str,
    labels: Mapping[str, str] | None,
    start_time: datetime | None,
    end_time: datetime | None,
    min_score: float | None,
    mode: RetrieveMode | str | None,
    explain: bool,
    embedding: Vector | None,
    include_embedding: bool,
    kinds: Sequence[ItemKind | str],
    filter: str,
    min_trust: float | None,
    sources: Sequence[SourceKind | str],
    now: datetime | None,
    weights: ScoreWeights | None,
    context_window: int,
    max_tokens: int | None,
    rerank: bool,
    record_usage: bool,
    order_by: str,
    skip: int,
    page_size: int,
    queries: Sequence[str],
    namespaces: Sequence[str],
    min_relevance: float | None,
    neighbour_weight: float | None,
    whole_exchanges: bool,
    refresh_ttl: bool,
    time_zone: str,
) -> Call[Page[Result]]:
    """Call Retrieve for its first page."""
    options = memory_pb2.RetrieveOptions(
        limit=limit,
        query_text=query or "",
        session_id=session_id,
        labels=dict(labels or {}),
        min_score=min_score,
        explain=explain,
        include_embedding=include_embedding,
        kinds=kind_numbers(kinds),
        filter=filter,
        min_trust=min_trust,
        sources=source_numbers(sources),
        weights=_weights_from(weights),
        context_window=context_window,
        max_tokens=max_tokens,
        rerank=rerank,
        record_usage=record_usage,
        order_by=order_by,
        skip=skip,
        page_size=page_size,
        queries=queries,
        min_relevance=min_relevance,
        neighbour_weight=neighbour_weight,
        whole_exchanges=whole_exchanges,
        refresh_ttl=refresh_ttl,
        time_zone=time_zone,
    )
    if mode is not None:
        options.mode = enum_from(memory_pb2.RetrieveMode, "RETRIEVE_MODE_", RetrieveMode(mode))
    set_embedding(options.query_embedding, embedding)
    set_times(options, start_time=start_time, end_time=end_time, now=now)
    request = memory_pb2.RetrieveRequest(namespace=namespace, options=options, namespaces=namespaces)
    return Call(_SERVICE + "Retrieve", request, memory_pb2.RetrieveResponse, _results_page)


def _weights_from(weights: ScoreWeights | None) -> memory_pb2.ScoreWeights | None:
    if weights is None:
        return None
    half_life = weights.recency_half_life
    return memory_pb2.ScoreWeights(
        lexical=weights.lexical,
        vector=weights.vector,
        recency=weights.recency,
        recency_half_life=None if half_life is None else duration_from(half_life),
        importance=weights.importance,
        usage=weights.usage,
    )


def _results_page(response: memory_pb2.RetrieveResponse) -> Page[Result]:
    results = [_result(result) for result in response.results]
    return Page(results, response.next_page_token, response)


def _result(result: memory_pb2.RetrieveResult) -> Result:
    return Result(
        item_to(result.item),
        result.score,
        explanation_to(result.explanation),
        before=tuple(item_to(item) for item in result.before),
        after=tuple(item_to(item) for item in result.after),
        relevance=result.relevance,
        namespace=result.namespace,
        matched_queries=tuple(result.matched_queries),
    )


def results_of(pages: list[Page[Result]]) -> Results:
    """Join the pages of a retrieval."""
    first = pages[0].response
    found = [result for page in pages for result in page.entries]
    token_count = sum(page.response.token_count for page in pages)
    return Results(
        found, degraded=degraded_to(first.degraded), revision=first.revision, token_count=token_count
    )


def get(
    namespace: str, id: str, include_embedding: bool, revision: int, refresh_ttl: bool
) -> Call[MemoryItem]:
    """Call Get."""
    request = memory_pb2.GetRequest(
        namespace=namespace,
        id=id,
        include_embedding=include_embedding,
        revision=revision,
        refresh_ttl=refresh_ttl,
    )

    def read(response: memory_pb2.GetResponse) -> MemoryItem:
        return item_to(response.item)

    return Call(_SERVICE + "Get", request, memory_pb2.GetResponse, read)


def list_items(
    namespace: str,
    *,
    session_id: str,
    labels: Mapping[str, str] | None,
    start_time: datetime | None,
    end_time: datetime | None,
    newest_first: bool,
    include_embedding: bool,
    kinds: Sequence[ItemKind | str],
    filter: str,
    min_trust: float | None,
    sources: Sequence[SourceKind | str],
    order_by: str,
    skip: int,
    page_size: int,
) -> Call[Page[MemoryItem]]:
    """Call List for its first page."""
    request = memory_pb2.ListRequest(
        namespace=namespace,
        session_id=session_id,
        labels=dict(labels or {}),
        newest_first=newest_first,
        include_embedding=include_embedding,
        kinds=kind_numbers(kinds),
        filter=filter,
        min_trust=min_trust,
        sources=source_numbers(sources),
        order_by=order_by,
        skip=skip,
        page_size=page_size,
    )
    set_times(request, start_time=start_time, end_time=end_time)

    def read(response: memory_pb2.ListResponse) -> Page[MemoryItem]:
        return Page([item_to(item) for item in response.items], response.next_page_token, response)

    return Call(_SERVICE + "List", request, memory_pb2.ListResponse, read)


def update(
    namespace: str,
    id: str,
    *,
    content: Content | Unset,
    session_id: str | Unset,
    labels: Mapping[str, str] | Unset,
    metadata: Mapping[str, Any] | Unset,
    create_time: datetime | Unset,
    expire_time: datetime | Unset | None,
    ttl: timedelta | float | Unset,
    embedding: Vector | Unset,
    importance: float | Unset | None,
    index: str | Unset | None,
    expected_revision: int | None,
    request_id: str | None,
) -> Call[MemoryItem]:
    """Call Update with the given fields."""
    request = memory_pb2.UpdateRequest(
        namespace=namespace,
        item=memory_pb2.MemoryItem(id=id),
        expected_revision=expected_revision,
        request_id=request_id_or_new(request_id),
    )
    given = {
        "content": content,
        "session_id": session_id,
        "labels": labels,
        "metadata": metadata,
        "create_time": create_time,
        "expire_time": expire_time,
        "ttl": ttl,
        "embedding": embedding,
        "importance": importance,
        "index": index,
    }
    set_changes(request, given)
    return Call(_SERVICE + "Update", request, memory_pb2.UpdateResponse, _written)


def set_changes(message: Any, changes: Mapping[str, Any]) -> None:
    """Set the item and the mask of an update to the given changes; those that are UNSET are left out."""
    for field, value in changes.items():
        if value is not UNSET:
            message.update_mask.paths.append(field)
            _set_field(message.item, field, value)


def _set_field(item: memory_pb2.MemoryItem, field: str, value: Any) -> None:
    if value is None:
        return  # In the mask but unset: the server clears it.
    if field == "content":
        set_content(item, content_from(value))
    elif field in ("session_id", "importance", "index"):
        setattr(item, field, value)
    elif field == "labels":
        item.labels.update(value)
    elif field == "metadata":
        item.metadata.CopyFrom(struct_from(value, field, around=AROUND_ITEM_FIELD))
    elif field == "embedding":
        set_embedding(item.embedding, value)
    elif field == "ttl":
        item.ttl.CopyFrom(duration_from(value))
    else:
        getattr(item, field).CopyFrom(timestamp_from(value, field))


def delete(
    namespace: str, id: str, expected_revision: int | None, keep_derived: bool, request_id: str | None
) -> Call[Deleted]:
    """Call Delete; read the revision of the namespace."""
    request = memory_pb2.DeleteRequest(
        namespace=namespace,
        id=id,
        expected_revision=expected_revision,
        keep_derived=keep_derived,
        request_id=request_id_or_new(request_id),
    )

    def read(response: memory_pb2.DeleteResponse) -> Deleted:
        return Deleted(response.revision, response.derived_count)

    return Call(_SERVICE + "Delete", request, memory_pb2.DeleteResponse, read)


def reset(namespace: str, request_id: str | None) -> Call[Removed]:
    """Call Reset."""
    request = memory_pb2.ResetRequest(namespace=namespace, request_id=request_id_or_new(request_id))

    def read(response: memory_pb2.ResetResponse) -> Removed:
        return Removed(response.removed_count, response.removed_state_count, response.revision)

    return Call(_SERVICE + "Reset", request, memory_pb2.ResetResponse, read)


def watch(
    namespace: str, after_revision: int | None, heartbeat_interval: timedelta | float | None
) -> Call[Event[Change]]:
    """Call Watch."""
    request = memory_pb2.WatchRequest(namespace=namespace, after_revision=after_revision)
    if heartbeat_interval is not None:
        request.heartbeat_interval.CopyFrom(duration_from(heartbeat_interval))
    return Call(_SERVICE + "Watch", request, memory_pb2.WatchResponse, _change_event)


def _change_event(response: memory_pb2.WatchResponse) -> Event[Change]:
    if not response.HasField("change"):
        return Event(None, response.revision, None)
    proto = response.change
    change = Change(
        type=enum_to(memory_pb2.ChangeType, "CHANGE_TYPE_", proto.type, ChangeType, ChangeType.UNSPECIFIED),
        revision=proto.revision,
        item_id=proto.item_id,
        item=item_to(proto.item) if proto.HasField("item") else None,
        state_key=proto.state_key,
        state=entry_to(proto.state) if proto.HasField("state") else None,
    )
    return Event(change, response.revision, (proto.revision, proto.type, proto.item_id, proto.state_key))


def export(
    namespace: str, after_revision: int, include_embedding: bool
) -> Call[Event[MemoryItem | StateEntry]]:
    """Call Export."""
    request = memory_pb2.ExportRequest(
        namespace=namespace, after_revision=after_revision, include_embedding=include_embedding
    )
    return Call(_SERVICE + "Export", request, memory_pb2.ExportResponse, _record_event)


def _record_event(response: memory_pb2.ExportResponse) -> Event[MemoryItem | StateEntry]:
    kind = response.WhichOneof("record")
    if kind == "item":
        item = item_to(response.item)
        return Event(item, response.revision, (kind, item.id, item.revision))
    if kind == "state":
        entry = entry_to(response.state)
        return Event(entry, response.revision, (kind, entry.key, entry.revision))
    return Event(None, response.revision, None)
