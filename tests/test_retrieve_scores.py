"""Scores through the API: weights, importance, use, times and phrases in the query."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from grpc_api import Api, Connect, refusal
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

NOW = datetime(2023, 8, 15, 12, tzinfo=UTC)
DAY = timedelta(days=1)
MODES = {
    "hybrid": pb.RETRIEVE_MODE_HYBRID,
    "lexical": pb.RETRIEVE_MODE_LEXICAL,
    "vector": pb.RETRIEVE_MODE_VECTOR,
}


def stamp(time: datetime) -> Timestamp:
    found = Timestamp()
    found.FromDatetime(time)
    return found


def only(**weights: Any) -> pb.ScoreWeights:
    """Return these weights, and none for words and vectors."""
    return pb.ScoreWeights(**{"lexical": 0.0, "vector": 0.0, **weights})


def weighed(api: Api, namespace: str, query: str = "heron", **options: Any) -> dict[str, float]:
    """Return the scores by id, in order, after checking that each explanation adds up to its score."""
    options = {"now": stamp(NOW), "explain": True, "limit": 100, **options}
    scores = {}
    for result in api.retrieve(namespace, query_text=query, **options).results:
        shares = result.explanation.contributions
        assert sum(share.contribution for share in shares) == pytest.approx(result.score, abs=1e-9)
        scores[result.item.id] = result.score
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    return scores


def channels(api: Api, namespace: str, query: str, **options: Any) -> dict[str, set[str]]:
    """Return the channels that contribute to each item, by id."""
    options = {"now": stamp(NOW), "explain": True, "limit": 100, **options}
    return {
        result.item.id: {c.channel for c in result.explanation.contributions if c.contribution}
        for result in api.retrieve(namespace, query_text=query, **options).results
    }


# Weights


def test_recency_halves_with_each_half_life_from_now(api: Api, namespace: str) -> None:
    ages = {"now": 0, "one": 1, "two": 2, "future": -30}
    for name, age in ages.items():
        api.add(namespace, id=name, text="a heron", create_time=stamp(NOW - age * DAY))
    weights = only(recency=2.0, recency_half_life=Duration(seconds=86_400))
    expected = {"now": 1.0, "one": 0.5, "two": 0.25, "future": 1.0}
    for mode in MODES.values():
        assert weighed(api, namespace, weights=weights, mode=mode) == pytest.approx(expected)
    later = weighed(api, namespace, weights=weights, now=stamp(NOW + DAY))
    assert later == pytest.approx({"now": 0.5, "one": 0.25, "two": 0.125, "future": 1.0})
    week = weighed(api, namespace, weights=only(recency=1.0), now=stamp(NOW + 6 * DAY))
    assert week["one"] == pytest.approx(0.5)


def test_importance_counts_and_one_half_where_none_was_given(api: Api, namespace: str) -> None:
    for name, importance in {"high": 1.0, "low": 0.0, "third": 1 / 3}.items():
        api.add(namespace, id=name, text="a heron", importance=importance)
    api.add(namespace, id="unset", text="a heron")
    expected = {"high": 1.0, "unset": 0.5, "third": 1 / 3, "low": 0.0}
    assert weighed(api, namespace, weights=only(importance=5.0)) == pytest.approx(expected)


@pytest.mark.parametrize("mode", MODES)
def test_weights_of_items_make_a_score_of_0_to_1_in_every_mode(api: Api, namespace: str, mode: str) -> None:
    texts = ["heron", "a heron by the river", "the otter saw a heron there", "nothing of the kind"]
    for at, text in enumerate(texts):
        api.add(namespace, id=str(at), text=text, importance=at / 4, create_time=stamp(NOW - at * DAY))
    weights = pb.ScoreWeights(recency=0.5, importance=0.25, usage=0.25)
    found = api.retrieve(
        namespace, query_text="heron", mode=MODES[mode], weights=weights, explain=True, now=stamp(NOW)
    ).results
    assert len(found) == (3 if mode == "lexical" else 4)
    own = {"hybrid": {"lexical", "vector"}, "lexical": {"lexical"}, "vector": {"vector"}}[mode]
    for result in found:
        shares = result.explanation.contributions
        assert {share.channel for share in shares} == own | {"recency", "importance", "usage"}
        assert sum(share.weight for share in shares) == pytest.approx(1)
        assert 0 <= result.score <= 1 + 1e-9
        assert sum(share.contribution for share in shares) == pytest.approx(result.score, abs=1e-9)


def test_without_weights_of_items_the_defaults_are_the_defaults(api: Api, namespace: str) -> None:
    for at, text in enumerate(["heron", "a heron by the river", "otter"]):
        api.add(namespace, id=str(at), text=text)
    plain = weighed(api, namespace)
    assert weighed(api, namespace, weights=pb.ScoreWeights()) == plain
    assert weighed(api, namespace, weights=pb.ScoreWeights(lexical=3, vector=1)) == pytest.approx(plain)
    for mode in ("lexical", "vector"):
        alone = weighed(api, namespace, mode=MODES[mode])
        weights = pb.ScoreWeights(lexical=0.1, vector=7)
        assert weighed(api, namespace, mode=MODES[mode], weights=weights) == alone


def test_a_weight_of_zero_leaves_its_channel_out(api: Api, namespace: str) -> None:
    api.add(namespace, id="words", text="heron", embedding=pb.Embedding(values=[0, 1]))
    api.add(namespace, id="vector", text="otter", embedding=pb.Embedding(values=[1, 0]))
    query = {"query_embedding": pb.Embedding(values=[1, 0.0])}
    by_words = weighed(api, namespace, weights=pb.ScoreWeights(lexical=1, vector=0), **query)
    by_vector = weighed(api, namespace, weights=pb.ScoreWeights(lexical=0, vector=1), **query)
    assert by_words == {"words": 1.0, "vector": 0.0}
    assert by_vector == {"vector": 1.0, "words": 0.0}


def test_what_counts_may_lift_what_words_alone_would_not_bring_into_the_limit(
    api: Api, namespace: str
) -> None:
    # All match the words equally well; the important one is the oldest of many.
    api.add(namespace, id="the one", text="a heron", importance=1.0)
    api.memory.BatchAdd(
        pb.BatchAddRequest(namespace=namespace, items=[pb.MemoryItem(text="a heron", importance=0.1)] * 200)
    )
    for mode in MODES.values():
        weights = pb.ScoreWeights(importance=1.0)
        found = api.retrieve(namespace, query_text="heron", mode=mode, weights=weights, limit=1)
        assert [result.item.id for result in found.results] == ["the one"]


# Importance is a field like any other


def test_importance_is_changed_and_cleared_by_update(api: Api, namespace: str) -> None:
    added = api.add(namespace, id="a", text="heron", importance=0.25)
    assert added.importance == 0.25

    def update(paths: list[str], **fields: Any) -> pb.MemoryItem:
        request = pb.UpdateRequest(namespace=namespace, item=pb.MemoryItem(id="a", **fields))
        request.update_mask.paths.extend(paths)
        return api.memory.Update(request).item

    assert update(["labels"], labels={"k": "v"}, importance=0.9).importance == 0.25
    assert update([], importance=0.0).HasField("importance")
    assert api.get(namespace, "a").importance == 0.0
    assert weighed(api, namespace, weights=only(importance=1.0)) == {"a": 0.0}
    assert not update(["importance"]).HasField("importance")
    assert weighed(api, namespace, weights=only(importance=1.0)) == {"a": 0.5}
    assert update(["*"], text="heron", importance=1.0).importance == 1.0
    assert not update(["*"], text="heron").HasField("importance")
    assert api.get(namespace, "a").text == "heron"


def test_importance_is_exported_and_imported_and_use_is_not(api: Api, namespace: str) -> None:
    api.add(namespace, id="a", text="heron", importance=0.75)
    api.retrieve(namespace, record_usage=True)
    exported = [m.item for m in api.memory.Export(pb.ExportRequest(namespace=namespace))]
    assert [item.importance for item in exported] == [0.75]
    copy = f"{namespace}/copy"
    api.memory.Import(iter([pb.ImportRequest(namespace=copy, items=exported)]))
    assert api.get(copy, "a").importance == 0.75
    assert weighed(api, namespace, weights=only(usage=1.0)) == {"a": 0.25}
    assert weighed(api, copy, weights=only(usage=1.0)) == {"a": 0.0}


# Use


def test_what_is_returned_counts_as_used_where_it_is_asked_for(api: Api, namespace: str) -> None:
    for name in ("a", "b"):
        api.add(namespace, id=name, text=f"heron {name}", session_id=name)
    before = api.stats(namespace)
    api.retrieve(namespace, query_text="heron")
    api.retrieve(namespace, query_text="heron", session_id="a", record_usage=True)
    api.retrieve(namespace, limit=1, session_id="a", record_usage=True)
    api.retrieve(namespace, limit=0, record_usage=True)
    assert weighed(api, namespace, weights=only(usage=1.0)) == pytest.approx({"a": 2 / 5, "b": 0.0})
    # It does not change the namespace.
    assert api.stats(namespace).revision == before.revision
    changes = api.memory.Watch(pb.WatchRequest(namespace=namespace, after_revision=0))
    seen = [next(changes).revision for _ in range(3)]
    changes.cancel()
    assert seen == [0, 1, 2]


def test_each_page_counts_its_own_results(api: Api, namespace: str) -> None:
    for at in range(5):
        api.add(namespace, id=str(at), text="heron " + "w " * at)
    options: dict[str, Any] = {"query_text": "heron", "record_usage": True, "page_size": 2, "limit": 5}
    first = api.retrieve(namespace, **options)
    api.retrieve(namespace, page_token=first.next_page_token, **options)
    used = {name for name, score in weighed(api, namespace, weights=only(usage=1.0)).items() if score}
    assert len(used) == 4


def test_use_and_importance_outlive_the_server(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path) as server:
        api = connect(server)
        for name in ("a", "b"):
            api.add("kept", id=name, text="heron", session_id=name, importance=0.2)
        for _ in range(3):
            api.retrieve("kept", session_id="a", record_usage=True)
        # Uses of returned items are counted even if the server crashes.
        server.kill()
    for _ in range(2):
        with ServerProcess(tmp_path) as server:
            api = connect(server)
            weights = only(usage=1.0, importance=1.0)
            assert weighed(api, "kept", weights=weights) == pytest.approx({"a": 0.35, "b": 0.1})
            assert server.terminate() == 0


# Times and phrases in the query


def test_what_is_of_a_time_that_the_query_names_counts_a_tenth_more(api: Api, namespace: str) -> None:
    days = {"may": datetime(2023, 5, 8, tzinfo=UTC), "june": datetime(2023, 6, 8, tzinfo=UTC)}
    for name, day in days.items():
        api.add(namespace, id=name, text="the heron", create_time=stamp(day))
    for query in ("heron last May", "heron in May 2023", "heron on 8 May 2023", "heron of 2023-05-08"):
        found = channels(api, namespace, query)
        assert {name for name, its in found.items() if "time" in its} == {"may"}
        assert list(weighed(api, namespace, query)) == ["may", "june"]
    assert all("time" not in its for its in channels(api, namespace, "heron in April 2023").values())
    assert all("time" not in its for its in channels(api, namespace, "may the heron fly").values())


def test_times_are_relative_to_now(api: Api, namespace: str) -> None:
    api.add(namespace, id="a", text="the heron", create_time=stamp(NOW))
    assert "time" in channels(api, namespace, "heron yesterday", now=stamp(NOW + DAY))["a"]
    assert "time" not in channels(api, namespace, "heron yesterday", now=stamp(NOW))["a"]
    assert "time" not in channels(api, namespace, "heron yesterday", now=None)["a"]
    api.add(namespace, id="b", text="the heron")
    assert "time" in channels(api, namespace, "the heron of this year", now=None)["b"]


def test_what_has_a_quoted_phrase_counts_a_tenth_more(api: Api, namespace: str) -> None:
    texts = {"whole": "a GREEN heron here", "parts": "the heron is green", "longer": "evergreen heron"}
    for name, text in texts.items():
        api.add(namespace, id=name, text=text)
    for query in ('who saw the "green heron"', "who saw the “Green Heron”"):
        found = channels(api, namespace, query)
        assert {name for name, its in found.items() if "phrase" in its} == {"whole"}
        # Times are never a filter.
        assert set(found) == set(texts)
        lexical = channels(api, namespace, query, mode=MODES["lexical"])
        assert "phrase" in lexical["whole"]
        assert channels(api, namespace, query, mode=MODES["vector"])["whole"] == {"vector"}
    assert all("phrase" not in its for its in channels(api, namespace, "the green heron").values())


def test_every_boost_at_once_adds_up_and_stays_at_most_1(api: Api, namespace: str) -> None:
    said = pb.ChatMessage(role=pb.ROLE_USER, name="Ada", parts=[pb.Part(text="a green heron")])
    api.add(namespace, id="all", chat_message=said, create_time=stamp(NOW), importance=1.0)
    api.add(namespace, id="none", text="a heron, green", create_time=stamp(NOW - 900 * DAY))
    query = 'what did Ada say of the "green heron" today?'
    weights = pb.ScoreWeights(recency=0.1, importance=0.1)
    for mode in ("hybrid", "lexical"):
        for options in ({}, {"weights": weights}):
            found = channels(api, namespace, query, mode=MODES[mode], **options)
            assert {"speaker", "time", "phrase"} <= found["all"]
            assert not {"speaker", "time", "phrase"} & found["none"]
            scores = weighed(api, namespace, query, mode=MODES[mode], **options)
            assert list(scores) == ["all", "none"]
            assert (mode, options) == ("lexical", {}) or scores["all"] <= 1 + 1e-9


@pytest.mark.parametrize("quote", ["“", '"'])
def test_long_and_odd_queries_are_answered(api: Api, namespace: str, quote: str) -> None:
    for at in range(50):
        api.add(namespace, id=str(at), text="heron " * 400 + str(at))
    for query in (
        "last May " * 7000,
        f"{quote}heron heron” and " * 2000,
        f'{quote}heron" ' * 4000,
        quote * 60_000,
    ):
        assert api.retrieve(namespace, query_text=query[:60_000].rstrip("“")).revision == 50


# Pages


def test_pages_of_an_unset_now_keep_the_time_of_the_first(api: Api, namespace: str) -> None:
    # With such a short half-life, scores change at every moment.
    for at in range(12):
        api.add(namespace, id=str(at), text="a heron")
    weights = pb.ScoreWeights(recency=1.0, recency_half_life=Duration(nanos=200_000_000))
    options: dict[str, Any] = {"query_text": "heron", "weights": weights, "page_size": 4, "limit": 12}
    first = api.retrieve(namespace, **options)
    second = api.retrieve(namespace, page_token=first.next_page_token, **options)
    third = api.retrieve(namespace, page_token=second.next_page_token, **options)
    again = api.retrieve(namespace, page_token=first.next_page_token, **options)
    assert [r.score for r in again.results] == [r.score for r in second.results]
    results = [r for page in (first, second, third) for r in page.results]
    assert len({r.item.id for r in results}) == 12
    assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)


@pytest.mark.parametrize(
    "change",
    [{"now": stamp(NOW)}, {"weights": pb.ScoreWeights(recency=0.2)}, {"weights": None}],
    ids=["now", "weights", "no weights"],
)
def test_a_page_token_is_for_its_weights_and_its_now(
    api: Api, namespace: str, change: dict[str, Any]
) -> None:
    api.add_texts(namespace, "heron", "a heron", "the heron")
    options: dict[str, Any] = {
        "query_text": "heron", "page_size": 1, "weights": pb.ScoreWeights(recency=0.1),
    }  # fmt: skip
    token = api.retrieve(namespace, **options).next_page_token
    other = pb.RetrieveOptions(**{**options, **change, "page_token": token})
    request = pb.RetrieveRequest(namespace=namespace, options=other)
    assert refusal(api.memory.Retrieve, request).reason == "INVALID_PAGE_TOKEN"
