"""The calls of UserMemoryService: requests from arguments, answers from responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from memory_client._arguments import converting
from memory_client._calls.call import Call, Page, request_id_or_new
from memory_client._calls.fields import (
    decide_by_number,
    decision_to,
    explanation_to,
    mode_number,
    set_metadata,
    set_times,
    set_ttl,
    source_numbers,
)
from memory_client._calls.user_memory_values import (
    category_number,
    category_numbers,
    consolidation_to,
    extracted_to,
    memories_to,
    memory_to,
    on_contradiction_number,
    saved_to,
    source_from,
    updated_to,
)
from memory_client._gen.memory_service.v1 import memory_pb2
from memory_client._gen.memory_service.v1 import user_memory_pb2 as pb
from memory_client.convert import message_from
from memory_client.decisions import DecidedBy
from memory_client.messages import ChatMessage
from memory_client.models import RetrieveMode, SourceKind
from memory_client.unset import UNSET, Unset
from memory_client.user_memories import (
    Consolidations,
    Extraction,
    MemoryCategory,
    MemoryResult,
    MemorySource,
    OnContradiction,
    PreloadedMemories,
    RemovedMemories,
    SavedMemory,
    UpdatedMemory,
    UserMemory,
)
from memory_client.values import AROUND_ITEM_FIELD, duration_from, struct_from, timestamp_from

_SERVICE = "/memory_service.v1.UserMemoryService/"


def save_memory(
    namespace: str,
    content: str,
    category: MemoryCategory | str,
    reasoning: str,
    *,
    source: MemorySource | None,
    explicit_request: bool,
    on_contradiction: OnContradiction | str | None,
    valid_from_time: datetime | None,
    ttl: timedelta | float | None,
    labels: Mapping[str, str] | None,
    metadata: Mapping[str, Any] | None,
    keep_wording: bool,
    decide_by: DecidedBy | str | None,
    request_id: str | None,
) -> Call[SavedMemory]:
    """Call SaveMemory."""
    request = pb.SaveMemoryRequest(
        namespace=namespace,
        content=content,
        category=category_number(category),
        reasoning=reasoning,
        request_id=request_id_or_new(request_id),
        explicit_request=explicit_request,
        on_contradiction=on_contradiction_number(on_contradiction),
        labels=dict(labels or {}),
        keep_wording=keep_wording,
        decide_by=decide_by_number(decide_by),
    )
    if source is not None:
        request.source.CopyFrom(source_from(source))
    set_times(request, valid_from_time=valid_from_time)
    set_ttl(request, ttl)
    set_metadata(request, metadata)
    return Call(_SERVICE + "SaveMemory", request, pb.SaveMemoryResponse, saved_to)


def search_memories(
    namespace: str,
    query: str,
    *,
    limit: int,
    categories: Sequence[MemoryCategory | str],
    as_of_time: datetime | None,
    include_history: bool,
    min_importance: float | None,
    labels: Mapping[str, str] | None,
    session_id: str,
    min_score: float | None,
    mode: RetrieveMode | str | None,
    max_tokens: int | None,
    explain: bool,
    page_size: int,
    min_trust: float | None,
    sources: Sequence[SourceKind | str],
) -> Call[Page[MemoryResult]]:
    """Call SearchMemories."""
    request = pb.SearchMemoriesRequest(
        namespace=namespace,
        query=query,
        categories=category_numbers(categories),
        limit=limit,
        include_history=include_history,
        min_importance=min_importance,
        labels=dict(labels or {}),
        session_id=session_id,
        min_score=min_score,
        mode=mode_number(mode),
        max_tokens=max_tokens,
        explain=explain,
        page_size=page_size,
        min_trust=min_trust,
        sources=source_numbers(sources),
    )
    set_times(request, as_of_time=as_of_time)

    def read(response: pb.SearchMemoriesResponse) -> Page[MemoryResult]:
        results = [
            MemoryResult(memory_to(result.memory), result.score, explanation_to(result.explanation))
            for result in response.results
        ]
        return Page(results, response.next_page_token, response)

    return Call(_SERVICE + "SearchMemories", request, pb.SearchMemoriesResponse, read)


def list_memories(
    namespace: str,
    *,
    categories: Sequence[MemoryCategory | str],
    ids: Sequence[str],
    as_of_time: datetime | None,
    include_history: bool,
    min_importance: float | None,
    labels: Mapping[str, str] | None,
    session_id: str,
    start_time: datetime | None,
    end_time: datetime | None,
    newest_first: bool,
    page_size: int,
    min_trust: float | None,
    sources: Sequence[SourceKind | str],
) -> Call[Page[UserMemory]]:
    """Call ListMemories."""
    request = pb.ListMemoriesRequest(
        namespace=namespace,
        page_size=page_size,
        categories=category_numbers(categories),
        ids=ids,
        include_history=include_history,
        min_importance=min_importance,
        labels=dict(labels or {}),
        session_id=session_id,
        newest_first=newest_first,
        min_trust=min_trust,
        sources=source_numbers(sources),
    )
    set_times(request, as_of_time=as_of_time, start_time=start_time, end_time=end_time)

    def read(response: pb.ListMemoriesResponse) -> Page[UserMemory]:
        return Page(list(memories_to(response.memories)), response.next_page_token, response)

    return Call(_SERVICE + "ListMemories", request, pb.ListMemoriesResponse, read)


def update_memory(
    namespace: str,
    id: str,
    *,
    content: str | Unset,
    category: MemoryCategory | str | Unset,
    reasoning: str | Unset,
    importance: float | Unset,
    valid_from_time: datetime | Unset,
    valid_until_time: datetime | Unset | None,
    expire_time: datetime | Unset | None,
    ttl: timedelta | float | Unset,
    labels: Mapping[str, str] | Unset,
    metadata: Mapping[str, Any] | Unset,
    expected_version: int | None,
    keep_wording: bool,
    decide_by: DecidedBy | str | None,
    request_id: str | None,
) -> Call[UpdatedMemory]:
    """Call UpdateMemory."""
    request = pb.UpdateMemoryRequest(
        namespace=namespace,
        memory=pb.UserMemory(id=id),
        expected_version=expected_version,
        request_id=request_id_or_new(request_id),
        keep_wording=keep_wording,
        decide_by=decide_by_number(decide_by),
    )
    given = {
        "content": content,
        "category": category,
        "reasoning": reasoning,
        "importance": importance,
        "valid_from_time": valid_from_time,
        "valid_until_time": valid_until_time,
        "expire_time": expire_time,
        "ttl": ttl,
        "labels": labels,
        "metadata": metadata,
    }
    for field, value in given.items():
        if value is not UNSET:
            request.update_mask.paths.append(field)
            _set_field(request.memory, field, value)
    return Call(_SERVICE + "UpdateMemory", request, pb.UpdateMemoryResponse, updated_to)


def _set_field(memory: pb.UserMemory, field: str, value: Any) -> None:
    if value is None:
        return  # In the mask but unset: the server clears it.
    if field in ("content", "reasoning"):
        setattr(memory, field, value)
    elif field == "category":
        memory.category = category_number(value)
    elif field == "importance":
        memory.importance.score = value
    elif field == "labels":
        memory.labels.update(value)
    elif field == "metadata":
        memory.metadata.CopyFrom(struct_from(value, field, around=AROUND_ITEM_FIELD))
    elif field == "ttl":
        memory.ttl.CopyFrom(duration_from(value))
    else:
        getattr(memory, field).CopyFrom(timestamp_from(value, field))


def delete_memory(
    namespace: str,
    id: str,
    *,
    expected_version: int | None,
    include_history: bool,
    keep_derived: bool,
    request_id: str | None,
) -> Call[RemovedMemories]:
    """Call DeleteMemory."""
    request = pb.DeleteMemoryRequest(
        namespace=namespace,
        id=id,
        expected_version=expected_version,
        include_history=include_history,
        keep_derived=keep_derived,
        request_id=request_id_or_new(request_id),
    )

    def read(response: pb.DeleteMemoryResponse) -> RemovedMemories:
        return RemovedMemories(response.removed_count, response.revision, response.derived_count)

    return Call(_SERVICE + "DeleteMemory", request, pb.DeleteMemoryResponse, read)


def get_preloaded_memories(
    namespace: str,
    *,
    max_tokens: int,
    categories: Sequence[MemoryCategory | str],
    limit: int,
    min_importance: float | None,
    as_of_time: datetime | None,
    labels: Mapping[str, str] | None,
    min_trust: float | None,
    sources: Sequence[SourceKind | str],
    if_not_revision: int | None,
) -> Call[PreloadedMemories]:
    """Call GetPreloadedMemories."""
    request = pb.GetPreloadedMemoriesRequest(
        namespace=namespace,
        max_tokens=max_tokens,
        categories=category_numbers(categories),
        limit=limit,
        min_importance=min_importance,
        labels=dict(labels or {}),
        min_trust=min_trust,
        sources=source_numbers(sources),
        if_not_revision=if_not_revision,
    )
    set_times(request, as_of_time=as_of_time)

    def read(response: pb.GetPreloadedMemoriesResponse) -> PreloadedMemories:
        return PreloadedMemories(
            memories=memories_to(response.memories),
            text=response.text,
            token_count=response.token_count,
            omitted_count=response.omitted_count,
            revision=response.revision,
            unchanged=response.unchanged,
        )

    return Call(_SERVICE + "GetPreloadedMemories", request, pb.GetPreloadedMemoriesResponse, read)


def extract_memories(
    namespace: str,
    messages: Iterable[ChatMessage],
    *,
    session_id: str,
    after_revision: int,
    limit: int | None,
    recalled_memory_ids: Sequence[str],
    categories: Sequence[MemoryCategory | str],
    dry_run: bool,
    on_contradiction: OnContradiction | str | None,
    decide_by: DecidedBy | str | None,
    actor: str,
    labels: Mapping[str, str] | None,
    request_id: str | None,
) -> Call[Extraction]:
    """Call ExtractMemories."""
    request = pb.ExtractMemoriesRequest(
        namespace=namespace,
        messages=_messages(messages),
        session_id=session_id,
        after_revision=after_revision,
        limit=limit,
        recalled_memory_ids=recalled_memory_ids,
        categories=category_numbers(categories),
        dry_run=dry_run,
        on_contradiction=on_contradiction_number(on_contradiction),
        decide_by=decide_by_number(decide_by),
        actor=actor,
        labels=dict(labels or {}),
        request_id=request_id_or_new(request_id),
    )

    def read(response: pb.ExtractMemoriesResponse) -> Extraction:
        return Extraction(
            results=tuple(extracted_to(result) for result in response.results),
            reason=response.reason,
            examined_count=response.examined_count,
            examined_revision=response.examined_revision,
            more=response.more,
            **decision_to(response),
        )

    return Call(_SERVICE + "ExtractMemories", request, pb.ExtractMemoriesResponse, read)


def _messages(messages: Iterable[ChatMessage]) -> list[memory_pb2.ChatMessage]:
    converted = []
    for index, message in enumerate(messages):
        with converting(message, ChatMessage, f"messages[{index}]"):
            converted.append(message_from(message))
    return converted


def consolidate_memories(
    namespace: str,
    *,
    dry_run: bool,
    categories: Sequence[MemoryCategory | str],
    memory_ids: Sequence[str],
    similarity_threshold: float | None,
    limit: int,
    decide_by: DecidedBy | str | None,
    request_id: str | None,
) -> Call[Consolidations]:
    """Call ConsolidateMemories."""
    request = pb.ConsolidateMemoriesRequest(
        namespace=namespace,
        dry_run=dry_run,
        categories=category_numbers(categories),
        memory_ids=memory_ids,
        similarity_threshold=similarity_threshold,
        limit=limit,
        decide_by=decide_by_number(decide_by),
        request_id=request_id_or_new(request_id),
    )

    def read(response: pb.ConsolidateMemoriesResponse) -> Consolidations:
        return Consolidations(
            consolidations=tuple(consolidation_to(group) for group in response.consolidations),
            reason=response.reason,
            examined_count=response.examined_count,
            more=response.more,
            **decision_to(response),
        )

    return Call(_SERVICE + "ConsolidateMemories", request, pb.ConsolidateMemoriesResponse, read)
