"""Language models of OpenAI, or of any server with the same API."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from memory_service.decisions import FailureReason, Usage
from memory_service.llms.answers import Answered, Answers, Question
from memory_service.llms.base import NOBODY, Llm, LlmFailed
from memory_service.llms.budget import TokenBudget
from memory_service.llms.chat import Chat
from memory_service.llms.question import Message, messages_of, repair_of, tokens_of
from memory_service.llms.reading import UnreadableAnswer, read_answer
from memory_service.llms.standing import FAILURES_MAX, PAUSE_S, Standing, Standings
from memory_service.openai_api import ApiFailed, OpenAIApi
from memory_service.runtime.breaker import Breaker
from memory_service.runtime.caller import Holder, Owner
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.yielding import aside

T = TypeVar("T", bound=msgspec.Struct)

_log = EventLog(__name__)


@dataclass(frozen=True)
class LlmSettings:
    """Settings of a model. `timeout_s` limits a whole answer, with retries and repair."""

    model: str = "gpt-4o-mini"
    timeout_s: float = 20.0
    retries: int = 1
    tokens_per_minute_max: int = 200_000
    """Limit per caller; 0: none."""
    total_tokens_per_minute_max: int = 2_000_000
    """Limit for all callers together; 0: none."""
    input_tokens_max: int = 12_000
    """Limit per question, estimated from its characters."""


class _Asked(msgspec.Struct, frozen=True):
    """A question as it is sent, and its caller."""

    messages: list[Message]
    answer_type: type[msgspec.Struct]
    output_tokens_max: int
    holder: Holder


class OpenAILlm(Llm):
    """Uses a chat completions endpoint. Environment variables mean the same as for `openai`.

    Callers share one piece of state: whether connections to the server fail.
    """

    def __init__(self, settings: LlmSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns seconds, for pauses, token limits and the age of cached answers."""
        self.name = f"openai:{settings.model}"
        self._settings = settings
        # `Chat` retries instead, to count the calls and to stop at the deadline.
        self._api = OpenAIApi(settings.timeout_s, retries=0)
        self._standings = Standings(settings.tokens_per_minute_max, clock)
        self._budget = TokenBudget(settings.total_tokens_per_minute_max, clock, "all callers together")
        self._line = Breaker(FAILURES_MAX, PAUSE_S, clock)
        self._chat = Chat(self._api, settings.model, settings.retries, self._budget)
        self._answers = Answers(clock)
        self._running: dict[Question, asyncio.Task[Answered]] = {}

    async def ask(
        self,
        instructions: str,
        data: Mapping[str, str],
        answer_type: type[T],
        *,
        output_tokens_max: int = 1000,
        owner: Owner = NOBODY,
    ) -> tuple[T, Usage]:
        words = msgspec.json.encode((instructions, list(data.items()), output_tokens_max))
        # A digest, so that the cache holds no texts.
        question = Question(owner, answer_type, hashlib.blake2b(words, digest_size=16).digest())
        if (answered := self._answers.find(question)) is not None:
            return _read(answered, answer_type), Usage(self.name, cached_count=1)
        found = self._running.get(question)
        task = found or self._start(question, messages_of(instructions, data, answer_type), output_tokens_max)
        try:
            # Several calls of a caller may share the question: it continues if one of them is cancelled.
            answered = await aside(asyncio.shield(task))
        except LlmFailed as failed:
            if found is None:
                raise
            raise LlmFailed(failed.failure.reason, failed.failure.message) from failed
        usage = answered.usage if found is None else Usage(self.name, cached_count=1)
        return _read(answered, answer_type), usage

    def _start(
        self, question: Question, messages: list[Message], output_tokens_max: int
    ) -> asyncio.Task[Answered]:
        asked = _Asked(messages, question.answer_type, output_tokens_max, question.owner.holder)
        task = self._running[question] = asyncio.create_task(self._answer(asked))
        task.add_done_callback(functools.partial(self._ended, question))
        return task

    def _ended(self, question: Question, task: asyncio.Task[Answered]) -> None:
        del self._running[question]
        # Retrieve a failure, or asyncio logs it if all callers have left. It is not cached.
        if not task.cancelled() and task.exception() is None:
            self._answers.keep(question, task.result())

    async def _answer(self, asked: _Asked) -> Answered:
        """Ask the server within the timeout. Raises LlmFailed."""
        standing = self._admitted(asked)
        usage = Usage(self.name)
        deadline = asyncio.get_running_loop().time() + self._settings.timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                answer = await self._answer_or_repaired(asked, usage, deadline, standing)
        except TimeoutError as error:
            raise self._failed(FailureReason.LLM_TIMEOUT, self._too_late, usage, standing, error) from error
        except ApiFailed as error:
            if error.timed_out:
                raise self._failed(
                    FailureReason.LLM_TIMEOUT, self._too_late, usage, standing, error
                ) from error
            message = f"the language model {_what_happened(error)}"
            raise self._failed(FailureReason.LLM_UNAVAILABLE, message, usage, standing, error) from error
        except UnreadableAnswer as error:
            message = f"the language model's answer cannot be used: {error}"
            raise self._failed(FailureReason.LLM_INVALID_ANSWER, message, usage, standing, error) from error
        standing.breaker.succeeded()
        self._line.succeeded()
        return Answered(msgspec.json.encode(answer), usage)

    def _admitted(self, asked: _Asked) -> Standing:
        """Return the caller's standing. Raises LlmFailed if the question must not be asked now."""
        tokens = tokens_of(asked.messages)
        if tokens > self._settings.input_tokens_max:
            message = (
                f"the question has about {tokens} tokens; the limit is {self._settings.input_tokens_max}"
            )
            raise LlmFailed(FailureReason.LLM_BUDGET_EXCEEDED, message)
        standing = self._standings.find(asked.holder)
        for budget in (standing.budget, self._budget):
            budget.require(tokens + asked.output_tokens_max, Usage())
        # The caller's own breaker last: it may admit the one trial after a pause, which must not be wasted.
        if self._line.is_open or not standing.breaker.admit():
            message = "the language model failed too often recently and is paused"
            raise LlmFailed(FailureReason.LLM_PAUSED, message)
        self._standings.keep(asked.holder, standing)
        return standing

    async def _answer_or_repaired(
        self, asked: _Asked, usage: Usage, deadline: float, standing: Standing
    ) -> msgspec.Struct:
        """Return the answer; ask once more if the first is invalid. Raises UnreadableAnswer."""
        messages, answer_type = asked.messages, asked.answer_type
        tokens_max = asked.output_tokens_max
        said = await self._chat.complete(messages, answer_type, tokens_max, usage, deadline, standing)
        try:
            return read_answer(said.text, answer_type)
        except UnreadableAnswer as error:
            messages = repair_of(messages, said.text, str(error))
        if said.cut_off:
            # With the same limit, the same answer would be cut off again.
            tokens_max *= 2
        said = await self._chat.complete(messages, answer_type, tokens_max, usage, deadline, standing)
        return read_answer(said.text, answer_type)

    @property
    def _too_late(self) -> str:
        return f"the language model did not answer within {self._settings.timeout_s:g} s"

    def _failed(
        self, reason: FailureReason, message: str, usage: Usage, standing: Standing, error: Exception
    ) -> LlmFailed:
        """Count and log a failure, without the message, which may quote an answer."""
        standing.breaker.failed()
        if isinstance(error, ApiFailed) and error.unreached:
            self._line.failed()
        elif not isinstance(error, TimeoutError):
            # The connection works; the question of this caller may have caused the failure.
            self._line.succeeded()
        cause = error.cause if isinstance(error, ApiFailed) else type(error).__name__
        _log.warning(
            "llm_failed",
            model=self._settings.model,
            reason=reason.name,
            cause=cause,
            status=getattr(error, "status", 0),
            call_count=usage.call_count,
        )
        return LlmFailed(reason, message, usage)

    async def close(self) -> None:
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._api.close()


def _read(answered: Answered, answer_type: type[T]) -> T:
    return msgspec.json.decode(answered.answer, type=answer_type)


def _what_happened(error: ApiFailed) -> str:
    if error.status:
        return f"answered with status {error.status}"
    return "could not be reached" if error.may_pass else "sent an invalid completion"
