"""What there is to say of a decision: who made it, what went wrong on the way, what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DecidedBy(StrEnum):
    """Who decided, or is to decide. A request without one: the language model if it can, else rules."""

    LLM = "llm"
    """The language model. In requests: it alone; where it fails the call fails and nothing is written."""
    RULES = "rules"
    """The server's rules. In requests: they alone; no language model is asked."""
    UNSPECIFIED = "unspecified"
    """In answers: nobody, as there was nothing to do."""


@dataclass(frozen=True, slots=True)
class DecisionFailure:
    """Something that went wrong on the way to a decision, and was got over."""

    reason: str
    """Such as "LLM_TIMEOUT" or "KEY_EXISTS", for programs."""
    message: str
    """For humans."""
    key: str = ""
    """Key of the state, or id of the memory, that it is about. Empty: the whole decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmUsage:
    """What an answer cost at the language model."""

    model: str
    """As "provider:model". Empty: none was asked."""
    call_count: int
    """How many times it was called, retries and repairs included."""
    cached_count: int
    """How many questions were answered from the cache instead."""
    input_tokens: int
    """Of all calls, as the provider counts them. 0: none, or not told."""
    output_tokens: int
    """Of all calls, as the provider counts them. 0: none, or not told."""
