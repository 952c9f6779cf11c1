"""Metadata of a decision: who made it, what failed on the way, what it cost."""

from __future__ import annotations

import enum

import msgspec


class DecidedBy(enum.IntEnum):
    """Who decided, or is to decide; the numbers equal the proto's."""

    UNSPECIFIED = 0
    LLM = 1
    RULES = 2


class FailureReason(enum.IntEnum):
    """Why a step towards a decision failed; the numbers equal the proto's."""

    LLM_UNAVAILABLE = 1
    LLM_TIMEOUT = 2
    LLM_INVALID_ANSWER = 3
    LLM_PAUSED = 4
    LLM_BUDGET_EXCEEDED = 5
    UNKNOWN_KEY = 6
    INVALID_VALUE = 7
    KEY_EXISTS = 8
    CHANGED_MEANWHILE = 9


class Failure(msgspec.Struct, frozen=True):
    """A failure that was handled. `key` is the state, id or name concerned."""

    reason: FailureReason
    message: str
    key: str = ""


class Usage(msgspec.Struct):
    """The cost of an answer of the language model; `model` as "provider:model", empty if none was used."""

    model: str = ""
    call_count: int = 0
    cached_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, other: Usage) -> None:
        """Add the cost of another answer."""
        self.model = other.model or self.model
        self.call_count += other.call_count
        self.cached_count += other.cached_count
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
