"""Optional fields of requests, and fields of responses that several services share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from memory_client._calls.call import Page
from memory_client._gen.memory_service.v1 import memory_pb2, overseer_pb2
from memory_client.convert import degraded_to, enum_from, enum_to, kind_number, source_number
from memory_client.decisions import DecidedBy, DecisionFailure, LlmUsage
from memory_client.found import Found
from memory_client.models import Contribution, ItemKind, RetrieveMode, SourceKind
from memory_client.values import AROUND_ITEM_FIELD, duration_from, struct_from, timestamp_from

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)
_FAILURE = "DECISION_FAILURE_REASON_"


def set_times(message: Any, **times: datetime | None) -> None:
    """Set the times that are given."""
    for field, time in times.items():
        if time is not None:
            getattr(message, field).CopyFrom(timestamp_from(time, field))


def set_ttl(message: Any, ttl: timedelta | float | None) -> None:
    """Set the time to live if one is given."""
    if ttl is not None:
        message.ttl.CopyFrom(duration_from(ttl))


def set_metadata(message: Any, metadata: Mapping[str, Any] | None) -> None:
    """Set the metadata if there is any."""
    if metadata:
        message.metadata.CopyFrom(struct_from(metadata, "metadata", around=AROUND_ITEM_FIELD))


def number_of(proto_enum: Any, prefix: str, kind: type[E], value: E | str | None) -> Any:
    """Return the number of a value; for None, that of "unspecified".

    Raises:
        ValueError: There is no such value.
    """
    return 0 if value is None else enum_from(proto_enum, prefix, kind(value))


def mode_number(mode: RetrieveMode | str | None) -> Any:
    """Return the number of a search mode."""
    return number_of(memory_pb2.RetrieveMode, "RETRIEVE_MODE_", RetrieveMode, mode)


def decide_by_number(decide_by: DecidedBy | str | None) -> Any:
    """Return the number of a decider."""
    return number_of(overseer_pb2.DecidedBy, "DECIDED_BY_", DecidedBy, decide_by)


def value_or_none(message: Any, field: str) -> Any:
    """Return the value of a field. None: unset."""
    return getattr(message, field) if message.HasField(field) else None


def decided_by_to(number: int) -> DecidedBy:
    """Return the decider."""
    return enum_to(overseer_pb2.DecidedBy, "DECIDED_BY_", number, DecidedBy, DecidedBy.UNSPECIFIED)


def decision_to(response: Any) -> dict[str, Any]:
    """Return the fields common to all answers with a decision, as keyword arguments."""
    return {
        "decided_by": decided_by_to(response.decided_by),
        "failures": tuple(_failure_to(failure) for failure in response.failures),
        "llm_usage": _usage_to(response.llm_usage) if response.HasField("llm_usage") else None,
        "degraded": degraded_to(response.degraded),
        "revision": response.revision,
    }


def _failure_to(failure: overseer_pb2.DecisionFailure) -> DecisionFailure:
    try:
        reason = overseer_pb2.DecisionFailureReason.Name(failure.reason).removeprefix(_FAILURE)
    except ValueError:  # A reason of a newer server.
        reason = "UNSPECIFIED"
    return DecisionFailure(reason, failure.message, failure.key)


def _usage_to(usage: overseer_pb2.LlmUsage) -> LlmUsage:
    return LlmUsage(
        model=usage.model,
        call_count=usage.call_count,
        cached_count=usage.cached_count,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
    )


def explanation_to(explanation: memory_pb2.Explanation) -> tuple[Contribution, ...]:
    """Return the shares of a score."""
    return tuple(
        Contribution(share.channel, share.raw_score, share.weight, share.scale, share.contribution)
        for share in explanation.contributions
    )


def found_of(pages: Iterable[Page[T]]) -> Found[T]:
    """Join the pages of an answer; facts besides the entries come from the first."""
    all_pages = list(pages)
    first = all_pages[0].response
    degraded = degraded_to(getattr(first, "degraded", ()))
    entries = [entry for page in all_pages for entry in page.entries]
    return Found(entries, degraded=degraded, revision=first.revision)


def kind_numbers(kinds: Sequence[ItemKind | str]) -> list[Any]:
    """Return the numbers of kinds of items."""
    return [kind_number(kind) for kind in kinds]


def source_numbers(sources: Sequence[SourceKind | str]) -> list[Any]:
    """Return the numbers of kinds of sources."""
    return [source_number(source) for source in sources]
