"""Conversions of a user's memories to their protobuf messages and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from memory_client._calls.fields import decided_by_to, decision_to, number_of, value_or_none
from memory_client._gen.memory_service.v1 import user_memory_pb2 as pb
from memory_client.convert import enum_to, provenance_to, time_to
from memory_client.user_memories import (
    Consolidation,
    ConsolidationAction,
    ExtractedMemory,
    Importance,
    ImportanceAdjustment,
    MemoryCategory,
    MemoryOrigin,
    MemoryOutcome,
    MemorySource,
    MemoryStatus,
    OnContradiction,
    SavedMemory,
    UpdatedMemory,
    UserMemory,
)
from memory_client.values import listed, struct_to


def category_number(category: MemoryCategory | str) -> Any:
    """Return the number of a category."""
    return number_of(pb.MemoryCategory, "MEMORY_CATEGORY_", MemoryCategory, category)


def category_numbers(categories: Sequence[MemoryCategory | str]) -> list[Any]:
    """Return the numbers of categories."""
    return [category_number(category) for category in categories]


def on_contradiction_number(value: OnContradiction | str | None) -> Any:
    """Return the number of a way to handle a contradiction."""
    return number_of(pb.OnContradiction, "ON_CONTRADICTION_", OnContradiction, value)


def source_from(source: MemorySource) -> pb.MemorySource:
    """Convert the fields of a source that a caller sets."""
    return pb.MemorySource(
        session_id=source.session_id,
        item_ids=listed(source.item_ids, "source.item_ids"),
        quote=source.quote,
        actor=source.actor,
    )


def _source_to(proto: pb.MemorySource) -> MemorySource:
    return MemorySource(
        session_id=proto.session_id,
        item_ids=tuple(proto.item_ids),
        quote=proto.quote,
        actor=proto.actor,
        origin=enum_to(
            pb.MemoryOrigin, "MEMORY_ORIGIN_", proto.origin, MemoryOrigin, MemoryOrigin.UNSPECIFIED
        ),
        memory_ids=tuple(proto.memory_ids),
        model=proto.model,
    )


def _adjustments_to(protos: Iterable[pb.ImportanceAdjustment]) -> tuple[ImportanceAdjustment, ...]:
    return tuple(ImportanceAdjustment(proto.name, proto.amount, proto.reason) for proto in protos)


def _importance_to(proto: pb.Importance) -> Importance:
    return Importance(
        base=proto.base,
        boosts=_adjustments_to(proto.boosts),
        reductions=_adjustments_to(proto.reductions),
        score=proto.score,
        decay_factor=proto.decay_factor,
        current_score=proto.current_score,
        decided_by=decided_by_to(proto.decided_by),
    )


def memory_to(proto: pb.UserMemory) -> UserMemory:
    """Convert to a memory."""
    unknown = MemoryCategory.UNSPECIFIED
    return UserMemory(
        id=proto.id,
        content=proto.content,
        category=enum_to(pb.MemoryCategory, "MEMORY_CATEGORY_", proto.category, MemoryCategory, unknown),
        reasoning=proto.reasoning,
        importance=_importance_to(proto.importance),
        version=proto.version,
        status=enum_to(
            pb.MemoryStatus, "MEMORY_STATUS_", proto.status, MemoryStatus, MemoryStatus.UNSPECIFIED
        ),
        valid_from_time=time_to(proto, "valid_from_time"),
        valid_until_time=time_to(proto, "valid_until_time"),
        superseded_by=proto.superseded_by,
        supersedes=tuple(proto.supersedes),
        original_content=proto.original_content,
        source=_source_to(proto.source),
        create_time=time_to(proto, "create_time"),
        update_time=time_to(proto, "update_time"),
        expire_time=time_to(proto, "expire_time"),
        labels=dict(proto.labels),
        metadata=struct_to(proto.metadata),
        revision=proto.revision,
        provenance=provenance_to(proto),
    )


def memory_or_none(message: Any, field: str) -> UserMemory | None:
    """Return the memory in a field. None: unset."""
    return memory_to(getattr(message, field)) if message.HasField(field) else None


def memories_to(protos: Iterable[pb.UserMemory]) -> tuple[UserMemory, ...]:
    """Convert to memories."""
    return tuple(memory_to(proto) for proto in protos)


def outcome_to(number: int) -> MemoryOutcome:
    """Return the outcome for a fact."""
    unknown = MemoryOutcome.UNSPECIFIED
    return enum_to(pb.MemoryOutcome, "MEMORY_OUTCOME_", number, MemoryOutcome, unknown)


def saved_to(response: pb.SaveMemoryResponse) -> SavedMemory:
    """Convert the response of SaveMemory."""
    return SavedMemory(
        outcome=outcome_to(response.outcome),
        memory=memory_or_none(response, "memory"),
        existing=memory_or_none(response, "existing"),
        superseded=memories_to(response.superseded),
        message=response.message,
        similarity=value_or_none(response, "similarity"),
        duplicate_threshold=response.duplicate_threshold,
        reason=response.reason,
        rephrased_by=decided_by_to(response.rephrased_by),
        **decision_to(response),
    )


def updated_to(response: pb.UpdateMemoryResponse) -> UpdatedMemory:
    """Convert the response of UpdateMemory."""
    return UpdatedMemory(
        outcome=outcome_to(response.outcome),
        memory=memory_to(response.memory),
        existing=memory_or_none(response, "existing"),
        rephrased_by=decided_by_to(response.rephrased_by),
        **decision_to(response),
    )


def extracted_to(proto: pb.ExtractedMemory) -> ExtractedMemory:
    """Convert an extracted fact."""
    return ExtractedMemory(
        outcome=outcome_to(proto.outcome),
        memory=memory_to(proto.memory),
        existing=memory_or_none(proto, "existing"),
        superseded=memories_to(proto.superseded),
        similarity=value_or_none(proto, "similarity"),
        decided_by=decided_by_to(proto.decided_by),
        reason=proto.reason,
        confidence=value_or_none(proto, "confidence"),
    )


def consolidation_to(proto: pb.Consolidation) -> Consolidation:
    """Convert a consolidation of one group."""
    unknown = ConsolidationAction.UNSPECIFIED
    return Consolidation(
        action=enum_to(
            pb.ConsolidationAction, "CONSOLIDATION_ACTION_", proto.action, ConsolidationAction, unknown
        ),
        sources=memories_to(proto.sources),
        memory=memory_or_none(proto, "memory"),
        applied=proto.applied,
        similarity=proto.similarity,
        decided_by=decided_by_to(proto.decided_by),
        reason=proto.reason,
    )
