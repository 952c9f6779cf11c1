"""Facts, interactions, documents and oversight through the Python client: each test runs with both clients."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory_client import (
    AlreadyExists,
    AsyncMemoryClient,
    Conflict,
    ConsolidationAction,
    DecidedBy,
    FailedPrecondition,
    HandleMessageOutcome,
    InteractionKind,
    InvalidArgument,
    KeyVerdict,
    MemoryCategory,
    MemoryClient,
    MemoryOrigin,
    MemoryOutcome,
    MemorySource,
    MemoryStatus,
    NotFound,
    OnContradiction,
    OriginalMessage,
    Unavailable,
    UserMemory,
    chat_message,
)
from scripted_openai import Reply, ScriptedOpenAI
from server_process import ServerProcess

START = datetime(2025, 3, 1, 12, 30, 15, 123456, UTC)
DAY = timedelta(days=1)
WHY = "It is worth remembering for long"


class Blocking:
    """An asynchronous client whose methods are called like those of the synchronous one."""

    def __init__(self, runner: asyncio.Runner, client: AsyncMemoryClient) -> None:
        self._runner = runner
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*arguments: Any, **fields: Any) -> Any:
            answer = method(*arguments, **fields)
            return self._runner.run(answer if inspect.isawaitable(answer) else _listed(answer))

        return call


async def _listed(entries: AsyncIterator[Any]) -> list[Any]:
    return [entry async for entry in entries]


def connected(server: ServerProcess, namespace: str, kind: str) -> Iterator[Any]:
    """A client of the kind that is asked for."""
    if kind == "sync":
        with MemoryClient(server.address, namespace=namespace) as client:
            yield client
        return
    with asyncio.Runner() as runner:
        client = AsyncMemoryClient(server.address, namespace=namespace)
        yield Blocking(runner, client)
        runner.run(client.close())


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest, server: ServerProcess, namespace: str) -> Iterator[Any]:
    yield from connected(server, namespace, request.param)


@pytest.fixture(scope="module")
def llm() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI() as provider:
        yield provider


@pytest.fixture(scope="module")
def llm_server(llm: ScriptedOpenAI) -> Iterator[ServerProcess]:
    flags = ["--store", "memory", "--embedder", "none", *llm.flags]
    with ServerProcess(flags=flags, env=llm.environment()) as process:
        yield process


@pytest.fixture(params=["sync", "async"])
def llm_client(request: pytest.FixtureRequest, llm_server: ServerProcess, namespace: str) -> Iterator[Any]:
    """A client of a server that asks a language model."""
    yield from connected(llm_server, namespace, request.param)


# --- facts about a user -----------------------------------------------------------------------


def test_a_fact_is_saved_in_the_third_person_and_once(client: Any) -> None:
    saved = client.save_memory("I prefer dark mode", MemoryCategory.PREFERENCE, WHY)
    assert saved.outcome == MemoryOutcome.SAVED
    assert (saved.memory.content, saved.memory.original_content) == (
        "User prefers dark mode",
        "I prefer dark mode",
    )
    assert saved.existing is None
    assert (saved.decided_by, saved.rephrased_by) == (DecidedBy.RULES, DecidedBy.RULES)
    assert saved.llm_usage is None

    again = client.save_memory("User prefers dark mode", "preference", WHY)
    assert (again.outcome, again.memory) == (MemoryOutcome.DUPLICATE, None)
    assert again.existing == saved.memory
    assert again.similarity > again.duplicate_threshold > 0
    assert again.message == "Similar memory already exists"
    assert again.rephrased_by == DecidedBy.UNSPECIFIED
    assert list(client.list_memories()) == [saved.memory]


def test_all_that_is_given_with_a_fact_is_kept(client: Any) -> None:
    saved = client.save_memory(
        "Me and Ann started Acme in 2019",
        "project",
        WHY,
        source=MemorySource(
            session_id="s", item_ids=("a", "b"), quote="Remember: Ann and me", actor="assistant"
        ),
        explicit_request=True,
        valid_from_time=START,
        ttl=timedelta(hours=1),
        labels={"topic": "work"},
        metadata={"page": 3},
        keep_wording=True,
        decide_by=DecidedBy.RULES,
    )
    memory: UserMemory = saved.memory
    assert (memory.content, memory.category, memory.reasoning) == (
        "Me and Ann started Acme in 2019",
        MemoryCategory.PROJECT,
        WHY,
    )
    assert saved.rephrased_by == DecidedBy.UNSPECIFIED
    assert memory.source == MemorySource(
        session_id="s",
        item_ids=("a", "b"),
        quote="Remember: Ann and me",
        actor="assistant",
        origin=MemoryOrigin.SAVED,
    )
    assert (memory.valid_from_time, memory.valid_until_time) == (START, None)
    assert abs(memory.expire_time - memory.create_time - timedelta(hours=1)) < timedelta(minutes=1)
    assert (dict(memory.labels), dict(memory.metadata)) == ({"topic": "work"}, {"page": 3})
    assert (memory.status, memory.version) == (MemoryStatus.ACTIVE, 1)
    boosts = {boost.name: boost.amount for boost in memory.importance.boosts}
    assert boosts["explicit_request"] == 2
    assert memory.importance.base == 7
    assert memory.importance.score == 7 + sum(boosts.values())
    assert list(client.list_memories(ids=[memory.id])) == [memory]


def test_a_contradiction_ends_what_was_known(client: Any) -> None:
    old = client.save_memory("User lives in London", "identity", WHY, valid_from_time=START).memory
    saved = client.save_memory("User lives in Paris", "identity", WHY, valid_from_time=START + DAY)
    assert saved.outcome == MemoryOutcome.SUPERSEDED
    assert saved.existing == old
    (ended,) = saved.superseded
    assert (ended.id, ended.status, ended.superseded_by) == (
        old.id,
        MemoryStatus.SUPERSEDED,
        saved.memory.id,
    )
    assert ended.valid_until_time == START + DAY
    assert saved.memory.supersedes == (old.id,)
    assert list(client.list_memories()) == [saved.memory]
    assert list(client.list_memories(include_history=True)) == [ended, saved.memory]
    assert [each.id for each in client.list_memories(as_of_time=START)] == [old.id]
    (found,) = client.search_memories("where does the user live?", as_of_time=START)
    assert found.memory.id == old.id
    assert len(client.search_memories("where does the user live?", include_history=True)) == 2


def test_a_contradiction_is_refused_or_kept_beside_if_that_is_asked_for(client: Any) -> None:
    client.save_memory("User lives in London", "identity", WHY)
    refused = client.save_memory("User lives in Paris", "identity", WHY, on_contradiction="refuse")
    assert (refused.outcome, refused.memory) == (MemoryOutcome.CONTRADICTION, None)
    kept = client.save_memory(
        "User lives in Paris", "identity", WHY, on_contradiction=OnContradiction.KEEP_BOTH
    )
    assert kept.superseded == ()
    assert len(list(client.list_memories())) == 2


def test_memories_are_found_by_text_and_filters(client: Any) -> None:
    work = MemorySource(session_id="work")
    tea = client.save_memory("User likes green tea", "preference", WHY, labels={"topic": "food"}).memory
    chess = client.save_memory("User plays chess on Mondays", "context", WHY, source=work).memory
    found = client.search_memories("what does the user like to drink? tea", explain=True)
    assert found[0].memory == tea
    assert sum(share.contribution for share in found[0].explanation) == pytest.approx(found[0].score)
    assert (found.revision, found.degraded) == (2, ())

    def searched(**filters: Any) -> list[str]:
        return [result.memory.id for result in client.search_memories("user", **filters)]

    assert set(searched()) == {tea.id, chess.id}
    assert searched(categories=["context"]) == [chess.id]
    assert searched(labels={"topic": "food"}) == [tea.id]
    assert searched(session_id="work") == [chess.id]
    assert searched(min_importance=8) == [tea.id]
    assert len(searched(limit=1)) == 1
    assert len(searched(max_tokens=7)) == 1
    lexical = client.search_memories("chess", mode="lexical", min_score=0.01)
    assert [result.memory.id for result in lexical] == [chess.id]


def test_memories_are_listed_over_many_pages(client: Any) -> None:
    things = ("bread", "music", "otters", "trains", "maps")
    saved = [client.save_memory(f"User likes {thing}", "preference", WHY).memory for thing in things]
    assert list(client.list_memories(page_size=2)) == saved
    assert list(client.list_memories(page_size=2, newest_first=True)) == saved[::-1]
    assert list(client.list_memories(start_time=saved[2].create_time)) == saved[2:]
    assert list(client.list_memories(end_time=saved[2].create_time)) == saved[:2]
    assert {result.memory.id for result in client.search_memories("user likes", limit=-1)} == {
        each.id for each in saved
    }


def test_an_update_changes_what_is_given_and_no_more(client: Any) -> None:
    old = client.save_memory("User likes tea", "preference", WHY, labels={"a": "b"}, ttl=3600).memory
    updated = client.update_memory(
        old.id,
        content="I like green tea",
        category="context",
        reasoning="Corrected by the user",
        importance=3.5,
        valid_from_time=START,
        valid_until_time=START + DAY,
        expire_time=None,
        labels={},
        metadata={"x": 1},
        expected_version=1,
    )
    new = updated.memory
    assert (updated.outcome, updated.rephrased_by) == (MemoryOutcome.SAVED, DecidedBy.RULES)
    assert (new.content, new.category, new.reasoning, new.importance.score, new.version) == (
        "User likes green tea",
        MemoryCategory.CONTEXT,
        "Corrected by the user",
        3.5,
        2,
    )
    assert (new.valid_from_time, new.valid_until_time, new.expire_time) == (START, START + DAY, None)
    assert (dict(new.labels), dict(new.metadata), new.create_time) == ({}, {"x": 1}, old.create_time)
    again = client.update_memory(old.id, valid_until_time=None, ttl=60).memory
    assert (again.valid_until_time, again.content, dict(again.metadata)) == (None, new.content, {"x": 1})
    assert again.expire_time is not None


def test_an_update_to_what_another_memory_says_writes_nothing(client: Any) -> None:
    tea = client.save_memory("User likes green tea", "preference", WHY).memory
    bread = client.save_memory("User bakes rye bread", "preference", WHY).memory
    updated = client.update_memory(bread.id, content="User likes green tea", keep_wording=True)
    assert (updated.outcome, updated.existing, updated.memory) == (MemoryOutcome.DUPLICATE, tea, bread)


def test_what_is_refused_of_memories(client: Any) -> None:
    memory = client.save_memory("User likes tea", "preference", WHY).memory
    with pytest.raises(Conflict) as conflict:
        client.update_memory(memory.id, reasoning="Corrected by the user", expected_version=7)
    assert conflict.value.reason == "VERSION_MISMATCH"
    assert conflict.value.metadata["current_version"] == "1"
    with pytest.raises(Conflict):
        client.delete_memory(memory.id, expected_version=7)
    for call in (lambda: client.update_memory("none", importance=1), lambda: client.delete_memory("none")):
        with pytest.raises(NotFound) as missing:
            call()
        assert missing.value.reason == "MEMORY_NOT_FOUND"
    with pytest.raises(InvalidArgument) as short:
        client.save_memory("tea", "preference", WHY)
    assert short.value.field == "content"
    with pytest.raises(InvalidArgument):
        client.update_memory(memory.id)
    with pytest.raises(FailedPrecondition) as without_model:
        client.save_memory("User likes bread", "preference", WHY, decide_by="llm")
    assert without_model.value.reason == "LLM_REQUIRED"
    with pytest.raises(ValueError, match="hobby"):
        client.save_memory("User likes bread", "hobby", WHY)
    with pytest.raises(TypeError, match="categories"):
        client.search_memories("tea", categories="preference")


def test_a_deletion_takes_the_history_along_if_asked_to(client: Any) -> None:
    first = client.save_memory("User lives in London", "identity", WHY).memory
    second = client.save_memory("User lives in Paris", "identity", WHY).memory
    third = client.save_memory("User lives in Rome", "identity", WHY).memory
    assert client.delete_memory(third.id, expected_version=1).count == 1
    assert [each.id for each in client.list_memories(include_history=True)] == [first.id, second.id]
    removed = client.delete_memory(second.id, include_history=True)
    assert removed.count == 2
    assert list(client.list_memories(include_history=True)) == []


def test_important_memories_are_preloaded_as_a_text(client: Any) -> None:
    client.save_memory("User likes green tea", "preference", WHY)
    name = client.save_memory("User is named Ada", "identity", WHY, labels={"a": "b"}).memory
    project = client.save_memory("User builds a boat", "project", WHY).memory
    found = client.get_preloaded_memories()
    assert [memory.content for memory in found.memories] == ["User is named Ada", "User likes green tea"]
    assert "User is named Ada" in found.text
    assert found.token_count > 0
    assert (found.omitted_count, found.revision) == (0, 3)
    assert client.get_preloaded_memories(categories=["project"]).memories == (project,)
    assert client.get_preloaded_memories(labels={"a": "b"}).memories == (name,)
    fewer = client.get_preloaded_memories(limit=1)
    assert (fewer.memories, fewer.omitted_count) == ((name,), 1)
    none = client.get_preloaded_memories(max_tokens=1)
    assert (none.memories, none.text, none.omitted_count) == ((), "", 2)
    assert client.get_preloaded_memories(min_importance=9.5).memories == (name,)
    assert client.get_preloaded_memories(as_of_time=START).memories == ()


def test_facts_are_extracted_from_messages(client: Any) -> None:
    messages = [
        chat_message("user", "I am allergic to peanuts."),
        chat_message("assistant", "Noted. I love peanuts."),
    ]
    tried = client.extract_memories(messages, dry_run=True)
    assert [(each.outcome, each.memory.id) for each in tried.results] == [(MemoryOutcome.SAVED, "")]
    assert list(client.list_memories()) == []
    found = client.extract_memories(messages, session_id="s", actor="bot", labels={"a": "b"})
    (result,) = found.results
    assert result.memory.content == "User is allergic to peanuts"
    assert result.memory.source.origin == MemoryOrigin.EXTRACTED
    assert (result.memory.source.session_id, result.memory.source.actor) == ("s", "bot")
    assert (found.examined_count, found.examined_revision, found.more) == (2, 0, False)
    assert found.decided_by == DecidedBy.RULES
    assert list(client.list_memories(labels={"a": "b"})) == [result.memory]
    (known,) = client.extract_memories(messages, recalled_memory_ids=[result.memory.id]).results
    assert (known.outcome, known.existing.id) == (MemoryOutcome.RECALLED, result.memory.id)


def test_facts_are_extracted_from_a_session_step_by_step(client: Any) -> None:
    client.add(chat_message("user", "I live in Lisbon."), session_id="s")
    client.add(chat_message("user", "I am allergic to peanuts."), session_id="s")
    first = client.extract_memories(session_id="s", limit=1)
    assert (first.examined_count, first.examined_revision, first.more) == (1, 1, True)
    second = client.extract_memories(session_id="s", after_revision=first.examined_revision)
    assert [result.memory.content for result in second.results] == ["User is allergic to peanuts"]
    assert second.more is False


def test_similar_memories_are_consolidated(client: Any) -> None:
    for content in ("User likes green tea", "User likes green tea a lot"):
        client.save_memory(content, "preference", WHY)
    before = list(client.list_memories())
    assert len(before) == 2
    tried = client.consolidate_memories(dry_run=True, similarity_threshold=0.5)
    assert (tried.examined_count, tried.more, len(tried.consolidations)) == (2, False, 1)
    (group,) = tried.consolidations
    assert {memory.id for memory in group.sources} == {memory.id for memory in before}
    assert group.applied is False
    assert group.similarity > 0.5
    done = client.consolidate_memories(
        similarity_threshold=0.5, memory_ids=[memory.id for memory in before], categories=["preference"]
    )
    (group,) = done.consolidations
    assert (group.action, group.applied) == (ConsolidationAction.MERGE, True)
    assert list(client.list_memories()) == [group.memory]
    assert set(group.memory.source.memory_ids) == {memory.id for memory in before}


def test_the_same_request_id_saves_once(client: Any) -> None:
    first = client.save_memory("User likes green tea", "preference", WHY, request_id="r").memory
    assert client.save_memory("User likes green tea", "preference", WHY, request_id="r").memory.id == first.id
    once = client.store_interaction("ada", "Hello", request_id="i")
    assert client.store_interaction("ada", "Hello", request_id="i").id == once.id
    document = client.add_document("Otters sleep.", request_id="d")
    assert client.add_document("Otters sleep.", request_id="d").id == document.id


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

TEXT = "Otters sleep holding hands. Ünïcode 😀 follows.\n\nThe train to Lisbon leaves at noon.\n\n" * 40


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


def test_what_the_language_model_decided_and_what_it_cost(llm_client: Any, llm: ScriptedOpenAI) -> None:
    goal = f"Who gave kudos? {llm_client!r} {id(llm_client)}"  # Not answered from the cache of another test.
    llm_client.save_state("kudos_givers", ["athlete_123"])
    decision = {"key": "kudos_givers", "relevant": True, "reason": "the goal asks for it"}
    llm.answer({"keys": [decision], "decisions": [decision], "relevant": [decision], "reason": "one fits"})
    found = llm_client.check_relevance(goal, decide_by=DecidedBy.LLM)
    assert found.decided_by == DecidedBy.LLM
    assert (found.llm_usage.call_count, found.llm_usage.input_tokens) == (1, 100)
    assert found.llm_usage.model.startswith("openai:")


def test_a_language_model_that_fails_is_told(llm_client: Any, llm: ScriptedOpenAI) -> None:
    llm_client.save_state("kudos_givers", ["athlete_123"])
    llm.answer(Reply("no JSON at all"))
    goal = f"Who gave me kudos? {id(llm_client)}"
    found = llm_client.check_relevance(goal)
    assert found.decided_by == DecidedBy.RULES
    assert [failure.reason for failure in found.failures] == ["LLM_INVALID_ANSWER"]
    with pytest.raises(Unavailable) as failed:
        llm_client.check_relevance(goal + "!", decide_by="llm")
    assert failed.value.reason == "LLM_UNAVAILABLE"
