"""Interactions, documents and oversight through the Python client; each test runs with both clients."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from both_clients import connected
from memory_client import (
    AlreadyExists,
    Conflict,
    DecidedBy,
    HandleMessageOutcome,
    InteractionKind,
    InvalidArgument,
    KeyVerdict,
    NotFound,
    OriginalMessage,
    Unavailable,
    chat_message,
)
from scripted_openai import Reply, ScriptedOpenAI
from server_process import ServerProcess

START = datetime(2025, 3, 1, 12, 30, 15, 123456, UTC)
DAY = timedelta(days=1)
WHY = "It is worth remembering for long"


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest, server: ServerProcess, namespace: str) -> Iterator[Any]:
    yield from connected(server.address, namespace, request.param)


@pytest.fixture
def llm() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI() as provider:
        yield provider


@pytest.fixture
def llm_server(llm: ScriptedOpenAI) -> Iterator[ServerProcess]:
    """A server for one test: after some failures it pauses the model for a while."""
    flags = ["--store", "memory", "--embedder", "none", *llm.flags]
    with ServerProcess(flags=flags, env=llm.environment()) as process:
        yield process


@pytest.fixture(params=["sync", "async"])
def llm_client(request: pytest.FixtureRequest, llm_server: ServerProcess, namespace: str) -> Iterator[Any]:
    """A client of a server that uses a language model."""
    yield from connected(llm_server.address, namespace, request.param)


# --- interactions -----------------------------------------------------------------------------


def test_all_that_is_given_with_a_message_is_kept(client: Any) -> None:
    stored = client.store_interaction(
        "ada",
        "How does AI work?",
        session_id="s",
        create_time=START,
        labels={"a": "b"},
        metadata={"n": 1},
        ttl=3600,
        id="mine",
    )
    assert (stored.id, stored.kind, stored.sender, stored.content) == (
        "mine",
        InteractionKind.MESSAGE,
        "ada",
        "How does AI work?",
    )
    assert (stored.session_id, stored.create_time, stored.revision) == ("s", START, 1)
    assert (dict(stored.labels), dict(stored.metadata)) == ({"a": "b"}, {"n": 1})
    assert stored.expire_time is not None
    assert stored.original_message is None
    (pair,) = client.retrieve_last_interactions()
    assert pair.message == stored
    with pytest.raises(AlreadyExists):
        client.store_interaction("ada", "Again", id="mine")


def test_a_response_is_linked_by_id_or_by_what_was_said(client: Any) -> None:
    message = client.store_interaction("ada", "How does AI work?", session_id="s", create_time=START)
    by_id = client.store_response("By statistics.", in_response_to=message.id, sender="bot")
    original = OriginalMessage(content="How does AI work?", sender="ada", create_time=START)
    by_words = client.store_response("By algorithms.", original_message=original)
    assert (by_id.in_response_to, by_words.in_response_to) == (message.id, message.id)
    assert (by_id.kind, by_id.session_id, by_id.original_message) == (InteractionKind.RESPONSE, "s", original)
    assert (by_id.sender, by_words.sender) == ("bot", "system")
    assert client.store_response("To nobody.").in_response_to == ""
    (pair,) = client.retrieve_last_interactions()
    assert [response.content for response in pair.responses] == ["By statistics.", "By algorithms."]
    assert pair.response_count == 2
    with pytest.raises(NotFound) as missing:
        client.store_response("Lost.", in_response_to="none")
    assert missing.value.reason == "ITEM_NOT_FOUND"


def test_context_is_messages_and_responses_then_reflections(client: Any) -> None:
    question = client.store_interaction("ada", "How do algorithms work?", session_id="s")
    answer = client.store_response("Algorithms are steps.", in_response_to=question.id)
    thought = client.store_reflection("I talk of algorithms too much.", interaction_ids=[question.id])
    found = client.retrieve_relevant_context("algorithms", explain=True)
    assert {result.interaction.id for result in found[:2]} == {question.id, answer.id}
    assert found[2].interaction == thought
    assert found[2].text == "SYSTEM REFLECTION: I talk of algorithms too much."
    assert thought.interaction_ids == (question.id,)
    assert found[0].explanation
    assert found.token_count > 0
    assert (found.revision, found.degraded) == (3, ())

    def kinds(**wanted: Any) -> list[str]:
        context = client.retrieve_relevant_context("algorithms", **wanted)
        return [result.interaction.kind.value for result in context]

    assert kinds(interaction_limit=0) == ["reflection"]
    assert sorted(kinds(reflection_limit=0)) == ["message", "response"]
    assert kinds(exclude_ids=[question.id, thought.id]) == ["response"]
    assert kinds(sender="bob") == ["reflection"]
    assert kinds(session_id="other") == ["reflection"]
    assert kinds(start_time=datetime.now(UTC) + DAY) == []
    assert kinds(labels={"no": "such"}) == []


def test_the_newest_messages_come_first(client: Any) -> None:
    for number in range(7):
        client.store_interaction("ada" if number % 2 else "bob", f"message {number}", session_id="s")

    def contents(*arguments: Any, **wanted: Any) -> list[str]:
        return [pair.message.content[-1] for pair in client.retrieve_last_interactions(*arguments, **wanted)]

    assert contents() == ["6", "5", "4", "3", "2"]
    assert contents(2) == ["6", "5"]
    assert len(contents(-1)) == 7
    assert contents(sender="ada") == ["5", "3", "1"]
    assert contents(session_id="other") == []


# --- knowledge --------------------------------------------------------------------------------

TEXT = "Otters sleep holding hands. Ünïcode 😀 follows.\n\nThe train to Lisbon leaves at noon.\n\n" * 60


def test_a_document_is_kept_whole_and_in_fragments(client: Any) -> None:
    added = client.add_document(
        TEXT,
        title="Notes",
        source="notes.md",
        session_id="s",
        labels={"a": "b"},
        metadata={"n": 1},
        create_time=START,
        ttl=timedelta(hours=1),
        id="notes",
        max_characters=100,
        overlap_characters=0,
    )
    assert (added.id, added.text, added.title, added.source, added.session_id, added.version) == (
        "notes",
        "",
        "Notes",
        "notes.md",
        "s",
        1,
    )
    assert (dict(added.labels), dict(added.metadata), added.create_time) == ({"a": "b"}, {"n": 1}, START)
    assert added.size_bytes == len(TEXT.encode())
    assert added.expire_time is not None
    got = client.get_document("notes", include_fragments=True)
    assert got.text == TEXT
    assert len(got.fragments) == added.fragment_count > 40
    assert [fragment.index for fragment in got.fragments] == list(range(added.fragment_count))
    for fragment in got.fragments:
        assert fragment.text == TEXT[fragment.start_offset : fragment.end_offset]
        assert fragment.text.encode() == TEXT.encode()[fragment.start_byte : fragment.end_byte]
        assert (fragment.document_id, fragment.document_version) == ("notes", 1)
    assert client.get_document("notes").fragments == ()


def test_fragments_of_many_pages_are_one_document(client: Any) -> None:
    text = "".join(f"Paragraph {n:03} is about something that is its own. {'x' * 60}\n\n" for n in range(230))
    count = client.add_document(text, id="long", max_characters=120, overlap_characters=0).fragment_count
    assert count > 200, "more than two pages"
    document = client.get_document("long", include_fragments=True)
    assert [fragment.index for fragment in document.fragments] == list(range(count))
    assert document.text == text


def test_documents_are_listed_replaced_and_removed(client: Any) -> None:
    ids = [client.add_document(f"Text number {n}.", session_id=f"s{n % 2}", id=f"d{n}").id for n in range(3)]
    listed = list(client.list_documents(page_size=2))
    assert [document.id for document in listed] == ids
    assert (listed[0].text, listed[0].preview) == ("", "Text number 0.")
    assert [each.id for each in client.list_documents(newest_first=True)] == ids[::-1]
    assert [each.id for each in client.list_documents(session_id="s1")] == ["d1"]
    with pytest.raises(AlreadyExists) as taken:
        client.add_document("Other.", id="d0")
    assert taken.value.reason == "DOCUMENT_ALREADY_EXISTS"
    with pytest.raises(Conflict):
        client.add_document("Other.", id="d0", replace=True, expected_version=9)
    assert client.add_document("Other.", id="d0", replace=True, expected_version=1).version == 2
    with pytest.raises(Conflict):
        client.delete_document("d0", expected_version=1)
    assert client.delete_document("d0", expected_version=2).fragment_count == 1
    for call in (client.get_document, client.delete_document):
        with pytest.raises(NotFound) as missing:
            call("d0")
        assert missing.value.reason == "DOCUMENT_NOT_FOUND"


def test_fragments_are_searched(client: Any) -> None:
    client.add_document("Otters sleep holding hands.", id="otters", session_id="s", labels={"a": "b"})
    client.add_document("The train to Lisbon leaves at noon.", id="train", title="Plan")
    found = client.search_fragments("when does the train leave?", explain=True)
    assert found[0].fragment.text == "The train to Lisbon leaves at noon."
    assert (found[0].document.id, found[0].document.title, found[0].document.text) == ("train", "Plan", "")
    assert found[0].explanation
    assert found.degraded == ()

    def documents(**wanted: Any) -> list[str]:
        return [result.document.id for result in client.search_fragments("otters train", **wanted)]

    assert sorted(documents()) == ["otters", "train"]
    assert documents(document_ids=["otters"]) == ["otters"]
    assert documents(session_id="s") == ["otters"]
    assert documents(labels={"a": "b"}) == ["otters"]
    assert len(documents(limit=1)) == 1
    assert sorted(documents(limit=-1, mode="lexical", min_score=0.01)) == ["otters", "train"]


def test_a_message_is_saved_on_command(client: Any) -> None:
    client.add(chat_message("assistant", "The train leaves at noon.", name="Bot"), session_id="room")
    assert client.handle_message("room", "hello").outcome == HandleMessageOutcome.NOT_A_COMMAND
    handled = client.handle_message("room", "Please SAVE THIS", labels={"a": "b"}, agent_name="Bot")
    assert (handled.outcome, handled.command) == (HandleMessageOutcome.SAVED, "save this")
    assert handled.feedback
    assert handled.message.text == "The train leaves at noon."
    assert handled.document.text == "The train leaves at noon."
    assert handled.document.source_item_id == handled.message.id
    assert [fragment.text for fragment in handled.document.fragments] == ["The train leaves at noon."]
    again = client.handle_message("room", "Save this")
    assert (again.outcome, again.document.id) == (
        HandleMessageOutcome.ALREADY_SAVED,
        handled.document.id,
    )
    nothing = client.handle_message("empty", "keep it", commands=["keep it"])
    assert (nothing.outcome, nothing.document) == (HandleMessageOutcome.NO_MESSAGE, None)
    with pytest.raises(InvalidArgument) as refused:
        client.handle_message("room", "Save this", max_characters=1)
    assert refused.value.metadata["feedback"]


# --- the overseer -----------------------------------------------------------------------------


def test_the_state_that_a_goal_needs(client: Any) -> None:
    client.save_state("kudos_givers", ["athlete_123"], description="who gave kudos")
    client.save_state("favorite_routes", ["River loop"])
    found = client.check_relevance("Who from my kudos list was active?", explain=True)
    assert [(entry.key, entry.value) for entry in found.entries] == [("kudos_givers", ["athlete_123"])]
    assert found.context_text.startswith("[Relevant Memory]\n")
    assert found.token_count > 0
    assert (found.key_count, found.revision, found.decided_by) == (2, 2, DecidedBy.RULES)
    verdicts = {decision.key: decision.verdict for decision in found.decisions}
    assert verdicts == {"kudos_givers": KeyVerdict.RELEVANT, "favorite_routes": KeyVerdict.NOT_RELEVANT}
    assert found.decisions[0].explanation
    bare = client.check_relevance("kudos", omit_values=True, pattern="kudos*", max_candidates=1)
    assert [(entry.key, entry.value) for entry in bare.entries] == [("kudos_givers", None)]
    assert (bare.context_text, bare.key_count) == ("", 1)
    none = client.check_relevance("Who from my kudos list was active?", limit=0)
    assert (none.entries, none.decisions[0].verdict) == ((), KeyVerdict.OMITTED)


def test_a_result_is_evaluated_and_saved(client: Any) -> None:
    profile = {"name": "Ada", "ftp_watts": 250, "weight_kg": 60, "home": "Lisbon"}
    arguments = {"user": "ada"}
    told = client.evaluate_for_storage(
        "get_profile", profile, goal="Remember my profile", arguments=arguments, key="profile"
    )
    assert (told.should_save, told.saved, told.entry, told.existing_version) == (True, False, None, 0)
    saved = client.evaluate_for_storage(
        "get_profile", profile, goal="Remember my profile", save=True, key="profile", ttl=3600
    )
    assert (saved.saved, saved.key, saved.entry.key, saved.entry.version) == (True, "profile", "profile", 1)
    assert saved.entry.expire_time is not None
    assert client.load_state("profile").value == profile
    taken = client.evaluate_for_storage(
        "get_profile", {**profile, "ftp_watts": 260}, goal="Remember my profile", save=True, key="profile"
    )
    assert (taken.saved, [failure.reason for failure in taken.failures]) == (False, ["KEY_EXISTS"])
    assert (taken.failures[0].key, taken.existing_version) == ("profile", 1)
    assert client.evaluate_for_storage("get_profile", "boom", is_error=True, save=True).should_save is False


def test_what_the_language_model_decided_and_what_it_cost(
    llm_client: Any, llm: ScriptedOpenAI, namespace: str
) -> None:
    llm_client.save_state("kudos_givers", ["athlete_123"])
    llm.answer({"relevant_keys": ["kudos_givers", "made_up"], "reason": "one fits"})
    found = llm_client.check_relevance(f"Who gave kudos? ({namespace})", decide_by=DecidedBy.LLM)
    assert (found.decided_by, found.reason) == (DecidedBy.LLM, "one fits")
    assert [(failure.reason, failure.key) for failure in found.failures] == [("UNKNOWN_KEY", "made_up")]
    assert (found.llm_usage.call_count, found.llm_usage.input_tokens) == (1, 100)
    assert found.llm_usage.model.startswith("openai:")


def test_a_language_model_that_fails_is_told(llm_client: Any, llm: ScriptedOpenAI, namespace: str) -> None:
    llm_client.save_state("kudos_givers", ["athlete_123"])
    llm.answer(Reply("no JSON at all"))
    goal = f"Who gave me kudos? ({namespace})"  # Not one that is in the cache.
    found = llm_client.check_relevance(goal)
    assert found.decided_by == DecidedBy.RULES
    assert [failure.reason for failure in found.failures] == ["LLM_INVALID_ANSWER"]
    with pytest.raises(Unavailable) as failed:
        llm_client.check_relevance(goal + "!", decide_by="llm")
    assert failed.value.reason == "LLM_UNAVAILABLE"


def test_the_same_request_id_saves_once(client: Any) -> None:
    first = client.save_memory("User likes green tea", "preference", WHY, request_id="r").memory
    assert client.save_memory("User likes green tea", "preference", WHY, request_id="r").memory.id == first.id
    once = client.store_interaction("ada", "Hello", request_id="i")
    assert client.store_interaction("ada", "Hello", request_id="i").id == once.id
    document = client.add_document("Otters sleep.", request_id="d")
    assert client.add_document("Otters sleep.", request_id="d").id == document.id
