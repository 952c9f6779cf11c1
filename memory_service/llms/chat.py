"""Calls of a chat completions endpoint, with retries and only the parameters that the server accepts."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec

from memory_service.decisions import Usage
from memory_service.llms.budget import TokenBudget
from memory_service.llms.question import Message, response_format_of, tokens_of
from memory_service.llms.standing import Standing
from memory_service.openai_api import ApiFailed, Completion, OpenAIApi

_REFUSING_STATUSES = (400, 422)
_FIRST_WAIT_S = 0.25


class Chat:
    """A model on a server. `budget` is shared by all callers."""

    def __init__(self, api: OpenAIApi, model: str, retries: int, budget: TokenBudget) -> None:
        self._api = api
        self._model = model
        self._retries = retries
        self._budget = budget

    async def complete(
        self,
        messages: list[Message],
        answer_type: type[msgspec.Struct],
        output_tokens_max: int,
        usage: Usage,
        deadline: float,
        standing: Standing,
    ) -> Completion:
        """Return the completion; count each call in `usage`. `deadline` is in the time of the event loop,
        `standing` that of the caller.

        Raises ApiFailed, and LlmFailed with LLM_BUDGET_EXCEEDED.
        """
        attempt = 0
        while True:
            try:
                return await self._negotiated(messages, answer_type, output_tokens_max, usage, standing)
            except ApiFailed as failed:
                wait_s = failed.retry_after_s
                if wait_s is None:
                    # Spread the retries of calls that failed together.
                    wait_s = _FIRST_WAIT_S * 2**attempt * random.uniform(0.75, 1.25)
                left_s = deadline - asyncio.get_running_loop().time()
                if not failed.may_pass or attempt >= self._retries or wait_s >= left_s:
                    raise
            attempt += 1
            await asyncio.sleep(wait_s)

    async def _negotiated(
        self,
        messages: list[Message],
        answer_type: type[msgspec.Struct],
        output_tokens_max: int,
        usage: Usage,
        standing: Standing,
    ) -> Completion:
        """Call without parameters that the server rejects, and remember them once a call succeeds.

        Remember them for this caller only: the server may reject the question rather than the parameter.
        """
        refused = standing.refused
        while True:
            options = _options(answer_type, output_tokens_max, refused)
            try:
                completion = await self._call(messages, options, output_tokens_max, usage, standing)
            except ApiFailed as failed:
                parameter = _refused_parameter(failed, options)
                if not parameter:
                    raise
                refused |= {parameter}
            else:
                standing.refused |= refused
                return completion

    async def _call(
        self,
        messages: list[Message],
        options: dict[str, Any],
        output_tokens_max: int,
        usage: Usage,
        standing: Standing,
    ) -> Completion:
        tokens = tokens_of(messages) + output_tokens_max
        budgets = (standing.budget, self._budget)
        for budget in budgets:
            budget.require(tokens, usage)
        reservations = [budget.reserve(tokens) for budget in budgets]
        usage.call_count += 1
        try:
            completion = await self._api.complete({"model": self._model, "messages": messages, **options})
        except ApiFailed as failed:
            if failed.status or failed.unreached:
                # An error costs nothing; the cost of a call without a response is unknown.
                tokens = 0
            raise
        else:
            usage.input_tokens += completion.input_tokens
            usage.output_tokens += completion.output_tokens
            if completion.input_tokens:
                tokens = completion.input_tokens + completion.output_tokens
            return completion
        finally:
            for budget, reservation in zip(budgets, reservations, strict=True):
                budget.settle(reservation, tokens)


def _options(
    answer_type: type[msgspec.Struct], output_tokens_max: int, refused: frozenset[str]
) -> dict[str, Any]:
    """The parameters of a call, without those that the server rejects."""
    options: dict[str, Any] = {
        "temperature": 0,
        "max_tokens": output_tokens_max,
        "response_format": response_format_of(answer_type),
    }
    if "max_tokens" in refused:
        # The name that OpenAI's reasoning models require.
        options["max_completion_tokens"] = output_tokens_max
    return {name: value for name, value in options.items() if name not in refused}


def _refused_parameter(failed: ApiFailed, options: dict[str, Any]) -> str:
    """The parameter that a server rejects; empty if the error has another reason."""
    if failed.status not in _REFUSING_STATUSES:
        return ""
    named = failed.parameter.partition(".")[0]
    if named in options:
        return named
    # Most servers that do not name one lack structured output.
    return "response_format" if "response_format" in options else ""
