"""The contract of deciders: valid answers of rules, of a model, and of a careless model."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import pytest

from memory_service.data_model import Role, StateEntry
from memory_service.deciders.base import (
    EXPLICIT_REQUEST,
    Action,
    Candidate,
    Category,
    Decider,
    Deciding,
    KeySearch,
    Known,
    Line,
    Relation,
    ToolOutput,
    Undecided,
)
from memory_service.deciders.choice import Deciders
from memory_service.deciders.llm.decider import LlmDecider
from memory_service.deciders.rules.decider import RulesDecider
from memory_service.deciders.rules.relevance import Words
from memory_service.decisions import DecidedBy, FailureReason
from memory_service.errors import FailedPrecondition, Unavailable
from memory_service.llms.openai import LlmSettings, OpenAILlm
from memory_service.runtime.caller import Owner
from scripted_openai import Reply, ScriptedOpenAI

A = TypeVar("A")
Answer = Mapping[str, Any]
LLM, RULES = DecidedBy.LLM, DecidedBy.RULES


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedOpenAI]:
    """A server that this process's `openai` package calls."""
    with ScriptedOpenAI() as provider:
        for name, value in provider.environment().items():
            monkeypatch.setenv(name, value)
        yield provider


@pytest.fixture
async def llm(provider: ScriptedOpenAI) -> AsyncIterator[OpenAILlm]:
    """A model on that server."""
    llm = OpenAILlm(LlmSettings(retries=0))
    yield llm
    await llm.close()


@dataclass
class Asked:
    """A decider, and the model behind it, if there is one."""

    name: str
    provider: ScriptedOpenAI
    llm: OpenAILlm

    async def ask(
        self, question: Callable[[Decider], Awaitable[A]], good: Answer, careless: Answer
    ) -> tuple[A, DecidedBy]:
        """Ask; a model gives the good or the careless answer."""
        self.provider.answer(good if self.name == "model" else careless)
        deciding = Deciders(None if self.name == "rules" else self.llm).begin(DecidedBy.UNSPECIFIED, "ns")
        return await deciding.ask(question)


@pytest.fixture(params=["rules", "model", "careless model"])
def asked(request: pytest.FixtureRequest, provider: ScriptedOpenAI, llm: OpenAILlm) -> Asked:
    """Each decider."""
    return Asked(request.param, provider, llm)


def decided(asked: Asked, by: DecidedBy) -> bool:
    """Return whether a good answer of a model counted; otherwise the test would only test rules."""
    return by is LLM if asked.name == "model" else True


# Requirements of every answer


@pytest.mark.parametrize(
    "careless", ["User likes 2 cats of Anna", "User does not like 3 cats of Anna", "I do"]
)
async def test_a_wording_says_what_was_said(asked: Asked, careless: str) -> None:
    good = {"content": "User does not like 2 cats of Anna"}
    worded, by = await asked.ask(
        lambda d: d.word("I do not like 2 cats of Anna"), good, {"content": careless}
    )
    assert decided(asked, by)
    assert worded == "User does not like 2 cats of Anna"


async def test_what_is_worded_in_the_third_person_comes_back_as_it_is(asked: Asked) -> None:
    other = {"content": "User is fond of tea, of course"}
    assert await asked.ask(lambda d: d.word("User likes tea"), other, other) == ("User likes tea", RULES)


@pytest.mark.parametrize(
    ("content", "said", "explicit"),
    [
        ("User said: remember that it is Tuesday", "", False),
        ("User likes tea", "Don't forget that I like tea", False),
        ("User likes tea", "", True),
    ],
)
async def test_a_request_to_remember_counts_wherever_it_is(
    asked: Asked, content: str, said: str, explicit: bool
) -> None:
    rated, _ = await asked.ask(lambda d: d.rate(content, Category.PREFERENCE, said, explicit), {}, {})
    assert EXPLICIT_REQUEST in [boost.name for boost in rated.boosts]
    plain, _ = await asked.ask(lambda d: d.rate("User likes tea", Category.PREFERENCE, "", False), {}, {})
    assert EXPLICIT_REQUEST not in [boost.name for boost in plain.boosts]


def compared(relations: Mapping[str, str]) -> Answer:
    """Return a model's answer about facts by id."""
    return {"facts": [{"id": id, "relation": said, "reason": "r"} for id, said in relations.items()]}


async def test_what_differs_is_no_duplicate(asked: Asked) -> None:
    known = {
        "number": "User met 2 friends of Ada in May",
        "name": "User met 3 friends of Eve in May",
        "date": "User met 3 friends of Ada in June",
        "negation": "User never met 3 friends of Ada in May",
        "other": "User likes tea",
    }
    facts = [Known(id, content, 1.0) for id, content in known.items()]
    verdicts, by = await asked.ask(
        lambda d: d.compare("User met 3 friends of Ada in May", facts, 0.5),
        compared(dict.fromkeys(known, "different")),
        compared(dict.fromkeys(known, "duplicate") | {"other": "different"}),
    )
    assert decided(asked, by) and len(verdicts) == len(known)
    assert Relation.DUPLICATE not in [verdict.relation for verdict in verdicts]


async def test_verdicts_come_in_the_order_of_the_facts_and_the_same_words_are_a_duplicate(
    asked: Asked,
) -> None:
    facts = [Known("a", "User likes jam"), Known("b", "user likes TEA"), Known("c", "User does not like tea")]
    different = compared(dict.fromkeys("abc", "different"))
    verdicts, _ = await asked.ask(lambda d: d.compare("User likes tea", facts, 0.9), different, different)
    relations = [verdict.relation for verdict in verdicts]
    assert relations == [Relation.DIFFERENT, Relation.DUPLICATE, Relation.CONTRADICTION]


def found(content: str, message: int, quote: str) -> Answer:
    """Return a fact as a model finds it."""
    fact = {"content": content, "category": "identity", "message": message, "quote": quote}
    return fact | {"reasoning": "Tells who the user is"}


SAID = [
    Line(Role.USER, "I live in Rome with 2 cats"),
    Line(Role.ASSISTANT, "I live in Oslo"),
    Line(Role.USER, "What is the weather? I am a nurse."),
]


@pytest.mark.parametrize(
    "careless",
    [
        found("User lives in Oslo", 1, "I live in Oslo"),
        found("User lives in Bern with 2 cats", 0, "I live in Rome with 2 cats"),
        found("User lives in Rome with 7 cats", 0, "I live in Rome with 2 cats"),
        found("User does not live in Rome", 0, "I live in Rome"),
        found("User is a doctor", 2, "I am a doctor"),
        found("User is a nurse", 9, "I am a nurse"),
    ],
)
async def test_facts_are_what_the_user_said(asked: Asked, careless: Answer) -> None:
    good = {
        "facts": [
            found("User is a nurse", 2, "I am a nurse."),
            found("User lives in Rome with 2 cats", 0, "I live in Rome with 2 cats"),
        ]
    }
    facts, by = await asked.ask(lambda d: d.find(SAID, 0, (), 10), good, {"facts": [careless]})
    assert decided(asked, by)
    expected = [(0, "User lives in Rome with 2 cats"), (2, "User is a nurse")]
    assert [(fact.line, fact.content) for fact in facts] == (
        [] if asked.name == "careless model" else expected
    )
    assert all(fact.quote in SAID[fact.line].text for fact in facts)
    assert all(10 <= len(fact.reasoning) <= 200 for fact in facts)


async def test_lines_before_the_first_are_not_looked_through(asked: Asked) -> None:
    good = {"facts": [found("User is a nurse", 2, "I am a nurse.")]}
    careless = {"facts": [found("User lives in Rome with 2 cats", 0, "I live in Rome with 2 cats")]}
    facts, _ = await asked.ask(lambda d: d.find(SAID, 1, (), 10), good, careless)
    assert {fact.line for fact in facts} <= {2}


@pytest.mark.parametrize("careless", ["User lives in Rome", "User lives in Rome with 2 cats and Bob"])
async def test_a_merged_fact_has_the_names_and_numbers_of_all_and_no_others(
    asked: Asked, careless: str
) -> None:
    facts = [
        Known("a", "User lives with 2 cats in Rome", 0.99),
        Known("b", "User lives in Rome with 2 cats", 0.99),
    ]
    good = {"action": "merge", "content": "User lives in Rome, with 2 cats", "reason": "same"}
    settled, by = await asked.ask(lambda d: d.settle(facts, 0.5), good, good | {"content": careless})
    assert decided(asked, by) and settled.action is Action.MERGE
    assert all(word in settled.content for word in ("Rome", "2")) and "Bob" not in settled.content


async def test_facts_that_exclude_each_other_are_told_in_pairs(asked: Asked) -> None:
    facts = [Known("a", "User lives in Rome"), Known("b", "User lives in Oslo")]
    settled, by = await asked.ask(
        lambda d: d.settle(facts, 0.5), {"action": "supersede"}, {"action": "forget them"}
    )
    assert decided(asked, by) and settled.action is Action.SUPERSEDE
    assert settled.contrary == {frozenset("ab")}


def output(result: Any, key: str = "") -> ToolOutput:
    """Return a tool's result; keys must be lower case, descriptions short."""

    def problem(name: str, text: str) -> str:
        allowed = text.islower() and text.isprintable() if name == "key" else len(text) < 400
        return "" if allowed else f"{name} is not allowed"

    encoded = msgspec.json.encode(result)
    return ToolOutput("listFriends", result, encoded, "remember my friends", None, key, None, problem)


@pytest.mark.parametrize(
    "careless", [{"key": ""}, {"key": "A\n"}, {"description": "d" * 400}, {"description": ""}]
)
async def test_what_is_kept_has_a_key_and_a_description_that_are_allowed(
    asked: Asked, careless: Answer
) -> None:
    good = {"save": True, "key": "my_friends", "description": "Friends of the user", "reason": "useful"}
    kept, by = await asked.ask(lambda d: d.keep(output(["Ada"])), good, good | careless)
    assert decided(asked, by) and kept.keep
    assert output([]).problem("key", kept.key) == output([]).problem("description", kept.description) == ""
    assert kept.description


@pytest.mark.parametrize("goal", ["", "Remember my friends", "x" * 900, "Who is " + "very" * 90 + " kind?"])
async def test_keys_of_rules_are_short_and_in_snake_case(goal: str) -> None:
    asked = msgspec.structs.replace(output([{"name": "Ada"}]), tool_name="fetch" + "Friends" * 30, goal=goal)
    kept = await RulesDecider(Words()).keep(asked)
    assert kept.keep and re.fullmatch(r"[a-z0-9_]{1,64}", kept.key)
    assert 1 <= len(kept.description) <= 300


async def candidates(goal: str, keys: list[str]) -> tuple[KeySearch, list[Candidate]]:
    """Return a search over keys without descriptions, and its result."""
    search = await RulesDecider(Words()).search(goal)
    for at, key in enumerate(keys):
        search.add(StateEntry(key, b"null", 1, at, at, None, 4, "", at))
    return search, search.rank(await search.best(10))


async def test_keys_that_a_goal_needs_are_among_those_that_were_shown_and_each_once(asked: Asked) -> None:
    _, ranked = await candidates("Who gave kudos?", ["shopping", "kudosGivers", "weather"])
    good = {"relevant_keys": ["kudosGivers"], "reason": "named"}
    careless = {"relevant_keys": ["kudosGivers", " kudosGivers ", "secrets"], "reason": "named"}
    found, by = await asked.ask(lambda d: d.relevant("Who gave kudos?", ranked), good, careless)
    assert decided(asked, by)
    assert [candidate.key for candidate, _ in found.needed] == ["kudosGivers"]
    assert sorted(candidate.key for candidate, _ in found.others) == ["shopping", "weather"]


async def test_a_search_has_the_best_by_words_first_and_without_any_word_the_newest() -> None:
    search, ranked = await candidates("Who gave kudos?", ["old", "new", "kudosGivers"])
    assert [candidate.key for candidate in ranked] == ["kudosGivers", "new", "old"]
    assert [candidate.key for candidate in await search.best(2)] == ["kudosGivers", "new"]
    assert search.text(ranked[0]) == "kudos givers:  null"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Please SAVE this now", "save this"),
        ("Keep_It", "keep_it"),
        ("so KEEP_IT, please", "keep_it"),
        ("so keep_it, please", ""),
        ("resave thistle", ""),
    ],
)
async def test_a_command_is_recognised(asked: Asked, text: str, command: str) -> None:
    commands = ("save this", "keep_it")
    assert await asked.ask(lambda d: d.command(text, commands), {}, {}) == (command, RULES)


# Choice of the decider


async def test_rules_answer_every_question() -> None:
    questions = [name for name, _ in inspect.getmembers(Decider, inspect.iscoroutinefunction)]
    assert len(questions) == 9
    for name in questions:
        assert getattr(RulesDecider, name) is not getattr(Decider, name), name


async def test_a_model_that_fails_leaves_it_to_rules_and_is_asked_once_in_a_call(
    provider: ScriptedOpenAI, llm: OpenAILlm
) -> None:
    provider.answer(Reply.broken())
    deciding = Deciders(llm).begin(DecidedBy.UNSPECIFIED, "ns")
    for _ in range(2):
        assert await deciding.ask(lambda d: d.word("I like green tea")) == ("User likes green tea", RULES)
    assert [failure.reason for failure in deciding.failures] == [FailureReason.LLM_UNAVAILABLE]
    assert len(provider.requests) == deciding.usage.call_count == 1


async def test_a_model_that_is_insisted_on_fails_the_call(provider: ScriptedOpenAI, llm: OpenAILlm) -> None:
    provider.answer(Reply.broken())
    deciding = Deciders(llm).begin(LLM, "ns")
    with pytest.raises(Unavailable) as failed:
        await deciding.ask(lambda d: d.word("I like green tea"))
    assert failed.value.reason == "LLM_UNAVAILABLE"
    with pytest.raises(FailedPrecondition) as refused:
        Deciders(None).begin(LLM, "ns")
    assert refused.value.reason == "LLM_REQUIRED"


async def test_rules_that_are_insisted_on_ask_no_model(provider: ScriptedOpenAI, llm: OpenAILlm) -> None:
    deciding = Deciders(llm).begin(RULES, "ns")
    assert (await deciding.ask(lambda d: d.word("I like green tea")))[1] is RULES
    assert (deciding.model, provider.requests) == ("", [])


async def test_a_decider_that_cannot_answer_says_so(llm: OpenAILlm) -> None:
    model = LlmDecider(llm, Owner("", b""), RulesDecider(Words()), insist=True)
    for question in (
        model.command("save this", ("save this",)),
        model.search("goal"),
        model.word("User sings"),
    ):
        with pytest.raises(Undecided):
            await question
    # The model was not called, so nothing failed.
    assert (model.failures, model.usage.call_count) == ([], 0)
    with pytest.raises(Undecided):
        await Deciding(Decider()).ask(lambda d: d.word("I sing"))
