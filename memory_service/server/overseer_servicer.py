"""OverseerService: convert requests, call the domain, convert results."""

from __future__ import annotations

from typing import Any

import grpc

from memory_service.domain.answers import Answering
from memory_service.domain.overseer import KeyDecision, Overseer, RelevanceQuery
from memory_service.domain.result_storage import ResultStorage, StorageDecision, ToolResult
from memory_service.errors import InvalidArgument
from memory_service.server.answers import answered
from memory_service.server.decisions import (
    degradations,
    fill_decision,
    fill_explanation,
    from_decided_by,
    to_decided_by,
)
from memory_service.server.requests import optional, request_key
from memory_service.server.states import fill_state
from memory_service.server.values import to_dict, to_json, ttl_us
from memory_service.tokens import estimate_tokens
from memory_service.v1 import overseer_pb2 as pb
from memory_service.v1 import overseer_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


class OverseerServicer(overseer_pb2_grpc.OverseerServiceServicer):
    """The overseer over gRPC."""

    def __init__(self, overseer: Overseer, storage: ResultStorage) -> None:
        self._overseer = overseer
        self._storage = storage

    async def CheckRelevance(
        self, request: pb.CheckRelevanceRequest, context: Context
    ) -> pb.CheckRelevanceResponse:
        answer = await self._overseer.check_relevance(_query(request))
        response = pb.CheckRelevanceResponse(
            decided_by=from_decided_by(answer.decided_by),
            reason=answer.reason,
            context_text=answer.context_text,
            token_count=estimate_tokens(answer.context_text),
            key_count=answer.key_count,
            degraded=degradations(answer.degraded),
            revision=answer.revision,
        )
        for entry in answer.entries:
            fill_state(response.entries.add(), entry, value=not request.omit_values)
        for decision in answer.decisions:
            _fill_decision(response.decisions.add(), decision, explain=request.explain)
        fill_decision(response, answer.failures, answer.usage)
        return response

    async def EvaluateForStorage(
        self, request: pb.EvaluateForStorageRequest, context: Context
    ) -> pb.EvaluateForStorageResponse | bytes:
        async def evaluate(asked: Answering[StorageDecision] | None) -> StorageDecision:
            return await self._storage.evaluate(_tool_result(request), asked)

        key = await request_key(request.request_id, request)
        return await answered(key, evaluate, _of_decision, pb.EvaluateForStorageResponse)


def _of_decision(decision: StorageDecision) -> pb.EvaluateForStorageResponse:
    response = pb.EvaluateForStorageResponse(
        should_save=decision.should_save,
        key=decision.key,
        reason=decision.reason,
        decided_by=from_decided_by(decision.decided_by),
        saved=decision.entry is not None,
        skipped=decision.skipped,
        description=decision.description,
        existing_version=decision.existing_version,
        revision=decision.revision,
    )
    if decision.entry is not None:
        fill_state(response.entry, decision.entry, value=False)
    fill_decision(response, decision.failures, decision.usage)
    return response


def _query(request: pb.CheckRelevanceRequest) -> RelevanceQuery:
    return RelevanceQuery(
        request.namespace,
        request.goal,
        optional(request, "limit"),
        optional(request, "max_tokens"),
        request.pattern,
        optional(request, "max_candidates"),
        request.omit_values,
        to_decided_by("decide_by", request.decide_by),
    )


def _tool_result(request: pb.EvaluateForStorageRequest) -> ToolResult:
    if not request.HasField("result"):
        raise InvalidArgument("result", "is required")
    return ToolResult(
        request.namespace,
        request.tool_name,
        to_json("result", request.result),
        request.result.ByteSize(),
        request.goal,
        to_dict("arguments", request.arguments) if request.HasField("arguments") else None,
        request.is_error,
        request.key,
        request.save,
        request.overwrite,
        ttl_us("ttl", request.ttl) if request.HasField("ttl") else None,
        to_decided_by("decide_by", request.decide_by),
    )


def _fill_decision(target: pb.KeyDecision, decision: KeyDecision, *, explain: bool) -> None:
    target.key, target.reason, target.score = decision.key, decision.reason, decision.score
    target.verdict = int(decision.verdict)  # type: ignore[assignment]
    target.decided_by = from_decided_by(decision.decided_by)
    if explain:
        fill_explanation(target.explanation, decision.shares)
