"""A language model for several callers: questions, costs and failures of one do not affect another."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from credentials import Client, connect, keys_in
from memory_service.decisions import FailureReason
from memory_service.llms.base import LlmFailed
from memory_service.llms.openai import LlmSettings, OpenAILlm
from memory_service.llms.standing import Standings
from memory_service.runtime.caller import Owner
from memory_service.v1 import overseer_pb2
from scripted_openai import Answer, ChatRequest, Reply, ScriptedOpenAI
from server_process import ServerProcess
from user_memories import message

BY_LLM = overseer_pb2.DECIDED_BY_LLM
NONE = {"facts": []}
UNAVAILABLE, INVALID, TIMEOUT, PAUSED, OVER_BUDGET = (
    overseer_pb2.DECISION_FAILURE_REASON_LLM_UNAVAILABLE,
    overseer_pb2.DECISION_FAILURE_REASON_LLM_INVALID_ANSWER,
    overseer_pb2.DECISION_FAILURE_REASON_LLM_TIMEOUT,
    overseer_pb2.DECISION_FAILURE_REASON_LLM_PAUSED,
    overseer_pb2.DECISION_FAILURE_REASON_LLM_BUDGET_EXCEEDED,
)
TOKENS_PER_MINUTE = 20_000


@dataclass(frozen=True)
class Tenant:
    """A caller with a separate namespace."""

    client: Client
    namespace: str

    def ask(self, text: str) -> Any:
        """Have the model look for facts in a text."""
        return self.client.call(
            "ExtractMemories", namespace=self.namespace, messages=[message(text)], dry_run=True
        )


def failures(response: Any) -> list[int]:
    return [failure.reason for failure in response.failures]


@pytest.fixture(scope="module")
def provider() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI() as provider:
        yield provider


@pytest.fixture(scope="module", params=["with names", "without names"])
def unused(
    request: pytest.FixtureRequest, provider: ScriptedOpenAI, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Tenant]]:
    """Tenants that have not called yet, with keys or without, of a server that uses the model."""
    names = [uuid.uuid4().hex for _ in range(20)]
    flags = [*provider.flags, "--llm-timeout", "1", "--llm-retries", "0"]
    flags += ["--llm-tokens-per-minute-max", str(TOKENS_PER_MINUTE)]
    folder, tokens = None, {}
    if request.param == "with names":
        folder = tmp_path_factory.mktemp("data")
        tokens = {name: keys_in(folder).token(name, [name], ["read", "write"]) for name in names}
    flags += ["--auth", "keys"] if folder else ["--store", "memory"]
    with ServerProcess(folder, flags=flags, env=provider.environment()) as process:
        yield [Tenant(connect(process.address, tokens.get(name, "")), name) for name in names]


@pytest.fixture
def tenants(unused: list[Tenant], provider: ScriptedOpenAI) -> tuple[Tenant, Tenant]:
    """Two tenants that have not called before; no question was sent yet."""
    provider.requests.clear()
    return unused.pop(), unused.pop()


def answers_by_text(bad: str, answer: Answer) -> Any:
    """Return a model that gives this answer if the text is in the question, and otherwise a good one."""

    def respond(request: ChatRequest) -> Answer:
        return answer if bad in request.user else NONE

    return respond


def test_a_guess_of_anothers_text_is_not_answered_from_the_cache(
    tenants: tuple[Tenant, Tenant], provider: ScriptedOpenAI
) -> None:
    provider.answer(NONE)
    one, other = tenants
    for tenant in (one, other):
        usage = tenant.ask("My secret word is xylophone").llm_usage
        assert (usage.call_count, usage.cached_count) == (1, 0)
    assert len(provider.requests) == 2
    assert one.ask("My secret word is xylophone").llm_usage.cached_count == 1


def test_a_question_is_not_answered_by_anothers_that_is_under_way(
    tenants: tuple[Tenant, Tenant], provider: ScriptedOpenAI
) -> None:
    both_are_here, arrived = threading.Event(), []

    def respond(request: ChatRequest) -> Answer:
        arrived.append(request)
        if len(arrived) == 2:
            both_are_here.set()
        both_are_here.wait(5)
        return NONE

    provider.answer(respond)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda tenant: tenant.ask("We share this text"), tenants))
    assert [answer.llm_usage.call_count for answer in answers] == [1, 1]
    assert len(arrived) == 2


@pytest.mark.parametrize(
    "bad, reason",
    [(Reply("no JSON"), INVALID), (Reply.slow(), TIMEOUT), (Reply.broken(500), UNAVAILABLE)],
    ids=["unreadable", "slow", "error"],
)
def test_what_fails_for_one_is_paused_for_that_one_alone(
    tenants: tuple[Tenant, Tenant], provider: ScriptedOpenAI, bad: Reply, reason: int
) -> None:
    one, other = tenants
    provider.answer(answers_by_text("poison", bad))
    for at in range(5):
        assert failures(one.ask(f"I like poison number {at}")) == [reason]
    assert failures(one.ask("I like green tea")) == [PAUSED]
    answer = other.ask("I like green tea")
    assert (answer.decided_by, failures(answer)) == (BY_LLM, [])


def test_the_tokens_of_one_are_spent_by_nobody_else(
    tenants: tuple[Tenant, Tenant], provider: ScriptedOpenAI
) -> None:
    one, other = tenants
    spent = {"prompt_tokens": TOKENS_PER_MINUTE, "completion_tokens": 0}
    provider.answer(Reply(json.dumps(NONE), usage=spent))
    assert one.ask("I like black tea").decided_by == BY_LLM
    assert failures(one.ask("I like white tea")) == [OVER_BUDGET]
    answer = other.ask("I like green tea")
    assert (answer.decided_by, failures(answer)) == (BY_LLM, [])


def test_a_question_that_is_refused_changes_nothing_of_how_others_ask(
    tenants: tuple[Tenant, Tenant], provider: ScriptedOpenAI
) -> None:
    def respond(request: ChatRequest) -> Answer:
        return Reply.broken(400) if "poison" in request.user and request.schema_name else NONE

    one, other = tenants
    provider.answer(respond)
    assert one.ask("I like poison").llm_usage.call_count == 2
    other.ask("I like green tea")
    assert provider.requests[-1].schema_name == "ExtractedFacts"


# Many callers


class Verdict(msgspec.Struct):
    """What to do with a text."""

    keep: bool


class Clock:
    """Seconds that pass when the test says so."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def llm(
    provider: ScriptedOpenAI, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[OpenAILlm]:
    """A model on which all callers together may spend 10,000 tokens a minute."""
    for name, value in provider.environment().items():
        monkeypatch.setenv(name, value)
    provider.requests.clear()
    llm = OpenAILlm(LlmSettings(retries=0, total_tokens_per_minute_max=10_000), clock)
    yield llm
    await llm.close()


async def ask(llm: OpenAILlm, caller: str, text: str) -> Verdict:
    owner = Owner(caller, b"notes")
    answer, _ = await llm.ask("Is it worth keeping?", {"text": text}, Verdict, owner=owner)
    return answer


async def reason(llm: OpenAILlm, caller: str, text: str) -> FailureReason:
    with pytest.raises(LlmFailed) as raised:
        await ask(llm, caller, text)
    return raised.value.failure.reason


async def test_a_caller_with_many_questions_pushes_out_nobody_elses_answers(
    provider: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch, llm: OpenAILlm, clock: Clock
) -> None:
    provider.answer(Reply('{"keep": true}', usage={"prompt_tokens": 1, "completion_tokens": 1}))
    await ask(llm, "ada", "green tea")
    for at in range(300):
        await ask(llm, "bob", f"tea {at}")
    asked = len(provider.requests)
    await ask(llm, "ada", "green tea")
    await ask(llm, "bob", "tea 299")
    assert len(provider.requests) == asked
    await ask(llm, "bob", "tea 0")
    assert len(provider.requests) == asked + 1


async def test_a_caller_has_answers_for_each_of_its_namespaces(
    provider: ScriptedOpenAI, llm: OpenAILlm
) -> None:
    provider.answer({"keep": True})
    for namespace in (b"notes", b"mail", b"notes"):
        await llm.ask("Keep it?", {"text": "tea"}, Verdict, owner=Owner("ada", namespace))
    assert len(provider.requests) == 2


async def test_callers_together_spend_no_more_than_all_may(
    provider: ScriptedOpenAI, llm: OpenAILlm, clock: Clock
) -> None:
    provider.answer(Reply('{"keep": true}', usage={"prompt_tokens": 2000, "completion_tokens": 0}))
    for at in range(5):
        await ask(llm, f"caller {at}", "tea")
    assert await reason(llm, "one more", "tea") is FailureReason.LLM_BUDGET_EXCEEDED
    clock.now += 61
    await ask(llm, "one more", "tea")


async def test_a_server_that_cannot_be_reached_is_asked_for_nobody(clock: Clock, llm: OpenAILlm) -> None:
    with ScriptedOpenAI() as gone:
        address = gone.base_url
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", address)
        unreached = OpenAILlm(LlmSettings(retries=0), clock)
    for at in range(5):
        assert await reason(unreached, f"caller {at}", "tea") is FailureReason.LLM_UNAVAILABLE
    assert await reason(unreached, "another", "tea") is FailureReason.LLM_PAUSED
    clock.now += 31
    assert await reason(unreached, "another", "tea") is FailureReason.LLM_UNAVAILABLE
    await unreached.close()


async def test_questions_of_a_caller_at_once_are_counted_together(
    provider: ScriptedOpenAI, clock: Clock, llm: OpenAILlm
) -> None:
    limited = OpenAILlm(LlmSettings(retries=0, tokens_per_minute_max=4000), clock)
    provider.answer(Reply('{"keep": true}', usage=None))
    ends = await asyncio.gather(*(ask(limited, "ada", f"tea {n}") for n in range(20)), return_exceptions=True)
    await limited.close()
    refused = [end for end in ends if isinstance(end, LlmFailed)]
    assert 1 <= len(provider.requests) == 20 - len(refused) <= 3


def test_so_many_callers_are_kept_and_the_last_ones_stay() -> None:
    standings = Standings(1000, Clock())
    kept = {}
    for at in range(10_000):
        kept[at] = standings.find(f"caller {at}")
        standings.keep(f"caller {at}", kept[at])
    assert sum(standings.find(f"caller {at}") is kept[at] for at in kept) == 4096
    assert standings.find("caller 9999") is kept[9999]
    assert standings.find("caller 0") is not kept[0]
