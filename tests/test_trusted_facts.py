"""A fact with less trust neither ends a fact with more trust nor blocks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from credentials import Client, connect, keys_in
from memory_service.v1 import user_memory_pb2 as pb
from server_process import ServerProcess
from user_memories import message

SAVED, DUPLICATE, SUPERSEDED, CONTRADICTION, RECALLED = (
    pb.MEMORY_OUTCOME_SAVED, pb.MEMORY_OUTCOME_DUPLICATE, pb.MEMORY_OUTCOME_SUPERSEDED,
    pb.MEMORY_OUTCOME_CONTRADICTION, pb.MEMORY_OUTCOME_RECALLED,
)  # fmt: skip
ROME, PARIS, OSLO = (f"User lives in {city}" for city in ("Rome", "Paris", "Oslo"))


@dataclass
class Writers:
    """Ada is trusted fully, Trudy half, Mallory a little."""

    ada: Client
    mallory: Client
    trudy: Client
    namespace: str

    def save(self, client: Client, content: str, **fields: Any) -> pb.SaveMemoryResponse:
        """Save a fact."""
        return client.call(
            "SaveMemory", namespace=self.namespace, content=content, reasoning="Somebody said so",
            **{"category": pb.MEMORY_CATEGORY_IDENTITY, "keep_wording": True} | fields,
        )  # fmt: skip

    def hold(self, **fields: Any) -> list[str]:
        """Return the valid facts, sorted."""
        listed = self.ada.call("ListMemories", namespace=self.namespace, **fields)
        return sorted(memory.content for memory in listed.memories)


@pytest.fixture(scope="module", params=["hnsw", "memory"])
def clients(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[list[Client]]:
    folder = tmp_path_factory.mktemp("data")
    keys = keys_in(folder)
    tokens = [keys.token("ada"), keys.token("mallory", trust=0.25), keys.token("trudy", trust=0.5)]
    with ServerProcess(folder, flags=["--auth", "keys", "--store", request.param]) as process:
        client = connect(process.address, tokens[0])
        yield [client.presenting(token) for token in tokens]
        client.channel.close()


@pytest.fixture
def writers(clients: list[Client]) -> Writers:
    return Writers(*clients, f"ns-{uuid4().hex[:8]}")


def test_the_less_trusted_does_not_end_what_is_trusted_more(writers: Writers) -> None:
    known = writers.save(writers.ada, ROME).memory
    saved = writers.save(writers.mallory, PARIS)
    assert (saved.outcome, list(saved.superseded), saved.existing.id) == (SAVED, [], known.id)
    assert saved.reason.startswith("a more trusted memory stays valid: ")
    assert writers.hold() == [PARIS, ROME]
    # Nor does it lower its trust: the fact was not written again.
    trusted = writers.ada.call("ListMemories", namespace=writers.namespace, min_trust=0.9)
    assert [(m.id, m.version) for m in trusted.memories] == [(known.id, 1)]


def test_the_more_trusted_ends_what_is_trusted_less_or_alike(writers: Writers) -> None:
    writers.save(writers.mallory, PARIS)
    writers.save(writers.ada, ROME)
    assert writers.hold() == [ROME]
    assert writers.save(writers.ada, OSLO).outcome == SUPERSEDED
    assert writers.hold() == [OSLO]


def test_each_ends_those_that_it_may(writers: Writers) -> None:
    known = writers.save(writers.ada, ROME).memory
    less = writers.save(writers.mallory, PARIS).memory
    saved = writers.save(writers.trudy, OSLO)
    assert (saved.outcome, [m.id for m in saved.superseded]) == (SUPERSEDED, [less.id])
    assert saved.existing.id == known.id and list(saved.memory.supersedes) == [less.id]
    assert writers.hold() == [OSLO, ROME]


def test_what_is_known_from_who_is_trusted_less_can_be_said_again(writers: Writers) -> None:
    less = writers.save(writers.mallory, ROME).memory
    assert writers.save(writers.mallory, ROME).outcome == DUPLICATE
    saved = writers.save(writers.ada, "User lives in Rome.")
    assert (saved.outcome, saved.existing.id) == (SUPERSEDED, less.id)
    (ended,) = saved.superseded
    assert (ended.id, ended.status, ended.superseded_by) == (
        less.id,
        pb.MEMORY_STATUS_SUPERSEDED,
        saved.memory.id,
    )
    assert writers.hold() == writers.hold(min_trust=0.9) == ["User lives in Rome."]
    assert writers.save(writers.mallory, ROME).outcome == DUPLICATE
    assert writers.hold(include_history=True, min_trust=0.9) == ["User lives in Rome."]


def test_what_is_said_again_may_have_begun_before(writers: Writers) -> None:
    since = datetime.now(UTC) - timedelta(days=900)
    less = writers.save(writers.mallory, ROME).memory
    saved = writers.save(writers.ada, ROME, valid_from_time=since)
    (ended,) = saved.superseded
    assert ended.id == less.id and ended.valid_until_time.ToDatetime() > less.valid_from_time.ToDatetime()
    assert writers.hold() == [ROME]
    assert saved.memory.status == pb.MEMORY_STATUS_ACTIVE


def test_a_trusted_fact_from_before_is_not_ended_by_a_later_one_that_is_trusted_less(
    writers: Writers,
) -> None:
    since = datetime.now(UTC) - timedelta(days=900)
    writers.save(writers.mallory, PARIS)
    saved = writers.save(writers.ada, ROME, valid_from_time=since)
    assert saved.memory.status == pb.MEMORY_STATUS_ACTIVE and not saved.memory.HasField("valid_until_time")
    assert writers.hold() == [PARIS, ROME] and writers.hold(min_trust=0.9) == [ROME]
    # Facts of equal trust do end it.
    assert (
        writers.save(writers.ada, OSLO, valid_from_time=since - timedelta(1)).memory.status
        != saved.memory.status
    )


def test_who_asks_to_refuse_is_refused_whoever_is_trusted(writers: Writers) -> None:
    writers.save(writers.ada, ROME)
    for client in (writers.mallory, writers.ada):
        refused = writers.save(client, PARIS, on_contradiction=pb.ON_CONTRADICTION_REFUSE)
        assert refused.outcome == CONTRADICTION
    assert writers.hold() == [ROME]


def extract(writers: Writers, client: Client, text: str, **fields: Any) -> list[pb.ExtractedMemory]:
    """Extract facts from one message of the user."""
    answer = client.call("ExtractMemories", namespace=writers.namespace, messages=[message(text)], **fields)
    return list(answer.results)


def test_what_is_extracted_is_trusted_as_who_extracts_it(writers: Writers) -> None:
    writers.save(writers.ada, ROME)
    (found,) = extract(writers, writers.mallory, "I live in Paris.")
    assert found.outcome == SAVED
    assert writers.hold(min_trust=0.9) == [ROME]
    (found,) = extract(writers, writers.ada, "I live in Oslo.")
    assert found.outcome == SUPERSEDED
    assert writers.hold() == [OSLO]


def test_what_was_recalled_gets_no_trust_by_being_repeated(writers: Writers) -> None:
    less = writers.save(writers.mallory, PARIS).memory
    (echo,) = extract(writers, writers.ada, "I live in Paris.", recalled_memory_ids=[less.id])
    assert (echo.outcome, echo.existing.id) == (RECALLED, less.id)
    assert writers.hold(min_trust=0.9) == []
    (said,) = extract(writers, writers.ada, "I live in Paris.")
    assert said.outcome == SUPERSEDED
    assert writers.hold(min_trust=0.9) == [PARIS]


def test_only_what_is_trusted_alike_is_consolidated(writers: Writers) -> None:
    known = writers.save(writers.ada, ROME).memory
    writers.save(writers.mallory, PARIS)
    asked = {"namespace": writers.namespace, "similarity_threshold": 0.1}
    assert not writers.ada.call("ConsolidateMemories", **asked).consolidations
    writers.save(writers.ada, OSLO, on_contradiction=pb.ON_CONTRADICTION_KEEP_BOTH)
    (done,) = writers.ada.call("ConsolidateMemories", **asked).consolidations
    assert known.id in [m.id for m in done.sources]
    assert writers.hold() == [OSLO, PARIS]
