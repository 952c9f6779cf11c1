"""Facts about a user through the Python client; each test runs with both clients."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from both_clients import connected
from memory_client import (
    Conflict,
    ConsolidationAction,
    DecidedBy,
    FailedPrecondition,
    InvalidArgument,
    MemoryCategory,
    MemoryOrigin,
    MemoryOutcome,
    MemorySource,
    MemoryStatus,
    NotFound,
    OnContradiction,
    UserMemory,
    chat_message,
)
from server_process import ServerProcess

START = datetime(2025, 3, 1, 12, 30, 15, 123456, UTC)
DAY = timedelta(days=1)
WHY = "It is worth remembering for long"


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest, server: ServerProcess, namespace: str) -> Iterator[Any]:
    yield from connected(server.address, namespace, request.param)


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
    assert again.message.startswith("Similar memory already exists")
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
    with pytest.raises(InvalidArgument, match="categories"):
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
    for content in ("User lives in London", "User lives in Paris"):
        client.save_memory(content, "identity", WHY, on_contradiction="keep_both")
    london, paris = client.list_memories()
    tried = client.consolidate_memories(dry_run=True, similarity_threshold=0.3)
    assert (tried.examined_count, tried.more) == (2, False)
    (group,) = tried.consolidations
    assert {memory.id for memory in group.sources} == {london.id, paris.id}
    assert (group.action, group.applied) == (ConsolidationAction.SUPERSEDE, False)
    assert 0.3 < group.similarity < 1
    assert list(client.list_memories()) == [london, paris]
    assert client.consolidate_memories(categories=["context"]).examined_count == 0
    done = client.consolidate_memories(similarity_threshold=0.3, memory_ids=[london.id, paris.id])
    (group,) = done.consolidations
    assert (group.applied, group.memory.supersedes) == (True, (london.id,))
    assert list(client.list_memories()) == [group.memory]
