"""UserMemoryService: facts are saved once, even by concurrent calls, in the third person, and rated."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from grpc_api import Api, Connect, Refusal, eventually, refusal
from memory_service.v1 import memory_pb2, overseer_pb2
from memory_service.v1 import user_memory_pb2 as pb
from server_process import ServerProcess
from user_memories import (
    CONTEXT,
    CONTRADICTION,
    DUPLICATE,
    IDENTITY,
    PREFERENCE,
    PROJECT,
    REASONING,
    RELATIONSHIP,
    SAVED,
    SUPERSEDED,
    User,
    adjustments,
)


@pytest.fixture
def user(api: Api, namespace: str) -> User:
    return User(api, namespace)


def refused(user: User, method: str, request: Any) -> Refusal:
    found = refusal(getattr(user.service, method), request)
    # RESOURCE_EXHAUSTED for values that are too large, otherwise INVALID_ARGUMENT.
    assert found.code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)
    return found


# The checklist


@pytest.mark.parametrize(
    ("said", "category", "content", "score"),
    [
        ("Remember that I prefer dark mode", PREFERENCE, "User prefers dark mode", 11),
        ("My name is John", IDENTITY, "User's name is John", 11),
        ("I work with Sarah on the backend", RELATIONSHIP, "User works with Sarah on the backend", 9),
        ("Save this: I'm building a SaaS product", PROJECT, "User is building a SaaS product", 9),
    ],
)
def test_what_a_user_says_is_saved_in_the_third_person(
    user: User, said: str, category: int, content: str, score: float
) -> None:
    response = user.save(said, category)
    assert (response.outcome, response.message) == (SAVED, "Saved to memory")
    memory = response.memory
    assert (memory.content, memory.original_content, memory.category) == (content, said, category)
    assert (memory.reasoning, memory.version, memory.status) == (REASONING, 1, pb.MEMORY_STATUS_ACTIVE)
    assert memory.importance.score == score
    assert memory.source.origin == pb.MEMORY_ORIGIN_SAVED
    assert response.rephrased_by == overseer_pb2.DECIDED_BY_RULES
    assert user.memories() == [memory]


def test_the_same_fact_twice_is_saved_once_and_the_answer_names_it(user: User) -> None:
    first = user.save("User prefers TypeScript").memory
    again = user.save("User prefers TypeScript")
    assert again.outcome == DUPLICATE
    assert again.message == "Similar memory already exists: User prefers TypeScript"
    assert again.existing == first
    assert not again.HasField("memory")
    assert again.similarity == pytest.approx(1, abs=0.001)
    assert 0.5 < again.duplicate_threshold < 1
    assert user.memories() == [first]


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("I am a software engineer", "User is a software engineer"),
        ("My wife is Jane", "User's wife is named Jane"),
        ("I prefer TypeScript", "User prefers TypeScript"),
        ("I'm based in London", "User is based in London"),
    ],
)
def test_the_table_of_rephrasings(user: User, said: str, content: str) -> None:
    assert user.save(said, IDENTITY).memory.content == content


def test_wording_is_kept_on_request(user: User) -> None:
    response = user.save("I prefer TypeScript", keep_wording=True)
    assert response.memory.content == "I prefer TypeScript"
    assert response.rephrased_by == overseer_pb2.DECIDED_BY_UNSPECIFIED


@pytest.mark.parametrize(("length", "fits"), [(9, False), (10, True), (500, True), (501, False)])
def test_content_has_10_to_500_characters(user: User, length: int, fits: bool) -> None:
    content = "User likes é".ljust(length, "x")[:length] if length > 12 else "é" * length
    if fits:
        assert user.save(content).memory.content == content
        return
    request = pb.SaveMemoryRequest(
        namespace=user.namespace, content=content, category=PREFERENCE, reasoning=REASONING
    )
    found = refused(user, "SaveMemory", request)
    assert found.fields == ("content",)
    assert "10 to 500 characters" in found.message
    assert user.memories() == []


def test_important_memories_appear_in_the_system_prompt_and_the_others_by_search(user: User) -> None:
    user.save("My name is John", IDENTITY)
    user.save("Remember that I prefer dark mode")
    user.save("I work with Sarah on the backend", RELATIONSHIP)
    user.save("Save this: I'm building a SaaS product", PROJECT)
    text = user.preloaded().text
    for content in ("User's name is John", "User prefers dark mode", "User works with Sarah on the backend"):
        assert content in text
    assert "SaaS" not in text
    assert user.found("What product is the user building?")[0] == "User is building a SaaS product"


# The scenarios


def test_scenario_a_clear_preference(user: User) -> None:
    response = user.save(
        "User prefers using TypeScript for all projects",
        reasoning="Core tech stack preference that affects future recommendations",
    )
    assert (response.outcome, response.message) == (SAVED, "Saved to memory")
    assert response.memory.content == "User prefers using TypeScript for all projects"
    assert response.rephrased_by == overseer_pb2.DECIDED_BY_UNSPECIFIED


def test_scenario_a_project_detail(user: User) -> None:
    content = "User is building a chat application named blah.chat using Next.js 15"
    response = user.save(
        content, PROJECT, reasoning="Active project with specific tech stack details for context"
    )
    assert (response.outcome, response.memory.content) == (SAVED, content)
    assert adjustments(response.memory) == [("specific_details", 1)]


def test_scenario_a_duplicate_attempt(user: User) -> None:
    user.save("User likes TypeScript")
    response = user.save("Remember that I like TypeScript", reasoning="Programming language preference")
    assert response.outcome == DUPLICATE
    assert response.message == "Similar memory already exists: User likes TypeScript"


def test_scenario_what_is_too_vague_is_not_taken_for_a_fact(user: User) -> None:
    assert not [r for r in user.extract("I might try Python someday").results if r.outcome == SAVED]
    assert user.memories() == []


# Twenty concurrent calls


def test_of_twenty_calls_with_the_same_fact_one_saves_it(any_server: ServerProcess, namespace: str) -> None:
    apis = [Api.connect(any_server.address) for _ in range(4)]
    wordings = ["I love green tea a lot", "User loves green tea a lot"]

    def save(user: User, at: int) -> pb.SaveMemoryResponse:
        return user.save(wordings[at % 2])

    with ThreadPoolExecutor(20) as threads:
        for turn in range(50):
            users = [User(api, f"{namespace}/{turn}") for api in apis]
            answers = list(threads.map(lambda at, users=users: save(users[at % 4], at), range(20)))
            saved = [answer.memory for answer in answers if answer.outcome == SAVED]
            assert len(saved) == 1
            others = [answer for answer in answers if answer.outcome == DUPLICATE]
            assert [answer.existing for answer in others] == saved * 19
            assert users[0].memories() == saved
    for api in apis:
        api.channel.close()


def test_of_twenty_contradicting_calls_one_holds_in_the_end(user: User) -> None:
    cities = [f"User lives in {city}" for city in ("Oslo", "Rome", "Lima", "Cairo", "Delhi", "Quito")]
    with ThreadPoolExecutor(len(cities)) as threads:
        list(threads.map(lambda content: user.save(content, IDENTITY), cities))
    assert len(user.contents()) == 1
    history = user.memories(include_history=True)
    assert sorted(memory.content for memory in history) == sorted(cities)
    ends = [memory.valid_until_time.ToNanoseconds() for memory in history]
    assert sorted(ends)[0] == 0 and len(set(ends)) == len(cities)


# Facts that are not duplicates


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("User likes coffee in the morning", "User does not like coffee in the morning"),
        ("User likes coffee in the morning", "User doesn't like coffee in the morning"),
        ("User has 2 children", "User has 3 children"),
        ("User has two children", "User has three children"),
        ("User works with Sarah on the backend", "User works with Susan on the backend"),
        ("User's birthday is on May 4", "User's birthday is on May 14"),
        ("User's daughter Ada was born in 2015", "User's daughter Ada was born in 2016"),
        ("User lives in London", "User lives in Londonderry"),
        ("User prefers tabs over spaces", "User prefers spaces over tabs"),
        ("User's wife is named Jane", "User's husband is named Jane"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_negation_another_number_name_or_date_is_no_duplicate(
    user: User, known: str, new: str, turned: bool
) -> None:
    first, second = (new, known) if turned else (known, new)
    user.save(first)
    response = user.save(second)
    assert response.outcome in (SAVED, SUPERSEDED)
    assert second in user.contents()
    assert first in user.contents(include_history=True)


# Importance


@pytest.mark.parametrize(
    ("content", "category", "fields", "base", "expected"),
    [
        ("User is a software engineer", IDENTITY, {}, 10, []),
        ("User prefers dark mode", PREFERENCE, {}, 9, []),
        ("User has an older brother", RELATIONSHIP, {}, 8, []),
        ("User is writing a novel", PROJECT, {}, 7, []),
        ("User asked about loans", CONTEXT, {}, 5, []),
        ("User prefers dark mode", PREFERENCE, {"explicit_request": True}, 9, [("explicit_request", 2)]),
        (
            "User prefers dark mode",
            PREFERENCE,
            {"source": pb.MemorySource(quote="Don't forget that I prefer dark mode")},
            9,
            [("explicit_request", 2)],
        ),
        (
            "Remember that I prefer dark mode",
            PREFERENCE,
            {"source": pb.MemorySource(quote="dark mode, always")},
            9,
            [("explicit_request", 2)],
        ),
        ("User works with Sarah", RELATIONSHIP, {}, 8, [("specific_details", 1)]),
        ("User's long-term goal is to own a farm", PROJECT, {}, 7, [("long_term_goal", 1)]),
        ("User might like jazz", PREFERENCE, {}, 9, [("vague", -2)]),
        ("User is tired today", CONTEXT, {}, 5, [("temporary", -2)]),
        (
            "User might visit Berlin tomorrow",
            CONTEXT,
            {"explicit_request": True},
            5,
            [("explicit_request", 2), ("specific_details", 1), ("vague", -2), ("temporary", -2)],
        ),
    ],
)
def test_importance_is_the_base_of_the_category_with_named_adjustments(
    user: User,
    content: str,
    category: int,
    fields: dict[str, Any],
    base: float,
    expected: list[tuple[str, float]],
) -> None:
    memory = user.save(content, category, **fields).memory
    assert adjustments(memory) == expected
    score = base + sum(amount for _, amount in expected)
    importance = memory.importance
    assert (importance.base, importance.score, importance.current_score) == (base, score, score)
    assert importance.decay_factor == 1
    assert all(a.reason for a in [*importance.boosts, *importance.reductions])


def test_importance_decays_where_the_server_is_told_so(connect: Connect, namespace: str) -> None:
    with ServerProcess(flags=["--store", "memory", "--memory-half-life", "0.000001"]) as server:
        user = User(connect(server), namespace)
        user.save("User prefers dark mode")
        eventually(lambda: user.memories()[0].importance.decay_factor < 0.5, "half of it is gone")
        importance = user.memories()[0].importance
        assert importance.score == 9
        assert importance.current_score == pytest.approx(9 * importance.decay_factor)
        assert user.contents(min_importance=5) == user.found("dark mode", min_importance=5) == []
        assert user.contents() == ["User prefers dark mode"]


# Together with the other services


def test_memories_are_not_among_the_items_unless_asked_for(user: User) -> None:
    user.save("User prefers dark mode")
    user.api.add_texts(user.namespace, "an item about dark mode")
    assert user.api.found(user.namespace) == ["an item about dark mode"]
    assert user.api.found(user.namespace, query_text="dark mode") == ["an item about dark mode"]
    asked = user.api.found(user.namespace, query_text="dark mode", kinds=[memory_pb2.ITEM_KIND_USER_MEMORY])
    assert asked == ["User prefers dark mode"]
    assert user.contents() == ["User prefers dark mode"]


def test_without_an_embedder_words_are_compared(connect: Connect, namespace: str) -> None:
    with ServerProcess(flags=["--store", "memory", "--embedder", "none"]) as server:
        user = User(connect(server), namespace)
        first = user.save("I prefer dark mode")
        assert [d.reason for d in first.degraded] == [memory_pb2.DEGRADATION_REASON_NO_EMBEDDER]
        again = user.save("User prefers dark mode.")
        assert (again.outcome, again.existing.id) == (DUPLICATE, first.memory.id)
        assert again.duplicate_threshold == 0
        assert not again.HasField("similarity")
        assert user.save("User does not prefer dark mode").outcome != DUPLICATE
        user.save("I live in London", IDENTITY)
        assert user.save("I live in Paris", IDENTITY).outcome == SUPERSEDED
        assert user.found("Paris") == ["User lives in Paris"]


def test_a_contradiction_can_be_refused_or_kept(user: User) -> None:
    known = user.save("I live in London", IDENTITY).memory
    refused_ = user.save("I live in Paris", IDENTITY, on_contradiction=pb.ON_CONTRADICTION_REFUSE)
    assert refused_.outcome == CONTRADICTION
    assert refused_.existing == known
    assert not refused_.HasField("memory")
    assert refused_.message == "This contradicts a known memory: User lives in London"
    assert user.memories() == [known]
    both = user.save("I live in Paris", IDENTITY, on_contradiction=pb.ON_CONTRADICTION_KEEP_BOTH)
    assert (both.outcome, both.existing) == (SAVED, known)
    assert user.contents() == ["User lives in London", "User lives in Paris"]
