"""Language models of OpenAI, or of any server that speaks its API."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import structlog

from memory_service.breaker import Breaker
from memory_service.decisions import FailureReason, Usage
from memory_service.llms.base import Llm, LlmFailed
from memory_service.llms.budget import TokenBudget
from memory_service.llms.chat import Chat
from memory_service.llms.question import Message, messages_of, repair_of, tokens_of
from memory_service.llms.reading import UnreadableAnswer, read_answer
from memory_service.openai_api import ApiFailed, OpenAIApi

T = TypeVar("T", bound=msgspec.Struct)

_CACHED_ANSWERS_MAX = 256
_CACHED_S = 600.0
_FAILURES_MAX = 5
_PAUSE_S = 30.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class LlmSettings:
    """How a model is asked. `timeout_s` is for a whole answer, with retries and repair."""

    model: str = "gpt-4o-mini"
    timeout_s: float = 20.0
    retries: int = 1
    tokens_per_minute_max: int = 200_000
    """0: no cap."""
    input_tokens_max: int = 12_000
    """Cap on a question, estimated from its characters."""


class _Question(msgspec.Struct, frozen=True):
    messages: list[Message]
    answer_type: type[msgspec.Struct]
    output_tokens_max: int


class _Answered(msgspec.Struct, frozen=True):
    """An answer as JSON: whoever is given it makes an object of his own of it."""

    answer: bytes
    usage: Usage


class OpenAILlm(Llm):
    """Asks a chat completions endpoint. The environment's variables mean what they mean to `openai`."""

    def __init__(self, settings: LlmSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` tells seconds for pauses, the cap of tokens per minute and the age of cached answers."""
        self.name = f"openai:{settings.model}"
        self._settings = settings
        self._clock = clock
        # Retries are made here: they are counted, and end when the time is up.
        self._api = OpenAIApi(settings.timeout_s, retries=0)
        self._breaker = Breaker(_FAILURES_MAX, _PAUSE_S, clock)
        self._budget = TokenBudget(settings.tokens_per_minute_max, clock)
        self._chat = Chat(self._api, settings.model, settings.retries, self._budget)
        self._cache: OrderedDict[object, tuple[float, asyncio.Task[_Answered]]] = OrderedDict()
        self._running: set[asyncio.Task[_Answered]] = set()

    async def ask(
        self,
        instructions: str,
        data: Mapping[str, str],
        answer_type: type[T],
        *,
        output_tokens_max: int = 1000,
    ) -> tuple[T, Usage]:
        question = _Question(messages_of(instructions, data, answer_type), answer_type, output_tokens_max)
        asked = msgspec.json.encode((instructions, list(data.items()), output_tokens_max))
        # A digest, so that the cache holds no texts.
        key = (answer_type, hashlib.blake2b(asked, digest_size=16).digest())
        found = self._find(key)
        task = found or self._start(key, question)
        try:
            # The question may be others', too: a caller that goes away does not end it.
            answered = await asyncio.shield(task)
        except LlmFailed as failed:
            if found is None:
                raise
            raise LlmFailed(failed.failure.reason, failed.failure.message) from failed
        answer = msgspec.json.decode(answered.answer, type=answer_type)
        return answer, answered.usage if found is None else Usage(self.name, cached_count=1)

    def _find(self, key: object) -> asyncio.Task[_Answered] | None:
        """The same question, if it is being answered or was answered lately."""
        asked_at, task = self._cache.get(key, (0.0, None))
        if task is None:
            return None
        if _has_failed(task) or self._clock() - asked_at >= _CACHED_S:
            del self._cache[key]
            return None
        self._cache.move_to_end(key)
        return task

    def _start(self, key: object, question: _Question) -> asyncio.Task[_Answered]:
        task = asyncio.create_task(self._answer(question))
        self._running.add(task)
        task.add_done_callback(functools.partial(self._ended, key))
        self._cache[key] = (self._clock(), task)
        if len(self._cache) > _CACHED_ANSWERS_MAX:
            self._cache.popitem(last=False)
        return task

    def _ended(self, key: object, task: asyncio.Task[_Answered]) -> None:
        self._running.discard(task)
        # A failure is looked at, or asyncio complains where every caller has gone away; and let go of.
        if _has_failed(task) and self._cache.get(key, (0.0, None))[1] is task:
            del self._cache[key]

    async def _answer(self, question: _Question) -> _Answered:
        """Ask the server, within the time there is. Raises LlmFailed."""
        self._admit(question)
        usage = Usage(self.name)
        deadline = asyncio.get_running_loop().time() + self._settings.timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                answer = await self._answer_or_repaired(question, usage, deadline)
        except TimeoutError as error:
            raise self._failed(FailureReason.LLM_TIMEOUT, self._too_late, usage, error) from error
        except ApiFailed as error:
            if error.timed_out:
                raise self._failed(FailureReason.LLM_TIMEOUT, self._too_late, usage, error) from error
            message = f"the language model {_what_happened(error)}"
            raise self._failed(FailureReason.LLM_UNAVAILABLE, message, usage, error) from error
        except UnreadableAnswer as error:
            message = f"the language model's answer cannot be used: {error}"
            raise self._failed(FailureReason.LLM_INVALID_ANSWER, message, usage, error) from error
        self._breaker.succeeded()
        return _Answered(msgspec.json.encode(answer), usage)

    def _admit(self, question: _Question) -> None:
        """Raises LlmFailed for a question that is not to be asked, or not now."""
        tokens = tokens_of(question.messages)
        if tokens > self._settings.input_tokens_max:
            message = f"the question has about {tokens} tokens; the cap is {self._settings.input_tokens_max}"
            raise LlmFailed(FailureReason.LLM_BUDGET_EXCEEDED, message)
        self._budget.require(tokens + question.output_tokens_max, Usage())
        # Last, for it may be the one trial after a pause, and that is not to be wasted.
        if not self._breaker.admit():
            message = "the language model failed too often of late and is not asked for a while"
            raise LlmFailed(FailureReason.LLM_PAUSED, message)

    async def _answer_or_repaired(self, question: _Question, usage: Usage, deadline: float) -> msgspec.Struct:
        """The answer, asked for a second time where the first cannot be read. Raises UnreadableAnswer."""
        messages, answer_type = question.messages, question.answer_type
        tokens_max = question.output_tokens_max
        said = await self._chat.complete(messages, answer_type, tokens_max, usage, deadline)
        try:
            return read_answer(said.text, answer_type)
        except UnreadableAnswer as error:
            messages = repair_of(messages, said.text, str(error))
        if said.cut_off:
            # The same answer with the same cap would be cut off again.
            tokens_max *= 2
        said = await self._chat.complete(messages, answer_type, tokens_max, usage, deadline)
        return read_answer(said.text, answer_type)

    @property
    def _too_late(self) -> str:
        return f"the language model did not answer within {self._settings.timeout_s:g} s"

    def _failed(self, reason: FailureReason, message: str, usage: Usage, error: Exception) -> LlmFailed:
        """Count a failure and log it; the message stays out of the log, for it may quote an answer."""
        self._breaker.failed()
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
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._api.close()


def _has_failed(task: asyncio.Task[_Answered]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _what_happened(error: ApiFailed) -> str:
    if error.status:
        return f"answered with status {error.status}"
    return "could not be reached" if error.may_pass else "sent something that is no completion"
