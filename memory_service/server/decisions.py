"""Metadata of decisions as protobuf: who decided, failures, cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from memory_service.data_model import Contribution
from memory_service.decisions import DecidedBy, Failure, Usage
from memory_service.domain.embedding import Degradation
from memory_service.errors import InvalidArgument
from memory_service.v1 import memory_pb2, overseer_pb2

_KEY_BYTES_MAX = 512


class Decided(Protocol):
    """A response about a decision, with the proto's `failures` and `llm_usage`."""

    failures: Any
    llm_usage: Any


def to_decided_by(field: str, number: int) -> DecidedBy:
    """Return the requested decider. Raises InvalidArgument for `field` if the number is undefined."""
    try:
        return DecidedBy(number)
    except ValueError as error:
        raise InvalidArgument(field, f"has no value {number}") from error


def from_decided_by(decided_by: DecidedBy) -> overseer_pb2.DecidedBy:
    """Return who decided, as in the proto."""
    return int(decided_by)  # type: ignore[return-value]


def fill_decision(response: Decided, failures: Iterable[Failure], usage: Usage) -> None:
    """Set `failures` and `llm_usage` of a response; the latter stays unset if no model was used."""
    for failure in failures:
        fill_failure(response.failures.add(), failure)
    if usage.call_count or usage.cached_count:
        fill_usage(response.llm_usage, usage)


def fill_failure(target: overseer_pb2.DecisionFailure, failure: Failure) -> None:
    """Set a protobuf failure; its key is cut to 512 bytes."""
    target.reason = int(failure.reason)  # type: ignore[assignment]
    target.message = failure.message
    target.key = failure.key.encode("utf-8", "replace")[:_KEY_BYTES_MAX].decode("utf-8", "ignore")


def fill_usage(target: overseer_pb2.LlmUsage, usage: Usage) -> None:
    """Set a protobuf usage."""
    target.model = usage.model
    target.call_count, target.cached_count = usage.call_count, usage.cached_count
    target.input_tokens, target.output_tokens = usage.input_tokens, usage.output_tokens


def degradations(found: Iterable[Degradation]) -> list[memory_pb2.Degradation]:
    """Return the degradations of a response as protobuf."""
    return [memory_pb2.Degradation(reason=int(d.reason), message=d.message) for d in found]  # type: ignore[arg-type]


def fill_explanation(target: memory_pb2.Explanation, shares: Iterable[Contribution]) -> None:
    """Set the explanation of a score."""
    target.SetInParent()
    for share in shares:
        target.contributions.add(
            channel=share.channel,
            raw_score=share.raw_score,
            weight=share.weight,
            scale=share.scale,
            contribution=share.value,
        )
