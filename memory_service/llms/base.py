"""The contract of a language model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from memory_service.decisions import Failure, FailureReason, Usage
from memory_service.runtime.caller import Owner

T = TypeVar("T", bound=msgspec.Struct)


NOBODY = Owner("", b"")
"""The server itself."""


class LlmFailed(Exception):
    """The model gave no answer that can be used. `usage` tells what was spent on it."""

    def __init__(self, reason: FailureReason, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.failure = Failure(reason, message)
        self.usage = usage or Usage()


class Llm(ABC):
    """Answers questions in a form that is asked for. No model at all is None, not one that does nothing."""

    name: str
    """Provider and model, as in "openai:gpt-4o-mini"."""

    @abstractmethod
    async def ask(
        self,
        instructions: str,
        data: Mapping[str, str],
        answer_type: type[T],
        *,
        output_tokens_max: int = 1000,
        owner: Owner = NOBODY,
    ) -> tuple[T, Usage]:
        """Return the answer to a question, validated against `answer_type`.

        `owner` is whose question it is: its caller, and the namespace that it is about. No caller MUST notice
        in an answer, a failure or a time what another one asks, spends, or does to the model by a question.

        `instructions` are the server's own words. `data` are texts of users and tools by name: they
        MUST reach the model delimited and named as data, so that a text in them that looks like an
        instruction or like a delimiter is neither. What comes back MUST be an `answer_type` whole and
        valid: prose around it, code fences and nesting MUST NOT matter; a cut-off or invalid answer
        MUST be asked for once more (one repair), and MUST NOT be returned as an empty one.

        Raises LlmFailed with LLM_UNAVAILABLE, LLM_TIMEOUT, LLM_INVALID_ANSWER, LLM_PAUSED (it failed
        too often of late) or LLM_BUDGET_EXCEEDED (too long a question, or too many tokens of late).
        It MUST return or raise within its timeout, retries and repair included. The same question of the
        same owner MAY be answered from a cache; it may be repeated.
        """

    async def close(self) -> None:
        """Release connections."""
        return
