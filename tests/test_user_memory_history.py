"""The life of memories: superseded, corrected, deleted, consolidated."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from grpc_api import Api, eventually, outcome, refusal, struct
from memory_service.v1 import memory_pb2
from memory_service.v1 import user_memory_pb2 as pb
from memory_service.v1.overseer_pb2 import DECIDED_BY_RULES, DECIDED_BY_UNSPECIFIED
from user_memories import (
    DUPLICATE,
    IDENTITY,
    PROJECT,
    REASONING,
    SAVED,
    SUPERSEDED,
    User,
    adjustments,
    at,
    chain,
    similar,
)

MERGE, SUPERSEDE, KEEP = (
    pb.CONSOLIDATION_ACTION_MERGE,
    pb.CONSOLIDATION_ACTION_SUPERSEDE,
    pb.CONSOLIDATION_ACTION_KEEP,
)


@pytest.fixture
def user(api: Api, namespace: str) -> User:
    return User(api, namespace)


def moment_before(time: Timestamp) -> Timestamp:
    earlier = Timestamp()
    earlier.FromMicroseconds(time.ToMicroseconds() - 1)
    return earlier


# Contradictions supersede


def test_a_contradiction_ends_the_known_one_which_stays_in_the_history(user: User) -> None:
    known = user.save("I live in London", IDENTITY).memory
    response = user.save("I live in Paris", IDENTITY)
    new = response.memory
    assert (response.outcome, response.existing) == (SUPERSEDED, known)
    [ended] = response.superseded
    assert (ended.id, ended.status, ended.version) == (known.id, pb.MEMORY_STATUS_SUPERSEDED, 2)
    assert ended.valid_until_time == new.valid_from_time
    assert (ended.superseded_by, list(new.supersedes)) == (new.id, [known.id])
    assert user.memories() == [new]
    assert user.memories(include_history=True) == [ended, new]
    assert ended.revision == new.revision + 1 == response.revision


def test_reads_as_of_an_earlier_time_show_what_held_then(user: User) -> None:
    london = user.save("I live in London", IDENTITY, valid_from_time=at(1_000)).memory
    user.save("I live in Paris", IDENTITY, valid_from_time=at(2_000))
    query = "Where does the user live?"
    for time, expected in [(999, []), (1_000, ["London"]), (1_999, ["London"]), (2_000, ["Paris"])]:
        contents = [f"User lives in {city}" for city in expected]
        assert user.contents(as_of_time=at(time)) == contents
        assert user.found(query, as_of_time=at(time)) == contents
        assert [m.content for m in user.preloaded(as_of_time=at(time)).memories] == contents
    assert user.found(query) == ["User lives in Paris"]
    assert set(user.found(query, include_history=True)) == {"User lives in London", "User lives in Paris"}
    assert user.contents(as_of_time=moment_before(london.valid_from_time)) == []


def test_a_fact_that_began_before_the_known_one_is_saved_as_ended(user: User) -> None:
    paris = user.save("I live in Paris", IDENTITY, valid_from_time=at(2_000)).memory
    response = user.save("I live in London", IDENTITY, valid_from_time=at(1_000))
    assert (response.outcome, response.existing) == (SAVED, paris)
    assert response.memory.status == pb.MEMORY_STATUS_SUPERSEDED
    assert response.memory.valid_until_time == paris.valid_from_time
    assert response.memory.superseded_by == paris.id
    assert user.memories() == [paris]
    assert user.contents(as_of_time=at(1_500)) == ["User lives in London"]


def test_what_will_end_holds_until_then(user: User) -> None:
    user.save("I live in London", IDENTITY)
    response = user.save("I live in Paris", IDENTITY, valid_from_time=at(2**32))
    assert response.outcome == SUPERSEDED
    assert response.superseded[0].status == pb.MEMORY_STATUS_ACTIVE
    assert user.contents() == ["User lives in London"]
    assert user.contents(as_of_time=at(2**32)) == ["User lives in Paris"]


def test_a_memory_expires_with_its_history(user: User) -> None:
    saved = user.save("I am in Lima", IDENTITY, ttl=Duration(nanos=300_000_000)).memory
    life = saved.expire_time.ToMicroseconds() - saved.create_time.ToMicroseconds()
    assert life == 300_000
    eventually(lambda: not user.memories(include_history=True), "the memory expires")
    assert user.found("Lima") == []


# Corrections


def test_new_content_is_reworded_rated_and_found_by_its_new_words(user: User) -> None:
    known = user.save("I play the violin", PROJECT).memory
    response = user.update(known.id, content="I play the trumpet with Maria")
    memory = response.memory
    assert (response.outcome, memory.content) == (SAVED, "User plays the trumpet with Maria")
    assert (memory.version, memory.original_content) == (2, "I play the trumpet with Maria")
    assert adjustments(memory) == [("specific_details", 1)]
    assert (memory.create_time, memory.valid_from_time) == (known.create_time, known.valid_from_time)
    assert (response.decided_by, response.rephrased_by) == (DECIDED_BY_RULES, DECIDED_BY_RULES)
    assert user.memories() == [memory]
    assert cosine(user, "User plays the trumpet with Maria") == pytest.approx(1, abs=0.01)
    assert cosine(user, "User plays the violin") < 0.95
    assert user.found("trumpet", mode=memory_pb2.RETRIEVE_MODE_LEXICAL) == [memory.content]
    assert user.found("violin", mode=memory_pb2.RETRIEVE_MODE_LEXICAL) == []


def cosine(user: User, query: str) -> float:
    """Return the cosine of a query and the best result."""
    response = user.search(query, mode=memory_pb2.RETRIEVE_MODE_VECTOR, explain=True)
    return response.results[0].explanation.contributions[0].raw_score


def test_a_correction_to_what_another_memory_says_is_not_written(user: User) -> None:
    tea = user.save("User prefers green tea").memory
    other = user.save("User prefers dark mode").memory
    response = user.update(other.id, content="I prefer green tea")
    assert (response.outcome, response.existing, response.memory) == (DUPLICATE, tea, other)
    assert user.memories() == [tea, other]


def test_a_correction_to_the_same_words_is_no_duplicate_of_itself(user: User) -> None:
    known = user.save("User prefers Dark mode").memory
    assert user.update(known.id, content="User prefers dark mode").memory.content == "User prefers dark mode"


def test_a_correction_of_a_stale_version_is_aborted(user: User) -> None:
    known = user.save("User prefers dark mode").memory
    user.update(known.id, reasoning="It is a lasting preference", expected_version=1)
    for method, request in [
        ("UpdateMemory", pb.UpdateMemoryRequest(memory=pb.UserMemory(id=known.id, reasoning=REASONING))),
        ("DeleteMemory", pb.DeleteMemoryRequest(id=known.id)),
    ]:
        request.namespace, request.expected_version = user.namespace, 1
        found = refusal(getattr(user.service, method), request)
        assert (found.code, found.reason) == (grpc.StatusCode.ABORTED, "VERSION_MISMATCH")
        assert found.metadata["current_version"] == "2"
    assert [memory.version for memory in user.memories()] == [2]


def test_of_many_conditional_corrections_one_is_written(user: User) -> None:
    known = user.save("User prefers dark mode").memory

    def update(turn: int) -> grpc.StatusCode:
        return outcome(lambda: user.update(known.id, reasoning=f"{REASONING} {turn}", expected_version=1))

    with ThreadPoolExecutor(10) as threads:
        codes = Counter(threads.map(update, range(10)))
    assert codes == {grpc.StatusCode.OK: 1, grpc.StatusCode.ABORTED: 9}


def test_a_score_set_by_hand_is_an_adjustment_named_manual(user: User) -> None:
    known = user.save("Remember that I prefer dark mode").memory
    lower = user.update(known.id, importance=pb.Importance(score=3)).memory
    assert (lower.importance.score, adjustments(lower)) == (3, [("explicit_request", 2), ("manual", -8)])
    higher = user.update(known.id, importance=pb.Importance(score=12)).memory
    assert (higher.importance.score, adjustments(higher)) == (12, [("explicit_request", 2), ("manual", 1)])
    moved = user.update(known.id, category=PROJECT).memory
    assert (moved.importance.base, moved.importance.score) == (7, 12)
    anew = user.update(known.id, content="User prefers light mode").memory
    assert (anew.importance.score, adjustments(anew)) == (9, [("explicit_request", 2)])


def test_a_mask_takes_what_it_names_and_clears_what_is_unset(user: User) -> None:
    known = user.save("User prefers dark mode", labels={"a": "b"}, metadata=struct({"x": 1})).memory
    memory = user.update(
        known.id, content="Not to be taken", update_mask=FieldMask(paths=["labels", "metadata"])
    ).memory
    assert (dict(memory.labels), memory.HasField("metadata")) == ({}, False)
    assert memory.content == "User prefers dark mode"
    ended = user.update(known.id, valid_until_time=at(2**31), valid_from_time=at(5)).memory
    assert (ended.valid_from_time, ended.status) == (at(5), pb.MEMORY_STATUS_ACTIVE)
    ended = user.update(known.id, valid_until_time=at(6)).memory
    assert ended.status == pb.MEMORY_STATUS_SUPERSEDED
    assert user.memories() == []
    assert user.contents(as_of_time=at(5)) == ["User prefers dark mode"]
    back = user.update(known.id, update_mask=FieldMask(paths=["valid_until_time"])).memory
    assert back.status == pb.MEMORY_STATUS_ACTIVE
    assert user.memories() == [back]


def test_the_mask_of_all_replaces_all_that_can_be_corrected(user: User) -> None:
    known = user.save("Remember that I prefer dark mode", labels={"a": "b"}, ttl=Duration(seconds=999)).memory
    everything = FieldMask(paths=["*"])
    known.content = "User prefers light mode"
    same = user.service.UpdateMemory(
        pb.UpdateMemoryRequest(namespace=user.namespace, memory=known, update_mask=everything)
    ).memory
    assert (same.content, dict(same.labels), same.expire_time) == (
        "User prefers light mode", {"a": "b"}, known.expire_time,
    )  # fmt: skip
    assert same.importance.score == known.importance.score
    memory = user.update(
        known.id,
        content="I prefer grey mode",
        category=PROJECT,
        reasoning=REASONING,
        valid_from_time=at(5),
        update_mask=everything,
    ).memory
    assert (memory.content, memory.category, dict(memory.labels)) == ("User prefers grey mode", PROJECT, {})
    assert not memory.HasField("expire_time")
    assert (memory.valid_from_time, memory.version) == (at(5), 3)
    assert adjustments(memory) == [("explicit_request", 2)]


def test_a_superseded_memory_is_corrected_for_the_time_that_it_held(user: User) -> None:
    known = user.save("I live in London", IDENTITY, valid_from_time=at(5)).memory
    user.save("I live in Paris", IDENTITY)
    memory = user.update(known.id, content="I live in London, Ontario").memory
    assert memory.status == pb.MEMORY_STATUS_SUPERSEDED
    assert user.contents(as_of_time=at(6)) == ["User lives in London, Ontario"]
    assert user.contents() == ["User lives in Paris"]


def test_only_the_reasoning_needs_no_decision(user: User) -> None:
    known = user.save("User prefers dark mode").memory
    response = user.update(known.id, reasoning="A lasting preference")
    assert (response.decided_by, response.rephrased_by) == (DECIDED_BY_UNSPECIFIED,) * 2
    assert response.memory.reasoning == "A lasting preference"
    assert user.found("dark mode") == ["User prefers dark mode"]


# Deleting


def test_deleting_leaves_the_history_and_nothing_comes_back(user: User) -> None:
    london, paris, rome = chain(user)
    response = user.delete(rome.id)
    assert response.removed_count == 1
    assert user.memories() == []
    left = user.memories(include_history=True)
    assert [memory.id for memory in left] == [london.id, paris.id]
    assert [memory.superseded_by for memory in left] == [paris.id, ""]
    assert user.found("where does the user live", include_history=True, limit=-1) != []
    assert user.found("Rome", include_history=True, min_score=0.9) == []


def test_deleting_with_its_history_removes_all_before_it(user: User) -> None:
    chain(user)
    kept = user.save("User prefers dark mode").memory
    response = user.delete(user.memories()[0].id, include_history=True)
    assert response.removed_count == 3
    assert user.memories(include_history=True) == [kept]
    assert user.api.stats(user.namespace).item_count == 1


def test_deleting_with_the_history_in_the_middle_leaves_what_came_later(user: User) -> None:
    _, paris, rome = chain(user)
    assert user.delete(paris.id, include_history=True).removed_count == 2
    assert user.memories(include_history=True) == [rome]


# Consolidation


def test_contradicting_memories_are_ended_by_consolidation(user: User) -> None:
    london, paris = similar(user, "User lives in London", "User lives in Paris", category=IDENTITY)
    dry = user.consolidate(dry_run=True)
    [group] = dry.consolidations
    assert (group.action, group.applied, dry.examined_count) == (SUPERSEDE, False, 2)
    assert sorted(source.id for source in group.sources) == [london.id, paris.id]
    assert user.memories() == [london, paris]
    response = user.consolidate(memory_ids=[london.id, paris.id])
    [group] = response.consolidations
    assert (group.action, group.applied) == (SUPERSEDE, True)
    assert group.decided_by == response.decided_by == DECIDED_BY_RULES
    assert group.reason
    assert user.memories() == [group.memory]
    assert (group.memory.id, list(group.memory.supersedes)) == (paris.id, [london.id])
    ended = user.memories(include_history=True)[0]
    assert ended.valid_until_time == paris.valid_from_time
    assert (ended.status, ended.superseded_by) == (pb.MEMORY_STATUS_SUPERSEDED, paris.id)


def test_consolidation_looks_only_at_what_it_is_told_to(user: User) -> None:
    london, _ = similar(user, "User lives in London", "User lives in Paris", category=IDENTITY)
    assert not user.consolidate(memory_ids=[london.id]).consolidations
    assert not user.consolidate(categories=[PROJECT]).consolidations
    assert len(user.memories()) == 2


def same_twice(user: User) -> list[pb.UserMemory]:
    """Two memories with the same words: the second was saved while the first was in the history."""
    first = user.save("User prefers dark mode", valid_from_time=at(100)).memory
    user.update(first.id, valid_until_time=at(200))
    second = user.save("User prefers dark mode.", labels={"a": "b"}, keep_wording=True).memory
    user.update(first.id, update_mask=FieldMask(paths=["valid_until_time"]))
    assert second.id
    return user.memories()


def test_memories_that_say_the_same_are_merged_and_stay_in_the_history(user: User) -> None:
    sources = same_twice(user)
    dry = user.consolidate(dry_run=True)
    assert [(g.action, g.applied, g.memory.id) for g in dry.consolidations] == [(MERGE, False, "")]
    assert user.memories() == sources
    [group] = user.consolidate().consolidations
    merged = group.memory
    assert (group.action, group.applied) == (MERGE, True)
    assert sorted(source.id for source in group.sources) == sorted(source.id for source in sources)
    assert user.memories() == [merged]
    assert merged.source.origin == pb.MEMORY_ORIGIN_CONSOLIDATED
    assert sorted(merged.source.memory_ids) == sorted(source.id for source in sources)
    assert (dict(merged.labels), merged.valid_from_time) == ({"a": "b"}, at(100))
    assert user.contents(as_of_time=at(150)) == [merged.content]
    history = user.memories(include_history=True)
    assert [m.superseded_by for m in history if m.status == pb.MEMORY_STATUS_MERGED] == [merged.id] * 2
    assert not user.consolidate().consolidations
    assert user.delete(merged.id, include_history=True).removed_count == 3


def test_similar_memories_of_different_meaning_stay(user: User) -> None:
    kept = similar(user, "User's sister is named Ana", "User's sister is named Eva")
    response = user.consolidate(similarity_threshold=0.3)
    assert [(g.action, g.applied) for g in response.consolidations] == [(KEEP, False)]
    assert user.memories() == kept


def test_more_groups_than_the_limit_are_told(user: User) -> None:
    similar(user, "User lives in London", "User lives in Paris", category=IDENTITY)
    similar(user, "User's name is John", "User's name is Jack", category=IDENTITY)
    first = user.consolidate(limit=1)
    assert (len(first.consolidations), first.more) == (1, True)
    second = user.consolidate(limit=1)
    assert (len(second.consolidations), second.more) == (1, False)
    assert len(user.memories()) == 2
