"""Facts about a decision: who made it, what failed on the way, what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DecidedBy(StrEnum):
    """The decider. In a request, None: the language model if it can, else rules."""

    LLM = "llm"
    """The language model. In requests: only it; if it fails, the call fails and nothing is written."""
    RULES = "rules"
    """The server's rules. In requests: only they; no language model is called."""
    UNSPECIFIED = "unspecified"
    """In answers: no decision was needed."""


@dataclass(frozen=True, slots=True)
class DecisionFailure:
    """A failure on the way to a decision that did not prevent it."""

    reason: str
    """For programs, such as "LLM_TIMEOUT" or "KEY_EXISTS"."""
    message: str
    """For humans."""
    key: str = ""
    """The state key or the memory id that it concerns. Empty: the whole decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmUsage:
    """Use of the language model for an answer."""

    model: str
    """As "provider:model". Empty: none was called."""
    call_count: int
    """Number of calls, retries and repairs included."""
    cached_count: int
    """Number of questions answered from the cache instead."""
    input_tokens: int
    """Of all calls, as counted by the provider. 0: none, or not reported."""
    output_tokens: int
    """Of all calls, as counted by the provider. 0: none, or not reported."""
