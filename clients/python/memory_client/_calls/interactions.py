"""The calls of InteractionService: requests from arguments, answers from responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from memory_client._arguments import converting
from memory_client._calls.call import Call, Page, request_id_or_new
from memory_client._calls.fields import (
    explanation_to,
    mode_number,
    set_metadata,
    set_times,
    set_ttl,
    source_numbers,
)
from memory_client._gen.memory_service.v1 import interaction_pb2 as pb
from memory_client._gen.memory_service.v1 import memory_pb2
from memory_client.convert import degraded_to, enum_to, provenance_to, time_to
from memory_client.interactions import (
    ContextResult,
    Interaction,
    InteractionKind,
    InteractionPair,
    OriginalMessage,
    RelevantContext,
)
from memory_client.models import RetrieveMode, SourceKind
from memory_client.values import struct_to

_SERVICE = "/memory_service.v1.InteractionService/"


def _interaction_to(proto: pb.Interaction, degraded: Iterable[memory_pb2.Degradation] = ()) -> Interaction:
    unknown = InteractionKind.UNSPECIFIED
    return Interaction(
        id=proto.id,
        kind=enum_to(pb.InteractionKind, "INTERACTION_KIND_", proto.kind, InteractionKind, unknown),
        content=proto.content,
        sender=proto.sender,
        session_id=proto.session_id,
        in_response_to=proto.in_response_to,
        original_message=_original_to(proto.original_message) if proto.HasField("original_message") else None,
        interaction_ids=tuple(proto.interaction_ids),
        create_time=time_to(proto, "create_time"),
        update_time=time_to(proto, "update_time"),
        expire_time=time_to(proto, "expire_time"),
        labels=dict(proto.labels),
        metadata=struct_to(proto.metadata),
        revision=proto.revision,
        provenance=provenance_to(proto),
        degraded=degraded_to(degraded),
    )


def _original_to(proto: pb.OriginalMessage) -> OriginalMessage:
    return OriginalMessage(
        content=proto.content,
        sender=proto.sender,
        create_time=time_to(proto, "create_time"),
        provenance=provenance_to(proto),
    )


def _stored(
    response: pb.StoreInteractionResponse | pb.StoreResponseResponse | pb.StoreReflectionResponse,
) -> Interaction:
    return _interaction_to(response.interaction, response.degraded)


def store_interaction(
    namespace: str,
    sender: str,
    content: str,
    *,
    session_id: str,
    create_time: datetime | None,
    labels: Mapping[str, str] | None,
    metadata: Mapping[str, Any] | None,
    ttl: timedelta | float | None,
    id: str,
    request_id: str | None,
) -> Call[Interaction]:
    """Call StoreInteraction."""
    request = pb.StoreInteractionRequest(
        namespace=namespace,
        sender=sender,
        content=content,
        session_id=session_id,
        id=id,
        labels=dict(labels or {}),
        request_id=request_id_or_new(request_id),
    )
    set_times(request, create_time=create_time)
    set_metadata(request, metadata)
    set_ttl(request, ttl)
    return Call(_SERVICE + "StoreInteraction", request, pb.StoreInteractionResponse, _stored)


def store_response(
    namespace: str,
    content: str,
    *,
    in_response_to: str,
    original_message: OriginalMessage | None,
    allow_missing: bool,
    sender: str,
    session_id: str,
    create_time: datetime | None,
    labels: Mapping[str, str] | None,
    metadata: Mapping[str, Any] | None,
    ttl: timedelta | float | None,
    id: str,
    request_id: str | None,
) -> Call[Interaction]:
    """Call StoreResponse."""
    request = pb.StoreResponseRequest(
        namespace=namespace,
        content=content,
        in_response_to=in_response_to,
        allow_missing=allow_missing,
        sender=sender,
        session_id=session_id,
        id=id,
        labels=dict(labels or {}),
        request_id=request_id_or_new(request_id),
    )
    if original_message is not None:
        original = pb.OriginalMessage(sender=original_message.sender, content=original_message.content)
        with converting(original_message, OriginalMessage, "original_message"):
            set_times(original, create_time=original_message.create_time)
        request.original_message.CopyFrom(original)
    set_times(request, create_time=create_time)
    set_metadata(request, metadata)
    set_ttl(request, ttl)
    return Call(_SERVICE + "StoreResponse", request, pb.StoreResponseResponse, _stored)


def store_reflection(
    namespace: str,
    content: str,
    *,
    interaction_ids: Sequence[str],
    sender: str,
    session_id: str,
    create_time: datetime | None,
    labels: Mapping[str, str] | None,
    metadata: Mapping[str, Any] | None,
    ttl: timedelta | float | None,
    id: str,
    request_id: str | None,
) -> Call[Interaction]:
    """Call StoreReflection."""
    request = pb.StoreReflectionRequest(
        namespace=namespace,
        content=content,
        interaction_ids=interaction_ids,
        sender=sender,
        session_id=session_id,
        id=id,
        labels=dict(labels or {}),
        request_id=request_id_or_new(request_id),
    )
    set_times(request, create_time=create_time)
    set_metadata(request, metadata)
    set_ttl(request, ttl)
    return Call(_SERVICE + "StoreReflection", request, pb.StoreReflectionResponse, _stored)


def retrieve_relevant_context(
    namespace: str,
    query: str,
    *,
    interaction_limit: int,
    reflection_limit: int,
    session_id: str,
    sender: str,
    exclude_ids: Sequence[str],
    labels: Mapping[str, str] | None,
    start_time: datetime | None,
    end_time: datetime | None,
    min_score: float | None,
    mode: RetrieveMode | str | None,
    max_tokens: int | None,
    explain: bool,
    min_trust: float | None,
    sources: Sequence[SourceKind | str],
) -> Call[RelevantContext]:
    """Call RetrieveRelevantContext."""
    request = pb.RetrieveRelevantContextRequest(
        namespace=namespace,
        query=query,
        interaction_limit=interaction_limit,
        reflection_limit=reflection_limit,
        session_id=session_id,
        sender=sender,
        exclude_ids=exclude_ids,
        labels=dict(labels or {}),
        min_score=min_score,
        mode=mode_number(mode),
        max_tokens=max_tokens,
        explain=explain,
        min_trust=min_trust,
        sources=source_numbers(sources),
    )
    set_times(request, start_time=start_time, end_time=end_time)

    def read(response: pb.RetrieveRelevantContextResponse) -> RelevantContext:
        results = [
            ContextResult(
                _interaction_to(result.interaction),
                result.text,
                result.score,
                explanation_to(result.explanation),
            )
            for result in response.results
        ]
        return RelevantContext(
            results,
            token_count=response.token_count,
            degraded=degraded_to(response.degraded),
            revision=response.revision,
        )

    method = _SERVICE + "RetrieveRelevantContext"
    return Call(method, request, pb.RetrieveRelevantContextResponse, read)


def retrieve_last_interactions(
    namespace: str,
    limit: int,
    *,
    session_id: str,
    sender: str,
    labels: Mapping[str, str] | None,
    start_time: datetime | None,
    end_time: datetime | None,
    page_size: int,
    min_trust: float | None,
    sources: Sequence[SourceKind | str],
) -> Call[Page[InteractionPair]]:
    """Call RetrieveLastInteractions for its first page."""
    request = pb.RetrieveLastInteractionsRequest(
        namespace=namespace,
        limit=limit,
        session_id=session_id,
        sender=sender,
        labels=dict(labels or {}),
        page_size=page_size,
        min_trust=min_trust,
        sources=source_numbers(sources),
    )
    set_times(request, start_time=start_time, end_time=end_time)

    def read(response: pb.RetrieveLastInteractionsResponse) -> Page[InteractionPair]:
        pairs = [
            InteractionPair(
                _interaction_to(pair.message),
                tuple(_interaction_to(each) for each in pair.responses),
                pair.response_count,
            )
            for pair in response.interactions
        ]
        return Page(pairs, response.next_page_token, response)

    method = _SERVICE + "RetrieveLastInteractions"
    return Call(method, request, pb.RetrieveLastInteractionsResponse, read)
