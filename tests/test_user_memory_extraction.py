"""ExtractMemories: rules find facts in messages and in sessions, but not in recalled memories."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from grpc_api import Api, refusal
from memory_service.v1 import memory_pb2
from memory_service.v1 import user_memory_pb2 as pb
from memory_service.v1.overseer_pb2 import DECIDED_BY_LLM, DECIDED_BY_RULES
from user_memories import (
    CONTEXT,
    CONTRADICTION,
    DUPLICATE,
    IDENTITY,
    PREFERENCE,
    RECALLED,
    SAVED,
    SUPERSEDED,
    User,
    adjustments,
    at,
    message,
    outcomes,
)

ASSISTANT, SYSTEM, TOOL = memory_pb2.ROLE_ASSISTANT, memory_pb2.ROLE_SYSTEM, memory_pb2.ROLE_TOOL
TOM = "User's brother Tom plays chess"
PEANUTS = "User is allergic to peanuts"


@pytest.fixture
def user(api: Api, namespace: str) -> User:
    return User(api, namespace)


def talk(user: User, session_id: str, *texts: str, role: int = memory_pb2.ROLE_USER, **fields: Any) -> None:
    """Messages as stored in a session."""
    for text in texts:
        user.api.add(user.namespace, session_id=session_id, chat_message=message(text, role), **fields)


def from_session(user: User, **fields: Any) -> pb.ExtractMemoriesResponse:
    return user.extract(**{"session_id": "s", **fields})


# Messages


def test_facts_are_found_where_the_user_tells_of_themselves(user: User) -> None:
    response = user.extract(
        message("My name is Robot. I live in a datacenter.", ASSISTANT),
        message("My brother Tom plays chess. I am allergic to peanuts! Can you help me?", message_id="m1"),
        message("I am a very useful tool from Berlin", TOOL),
        message("I am a friendly assistant", SYSTEM),
        session_id="s",
        actor="agent",
        labels={"a": "b"},
    )
    assert outcomes(response) == [(TOM, SAVED), (PEANUTS, SAVED)]
    assert (response.decided_by, response.examined_count) == (DECIDED_BY_RULES, 4)
    assert response.reason
    memories = user.memories()
    assert [result.memory for result in response.results] == memories
    source = memories[0].source
    assert (source.origin, source.session_id, source.actor) == (pb.MEMORY_ORIGIN_EXTRACTED, "s", "agent")
    assert (list(source.item_ids), source.quote) == (["m1"], "My brother Tom plays chess.")
    assert dict(memories[0].labels) == {"a": "b"}
    assert 10 <= len(memories[0].reasoning) <= 200
    # The messages are not stored.
    assert user.api.items(user.namespace) == []


def test_questions_guesses_and_moods_are_not_facts(user: User) -> None:
    response = user.extract(
        "Can you write a poem about the sea?",
        "I might try Python someday",
        "What if I lived in Rome?",
        "I'm tired right now",
        "The capital of France is Paris",
    )
    assert response.results == []
    assert (response.examined_count, response.revision) == (5, 0)


def test_what_the_user_asks_to_remember_is_more_important(user: User) -> None:
    [result] = user.extract("I own a cabin near the lake. Please remember that.").results
    assert ("explicit_request", 2) in adjustments(result.memory)


def test_a_known_fact_is_not_saved_again_and_the_answer_tells_what_it_would_be(user: User) -> None:
    known = user.save(PEANUTS, PREFERENCE).memory
    [result] = user.extract("By the way, I am allergic to peanuts.").results
    assert (result.outcome, result.existing) == (DUPLICATE, known)
    assert (result.memory.content, result.memory.id, result.memory.version) == (PEANUTS, "", 0)
    assert result.similarity == pytest.approx(1, abs=0.01)
    assert result.reason
    assert user.memories() == [known]


def test_the_same_fact_in_two_messages_is_saved_once(user: User) -> None:
    response = user.extract("I am allergic to peanuts.", "I am allergic to peanuts!")
    assert [outcome for _, outcome in outcomes(response)] == [SAVED, DUPLICATE]
    assert user.contents() == [PEANUTS]


def test_of_facts_that_contradict_each_other_the_last_one_holds(user: User) -> None:
    known = user.save("I live in Oslo", IDENTITY).memory
    response = user.extract("I live in Rome.", "I live in Lima.", "I live in Cairo.")
    assert [outcome for _, outcome in outcomes(response)] == [SUPERSEDED] * 3
    assert user.contents() == ["User lives in Cairo"]
    history = user.memories(include_history=True)
    assert [m.content.split()[-1] for m in history] == ["Oslo", "Rome", "Lima", "Cairo"]
    assert [m.superseded_by for m in history] == [*(m.id for m in history[1:]), ""]
    assert [list(m.supersedes) for m in history] == [[], *([m.id] for m in history[:-1])]
    assert [m.version for m in history] == [2, 1, 1, 1]
    assert [result.memory for result in response.results] == history[1:]
    assert response.results[0].superseded == [history[0]]
    assert history[0].id == known.id


def test_contradictions_are_handled_as_asked(user: User) -> None:
    known = user.save("I live in Oslo", IDENTITY).memory
    refused = user.extract("I live in Rome.", on_contradiction=pb.ON_CONTRADICTION_REFUSE)
    assert [(r.outcome, r.existing) for r in refused.results] == [(CONTRADICTION, known)]
    assert user.memories() == [known]
    user.extract("I live in Rome.", on_contradiction=pb.ON_CONTRADICTION_KEEP_BOTH)
    assert user.contents() == ["User lives in Oslo", "User lives in Rome"]


def test_only_the_wanted_categories_are_saved(user: User) -> None:
    said = "My brother Tom plays chess. I am allergic to peanuts."
    response = user.extract(said, categories=[PREFERENCE])
    assert outcomes(response) == [(PEANUTS, SAVED)]
    assert user.extract(said, categories=[CONTEXT]).results == []


# Recalled memories


def test_a_recalled_block_is_passed_over_wherever_it_stands(user: User) -> None:
    user.save("I live in Oslo", IDENTITY)
    block = user.preloaded().text
    before = user.memories()
    other = block.replace("User lives in Oslo", "I live in Rome. My brother Tom plays chess.")
    response = user.extract(
        message(block, SYSTEM),
        f"{other}\nI am allergic to peanuts.",
        f"Now: {other[: other.rindex('<')]}",
    )
    assert outcomes(response) == [(PEANUTS, SAVED)]
    assert user.memories()[:1] == before


def test_what_repeats_a_recalled_memory_is_recalled_and_not_new(user: User) -> None:
    known = user.save(PEANUTS, PREFERENCE).memory
    response = user.extract(
        "Yes, I am allergic to peanuts. My brother Tom plays chess.",
        recalled_memory_ids=[known.id, "unknown"],
    )
    assert [(r.outcome, r.existing.id) for r in response.results] == [(RECALLED, known.id), (SAVED, "")]
    assert user.contents() == [PEANUTS, TOM]


# Dry runs and retries


def test_a_dry_run_tells_what_would_be_saved_and_writes_nothing(user: User) -> None:
    known = user.save("I live in Oslo", IDENTITY).memory
    response = user.extract(
        "I live in Rome.", "I live in Lima.", "I am allergic to peanuts.", dry_run=True, request_id="r"
    )
    assert [outcome for _, outcome in outcomes(response)] == [SUPERSEDED, SUPERSEDED, SAVED]
    assert {(r.memory.id, r.memory.version, r.memory.superseded_by) for r in response.results} == {
        ("", 0, "")
    }
    assert list(response.results[0].superseded) == [known]
    assert response.revision == 1
    assert user.memories(include_history=True) == [known]
    done = user.extract("I live in Rome.", "I live in Lima.", "I am allergic to peanuts.")
    assert outcomes(done) == outcomes(response)


@pytest.mark.parametrize("limited", [True, False])
def test_a_repeated_extraction_of_a_session_tells_the_same_place_to_go_on(user: User, limited: bool) -> None:
    talk(user, "s", "I am allergic to peanuts.", "My brother Tom plays chess.")
    bounds: dict[str, Any] = {"limit": 1} if limited else {}
    first = from_session(user, request_id="r", **bounds)
    talk(user, "s", "I live in Rome.")
    again = from_session(user, request_id="r", **bounds)
    assert list(again.results[0].memory.source.item_ids) == list(first.results[0].memory.source.item_ids)
    for field in ("examined_count", "examined_revision", "more", "revision"):
        assert getattr(again, field) == getattr(first, field), field
    assert user.contents() == ([PEANUTS] if limited else [PEANUTS, TOM])


# Sessions


def test_a_session_is_looked_through_bit_by_bit(user: User) -> None:
    talk(user, "s", "I am allergic to peanuts.", "Thanks!")
    talk(user, "s", "You live in Rome.", "I live in Oslo.", role=ASSISTANT)
    talk(user, "another", "My name is Bob.")
    talk(user, "s", "My brother Tom plays chess.")
    user.api.add(user.namespace, session_id="s", text="I live in Cairo")
    first = from_session(user, limit=4)
    assert outcomes(first) == [(PEANUTS, SAVED)]
    assert (first.examined_count, first.more) == (4, True)
    second = from_session(user, after_revision=first.examined_revision)
    assert outcomes(second) == [(TOM, SAVED)]
    assert (second.examined_count, second.more) == (2, False)
    third = from_session(user, after_revision=second.examined_revision)
    assert (third.results, third.examined_count, third.more) == ([], 0, False)
    assert third.examined_revision == second.examined_revision
    memory = user.memories()[1]
    said = next(item for item in user.api.items(user.namespace) if item.id == memory.source.item_ids[0])
    assert said.chat_message.parts[0].text == "My brother Tom plays chess."
    assert memory.source.session_id == "s"


def test_what_was_said_earlier_does_not_end_what_was_saved_later(user: User) -> None:
    talk(user, "s", "I live in Oslo.", create_time=at(1_000))
    rome = user.save("I live in Rome", IDENTITY, valid_from_time=at(2_000)).memory
    [result] = from_session(user).results
    assert (result.memory.valid_from_time, result.memory.valid_until_time) == (at(1_000), at(2_000))
    assert user.memories() == [rome]
    assert user.contents(as_of_time=at(1_500)) == ["User lives in Oslo"]


def test_memories_of_a_session_are_not_taken_for_what_was_said(user: User) -> None:
    user.save("I live in Oslo", IDENTITY, source=pb.MemorySource(session_id="s"))
    response = from_session(user)
    assert (response.examined_count, response.results) == (0, [])


# Refusals


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("messages", {}),
        ("messages", {"messages": [message("x")] * 201}),
        ("messages", {"messages": [message("x" * 60_000)] * 5}),
        ("limit", {"session_id": "s", "limit": 0}),
        ("limit", {"session_id": "s", "limit": 1001}),
        ("after_revision", {"session_id": "s", "after_revision": -1}),
        ("recalled_memory_ids", {"session_id": "s", "recalled_memory_ids": ["x"] * 1001}),
        ("categories", {"session_id": "s", "categories": [99]}),
        ("actor", {"session_id": "s", "actor": "x" * 257}),
        ("session_id", {"session_id": "x" * 257}),
        ("labels", {"session_id": "s", "labels": {"": "x"}}),
        ("limit", {"messages": [message("x")], "limit": 3}),
        ("after_revision", {"messages": [message("x")], "after_revision": 3}),
    ],
)
def test_a_bad_field_is_named(user: User, field: str, fields: dict[str, Any]) -> None:
    found = refusal(
        user.service.ExtractMemories, pb.ExtractMemoriesRequest(namespace=user.namespace, **fields)
    )
    assert found.code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert found.names(field), found.fields


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("SaveMemory", {"content": "I like tea a lot", "category": PREFERENCE, "reasoning": "It is lasting"}),
        ("ExtractMemories", {"messages": [message("I like tea")]}),
        ("ConsolidateMemories", {}),
        ("UpdateMemory", {"memory": pb.UserMemory(id="x", content="I like tea a lot")}),
    ],
)
def test_who_insists_on_a_model_that_is_not_there_is_told_so(
    user: User, method: str, fields: dict[str, Any]
) -> None:
    kind = getattr(pb, f"{method}Request")
    request = kind(namespace=user.namespace, decide_by=DECIDED_BY_LLM, **fields)
    found = refusal(getattr(user.service, method), request)
    assert (found.code, found.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "LLM_REQUIRED")
    assert user.memories() == []
