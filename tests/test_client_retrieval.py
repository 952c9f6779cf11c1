"""Retrieval options of the Python client; each test runs with both clients."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from both_clients import connected
from memory_client import InvalidArgument, MemoryItem, ScoreWeights
from server_process import ServerProcess

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest, server: ServerProcess, namespace: str) -> Iterator[Any]:
    yield from connected(server.address, namespace, request.param)


def ids(results: Any) -> list[str]:
    return [result.item.id for result in results]


def test_a_filter_chooses_items_and_a_mistake_is_told_with_its_place(client: Any) -> None:
    client.add("Ada drinks tea", id="tea", labels={"topic": "drinks"}, metadata={"draft": True})
    client.add("Ada drinks coffee", id="coffee", labels={"topic": "drinks"})
    expression = 'labels.topic = "drinks" AND NOT metadata.draft = true'
    assert (
        ids(client.retrieve(filter=expression))
        == ids(client.retrieve("tea", filter=expression))
        == ["coffee"]
    )
    assert [item.id for item in client.list_items(filter="metadata.draft = true")] == ["tea"]
    with pytest.raises(InvalidArgument) as caught:
        client.retrieve(filter="labels.topic = ")
    assert (caught.value.field, caught.value.metadata["column"]) == ("options.filter", "16")


def test_weights_decide_what_is_best(client: Any) -> None:
    client.batch_add(
        [
            MemoryItem(content="a heron", id="weighty", importance=1.0, create_time=NOON - 14 * DAY),
            MemoryItem(content="a heron", id="recent", importance=0.0, create_time=NOON - 7 * DAY),
        ]
    )
    assert ids(client.retrieve("heron", weights=ScoreWeights(importance=1))) == ["weighty", "recent"]
    by_age = ScoreWeights(lexical=0, vector=0, recency=1)
    aged = client.retrieve("heron", weights=by_age, now=NOON, explain=True)
    assert [(result.item.id, round(result.score, 9)) for result in aged] == [
        ("recent", 0.5),
        ("weighty", 0.25),
    ]
    assert "recency" in {share.channel for share in aged[0].explanation}
    for half_life in (DAY, 86_400):
        slower = ScoreWeights(lexical=0, vector=0, recency=1, recency_half_life=half_life)
        assert client.retrieve("heron", weights=slower, now=NOON)[0].score == pytest.approx(0.5**7)
    with pytest.raises(InvalidArgument) as caught:
        client.retrieve("heron", weights=ScoreWeights(usage=-1))
    assert caught.value.field == "options.weights.usage"


def test_what_was_used_is_counted_where_that_is_asked_for(client: Any) -> None:
    client.add("a heron", id="used")
    client.add("a heron", id="unused")
    by_use = ScoreWeights(lexical=0, vector=0, usage=1)
    client.retrieve("heron", filter="id = used")
    assert {result.score for result in client.retrieve("heron", weights=by_use)} == {0}
    client.retrieve("heron", filter="id = used", record_usage=True)
    found = client.retrieve("heron", weights=by_use)
    assert [(result.item.id, result.score) for result in found] == [("used", 0.25), ("unused", 0)]


def test_neighbours_come_with_a_result_and_count_in_the_budget(client: Any) -> None:
    for text in ("We sat by the river", "A heron came", "It flew off"):
        client.add(text, session_id="walk")
    (found,) = client.retrieve("heron", mode="lexical", limit=1, context_window=1)
    assert [item.text for item in (*found.before, found.item, *found.after)] == [
        "We sat by the river",
        "A heron came",
        "It flew off",
    ]
    alone = client.retrieve("heron", mode="lexical", limit=1, max_tokens=50)
    together = client.retrieve("heron", mode="lexical", limit=1, max_tokens=50, context_window=1)
    assert 0 < alone.token_count < together.token_count <= 50
    assert client.retrieve(context_window=1).token_count == 0
    paged = client.retrieve(limit=-1, max_tokens=50, page_size=1)
    assert len(paged) == 3 and paged.token_count == client.retrieve(limit=-1, max_tokens=50).token_count


def test_a_server_without_a_reranker_says_so(client: Any) -> None:
    client.add("a heron")
    assert client.info().reranker == "none"
    assert [entry.reason for entry in client.retrieve("heron", rerank=True).degraded] == ["NO_RERANKER"]
    with pytest.raises(InvalidArgument) as caught:
        client.retrieve(rerank=True)
    assert caught.value.field == "options.rerank"


def test_importance_is_kept_changed_and_unsaid(client: Any, namespace: str) -> None:
    added = client.add("a heron", importance=0.0)
    assert added.importance == client.get(added.id).importance == 0.0
    assert client.update(added.id, importance=0.75).importance == 0.75
    assert client.update(added.id, labels={"a": "b"}).importance == 0.75
    assert client.update(added.id, importance=None).importance is None
    client.update(added.id, importance=1)
    copy = client.namespace(namespace + "/copy")
    copy.import_items(list(client.export()))
    assert copy.get(added.id).importance == 1.0
    with pytest.raises(InvalidArgument) as caught:
        client.add("x", importance=1.5)
    assert caught.value.field == "item.importance"
