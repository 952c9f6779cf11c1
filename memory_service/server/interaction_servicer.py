"""InteractionService: convert requests, call the domain, convert results."""

from __future__ import annotations

from typing import Any, TypeVar

import grpc

from memory_service.data_model import Item
from memory_service.domain.awaited_messages import Original
from memory_service.domain.interaction_context import ContextOptions, InteractionContext
from memory_service.domain.interaction_items import (
    DEFAULT_AGENT,
    link_of,
    sender_of,
    subjects_of,
    text_of,
)
from memory_service.domain.interactions import Interaction, Interactions, Kept, Saying
from memory_service.domain.retrieve_options import Selection
from memory_service.runtime.yielding import Part
from memory_service.server.decisions import degradations, fill_explanation
from memory_service.server.provenance import fill_provenance, to_trust
from memory_service.server.requests import optional, request_key, to_mode
from memory_service.server.values import fill_struct, fill_time, to_dict, to_labels, to_us, ttl_us
from memory_service.v1 import interaction_pb2 as pb
from memory_service.v1 import interaction_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


class InteractionServicer(interaction_pb2_grpc.InteractionServiceServicer):
    """Interactions over gRPC."""

    def __init__(self, interactions: Interactions, context: InteractionContext) -> None:
        self._interactions = interactions
        self._context = context

    async def StoreInteraction(
        self, request: pb.StoreInteractionRequest, context: Context
    ) -> pb.StoreInteractionResponse:
        kept = await self._interactions.keep_message(
            request.namespace,
            _saying(request, request.sender),
            await request_key(request.request_id, request),
        )
        return _fill_kept(pb.StoreInteractionResponse(), kept)

    async def StoreResponse(
        self, request: pb.StoreResponseRequest, context: Context
    ) -> pb.StoreResponseResponse:
        kept = await self._interactions.keep_response(
            request.namespace,
            _saying(request, request.sender or DEFAULT_AGENT),
            await request_key(request.request_id, request),
            in_response_to=request.in_response_to,
            original=_original(request.original_message) if request.HasField("original_message") else None,
            allow_missing=request.allow_missing,
        )
        return _fill_kept(pb.StoreResponseResponse(), kept)

    async def StoreReflection(
        self, request: pb.StoreReflectionRequest, context: Context
    ) -> pb.StoreReflectionResponse:
        kept = await self._interactions.keep_reflection(
            request.namespace,
            _saying(request, request.sender or DEFAULT_AGENT),
            list(request.interaction_ids),
            await request_key(request.request_id, request),
        )
        return _fill_kept(pb.StoreReflectionResponse(), kept)

    async def RetrieveRelevantContext(
        self, request: pb.RetrieveRelevantContextRequest, context: Context
    ) -> pb.RetrieveRelevantContextResponse:
        found = await self._context.relevant(request.namespace, _context_options(request))
        response = pb.RetrieveRelevantContextResponse(
            token_count=found.token_count, degraded=degradations(found.degraded), revision=found.revision
        )
        part = Part()
        for fitting in found.results:
            result = response.results.add(text=fitting.text, score=fitting.score)
            _fill(result.interaction, fitting.interaction)
            if request.explain:
                fill_explanation(result.explanation, fitting.shares)
            await part.give_way_if_long()
        return response

    async def RetrieveLastInteractions(
        self, request: pb.RetrieveLastInteractionsRequest, context: Context
    ) -> pb.RetrieveLastInteractionsResponse:
        page = await self._interactions.last(
            request.namespace,
            _selection(request),
            request.sender,
            limit=optional(request, "limit"),
            page_size=request.page_size,
            page_token=request.page_token,
        )
        response = pb.RetrieveLastInteractionsResponse(
            next_page_token=page.next_page_token, revision=page.revision
        )
        part = Part()
        for pair in page.pairs:
            added = response.interactions.add(response_count=pair.response_count)
            _fill_item(added.message, pair.message)
            for item in pair.responses:
                response_to = added.responses.add()
                _fill_item(response_to, item)
                response_to.in_response_to = pair.message.id
                await part.give_way_if_long()
        return response


def _time_us(request: Any, field: str) -> int | None:
    return to_us(field, getattr(request, field)) if request.HasField(field) else None


def _saying(
    request: pb.StoreInteractionRequest | pb.StoreResponseRequest | pb.StoreReflectionRequest, sender: str
) -> Saying:
    return Saying(
        request.content,
        sender,
        request.id,
        request.session_id,
        _time_us(request, "create_time"),
        ttl_us("ttl", request.ttl) if request.HasField("ttl") else None,
        to_labels("labels", request.labels),
        to_dict("metadata", request.metadata) if request.HasField("metadata") else None,
    )


def _original(message: pb.OriginalMessage) -> Original:
    create_us = None
    if message.HasField("create_time"):
        create_us = to_us("original_message.create_time", message.create_time)
    return Original(message.content, message.sender, create_us)


def _selection(
    request: pb.RetrieveLastInteractionsRequest | pb.RetrieveRelevantContextRequest,
) -> Selection:
    min_trust, sources = to_trust(request)
    return Selection(
        request.session_id,
        to_labels("labels", request.labels),
        _time_us(request, "start_time"),
        _time_us(request, "end_time"),
        min_trust=min_trust,
        sources=sources,
    )


def _context_options(request: pb.RetrieveRelevantContextRequest) -> ContextOptions:
    mode = to_mode("mode", request.mode)
    return ContextOptions(
        request.query,
        _selection(request),
        optional(request, "interaction_limit"),
        optional(request, "reflection_limit"),
        request.sender,
        list(request.exclude_ids),
        optional(request, "min_score"),
        mode,
        optional(request, "max_tokens"),
        request.explain,
    )


_Response = TypeVar(
    "_Response", pb.StoreInteractionResponse, pb.StoreResponseResponse, pb.StoreReflectionResponse
)


def _fill_kept(response: _Response, kept: Kept) -> _Response:
    response.revision = kept.revision
    response.degraded.extend(degradations(kept.degraded))
    _fill(response.interaction, kept.interaction)
    return response


def _fill(target: pb.Interaction, interaction: Interaction) -> None:
    _fill_item(target, interaction.item)
    original = interaction.original
    if original is not None:
        target.in_response_to = original.id
        target.original_message.sender = sender_of(original)
        target.original_message.content = text_of(original)
        fill_time(target.original_message.create_time, original.create_us)
        fill_provenance(target.original_message.provenance, original)


def _fill_item(target: pb.Interaction, item: Item) -> None:
    """Set all fields of an interaction except the message that it answers."""
    target.id, target.session_id, target.revision = item.id, item.session_id, item.revision
    target.kind = int(item.kind)  # type: ignore[assignment]
    target.content, target.sender, target.in_response_to = text_of(item), sender_of(item), link_of(item)
    target.interaction_ids.extend(subjects_of(item))
    fill_time(target.create_time, item.create_us)
    fill_time(target.update_time, item.update_us)
    if item.expire_us is not None:
        fill_time(target.expire_time, item.expire_us)
    target.labels.update(item.labels)
    if item.metadata is not None:
        fill_struct(target.metadata, item.metadata)
    fill_provenance(target.provenance, item)
