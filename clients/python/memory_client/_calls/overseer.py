"""The calls of OverseerService: requests from arguments, answers from responses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from memory_client._calls.call import Call, request_id_or_new
from memory_client._calls.fields import (
    decide_by_number,
    decided_by_to,
    decision_to,
    explanation_to,
    set_ttl,
)
from memory_client._gen.memory_service.v1 import overseer_pb2 as pb
from memory_client.convert import entry_to, enum_to
from memory_client.decisions import DecidedBy
from memory_client.overseer import KeyDecision, KeyVerdict, Relevance, StorageDecision
from memory_client.values import struct_from, value_from

_SERVICE = "/memory_service.v1.OverseerService/"


def _key_decision_to(proto: pb.KeyDecision) -> KeyDecision:
    unknown = KeyVerdict.UNSPECIFIED
    return KeyDecision(
        key=proto.key,
        verdict=enum_to(pb.KeyVerdict, "KEY_VERDICT_", proto.verdict, KeyVerdict, unknown),
        decided_by=decided_by_to(proto.decided_by),
        reason=proto.reason,
        score=proto.score,
        explanation=explanation_to(proto.explanation),
    )


def check_relevance(
    namespace: str,
    goal: str,
    *,
    limit: int,
    max_tokens: int,
    pattern: str,
    max_candidates: int,
    omit_values: bool,
    decide_by: DecidedBy | str | None,
    explain: bool,
) -> Call[Relevance]:
    """Call CheckRelevance."""
    request = pb.CheckRelevanceRequest(
        namespace=namespace,
        goal=goal,
        limit=limit,
        max_tokens=max_tokens,
        pattern=pattern,
        max_candidates=max_candidates,
        omit_values=omit_values,
        decide_by=decide_by_number(decide_by),
        explain=explain,
    )

    def read(response: pb.CheckRelevanceResponse) -> Relevance:
        return Relevance(
            entries=tuple(entry_to(entry) for entry in response.entries),
            reason=response.reason,
            decisions=tuple(_key_decision_to(decision) for decision in response.decisions),
            context_text=response.context_text,
            token_count=response.token_count,
            key_count=response.key_count,
            **decision_to(response),
        )

    return Call(_SERVICE + "CheckRelevance", request, pb.CheckRelevanceResponse, read)


def evaluate_for_storage(
    namespace: str,
    tool_name: str,
    result: Any,
    *,
    goal: str,
    save: bool,
    arguments: Mapping[str, Any] | None,
    is_error: bool,
    key: str,
    overwrite: bool,
    ttl: timedelta | float | None,
    decide_by: DecidedBy | str | None,
    request_id: str | None,
) -> Call[StorageDecision]:
    """Call EvaluateForStorage."""
    request = pb.EvaluateForStorageRequest(
        namespace=namespace,
        tool_name=tool_name,
        result=value_from(result, "result"),
        goal=goal,
        save=save,
        is_error=is_error,
        key=key,
        overwrite=overwrite,
        decide_by=decide_by_number(decide_by),
        request_id=request_id_or_new(request_id),
    )
    if arguments is not None:
        request.arguments.CopyFrom(struct_from(arguments, "arguments"))
    set_ttl(request, ttl)

    def read(response: pb.EvaluateForStorageResponse) -> StorageDecision:
        return StorageDecision(
            should_save=response.should_save,
            key=response.key,
            reason=response.reason,
            saved=response.saved,
            entry=entry_to(response.entry) if response.HasField("entry") else None,
            skipped=response.skipped,
            description=response.description,
            existing_version=response.existing_version,
            **decision_to(response),
        )

    return Call(_SERVICE + "EvaluateForStorage", request, pb.EvaluateForStorageResponse, read)
