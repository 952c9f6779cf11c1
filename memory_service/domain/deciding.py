"""The language model decides if it can, else rules do; and the answer says which it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from memory_service.caller import Owner, present_caller
from memory_service.decisions import DecidedBy, Failure, Usage
from memory_service.errors import FailedPrecondition, Unavailable
from memory_service.llms.base import Llm, LlmFailed

T = TypeVar("T", bound=msgspec.Struct)


class Deciding:
    """Who decides on one call of the API, and what went wrong and was spent on the way.

    One object serves one call. `ask` returns None where rules have to decide.
    """

    def __init__(self, llm: Llm | None, decide_by: DecidedBy, namespace: str = "") -> None:
        """`namespace` is the one that the call is about.

        Raises LLM_REQUIRED where the caller insists on a model and there is none."""
        if decide_by is DecidedBy.LLM and llm is None:
            raise FailedPrecondition.llm_required()
        self._llm = None if decide_by is DecidedBy.RULES else llm
        self._owner = Owner(present_caller().name, namespace.encode())
        self._insist = decide_by is DecidedBy.LLM
        self.failures: list[Failure] = []
        self.usage = Usage()

    @property
    def model(self) -> str:
        """The name of the model that `ask` asks; empty: none."""
        return self._llm.name if self._llm else ""

    async def ask(
        self,
        instructions: str,
        data: Mapping[str, str],
        answer_type: type[T],
        *,
        output_tokens_max: int = 1000,
    ) -> T | None:
        """Return the model's answer; None: there is none, so rules decide. See `Llm.ask`.

        Raises LLM_UNAVAILABLE where the caller insists on the model and it fails.
        """
        if self._llm is None:
            return None
        try:
            answer, usage = await self._llm.ask(
                instructions, data, answer_type, output_tokens_max=output_tokens_max, owner=self._owner
            )
        except LlmFailed as failed:
            self.usage.add(failed.usage)
            if self._insist:
                raise Unavailable.llm(failed.failure.message) from failed
            self.failures.append(failed.failure)
            return None
        self.usage.add(usage)
        return answer
