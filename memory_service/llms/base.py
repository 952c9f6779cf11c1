"""The language model contract."""

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
    """The model gave no usable answer. `usage` is what the attempt spent."""

    def __init__(self, reason: FailureReason, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.failure = Failure(reason, message)
        self.usage = usage or Usage()


class Llm(ABC):
    """Answers questions in a requested form. For no model, use None instead of one that does nothing."""

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

        `owner` is the caller that asks and the namespace the question is about. The answers, failures and
        timing that one caller sees MUST NOT depend on what another caller asks, spends, or does to the model.

        `instructions` are the server's own words. `data` holds texts of users and tools by name: they MUST
        reach the model delimited and named as data, so that text in them that looks like an instruction or a
        delimiter has no effect. The result MUST be a complete and valid `answer_type`: surrounding prose,
        code fences and nesting MUST NOT matter; a truncated or invalid answer MUST be requested once more
        (one repair), and MUST NOT be returned as an empty one.

        Raises LlmFailed with LLM_UNAVAILABLE, LLM_TIMEOUT, LLM_INVALID_ANSWER, LLM_PAUSED (too many recent
        failures) or LLM_BUDGET_EXCEEDED (question too long, or too many tokens recently). It MUST return or
        raise within its timeout, including retries and repair. The same question of the same owner MAY be
        answered from a cache; the call may be repeated.
        """

    async def close(self) -> None:
        """Release connections."""
        return
