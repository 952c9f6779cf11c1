"""Retrieve: by recency, words, vector and both; filtered, paged, scored and explained."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from grpc_api import Api, Connect, refusal, texts_of
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

NO_EMBEDDER = pb.DEGRADATION_REASON_NO_EMBEDDER
FOREIGN_VECTORS = pb.DEGRADATION_REASON_FOREIGN_VECTORS

SENTENCES = [
    "Ada drinks green tea every morning",
    "The quarterly revenue grew by nine percent",
    "A heron waits for fish beside the river",
    "The train to Lisbon leaves from platform four",
    "Otters sleep holding hands so they do not drift apart",
    "Revenue from tickets to Lisbon fell in winter",
]


def vector(*values: float) -> pb.Embedding:
    return pb.Embedding(values=values)


def pages(api: Api, namespace: str, **options: Any) -> Iterator[pb.RetrieveResponse]:
    token = ""
    while True:
        response = api.retrieve(namespace, page_token=token, **options)
        yield response
        token = response.next_page_token
        if not token:
            return


def reasons(response: pb.RetrieveResponse | pb.AddResponse | pb.BatchAddResponse) -> list[int]:
    return [degradation.reason for degradation in response.degraded]


# By recency


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, range(2, 12)),
        (0, []),
        (1, [11]),
        (3, [9, 10, 11]),
        (12, range(12)),
        (99, range(12)),
        (-1, range(12)),
    ],
)
def test_without_a_query_the_newest_come_the_oldest_of_them_first(
    api: Api, namespace: str, limit: int | None, expected: list[int]
) -> None:
    api.add_texts(namespace, *map(str, range(12)))
    options = {} if limit is None else {"limit": limit}
    assert api.found(namespace, **options) == [str(i) for i in expected]


def test_without_options_the_newest_ten_come(api: Api, namespace: str) -> None:
    api.add_texts(namespace, *map(str, range(12)))
    response = api.memory.Retrieve(pb.RetrieveRequest(namespace=namespace))
    assert texts_of(result.item for result in response.results) == [str(i) for i in range(2, 12)]
    assert {result.score for result in response.results} == {0.0}
    assert response.revision == 12


@pytest.mark.parametrize("query", ["", "heron"])
def test_a_namespace_that_was_never_written_to_is_empty(api: Api, namespace: str, query: str) -> None:
    response = api.retrieve(namespace, query_text=query)
    assert len(response.results) == 0
    assert (response.revision, response.next_page_token) == (0, "")


# Paging


@pytest.mark.parametrize("limit", [-1, 20])
@pytest.mark.parametrize("page_size", [1, 7, 20, 25, 1000])
@pytest.mark.parametrize(
    "query",
    [
        {},
        {"query_text": "heron"},
        {"query_text": "heron", "mode": pb.RETRIEVE_MODE_LEXICAL},
        {"query_text": "heron", "mode": pb.RETRIEVE_MODE_VECTOR},
    ],
    ids=["recency", "hybrid", "lexical", "vector"],
)
def test_pages_add_up_to_the_whole(
    api: Api, namespace: str, query: dict[str, Any], page_size: int, limit: int
) -> None:
    # Different lengths give different scores, so that the order is unique.
    api.add_texts(namespace, *("heron " + " ".join(f"w{n}" for n in range(i)) for i in range(25)))
    whole = api.found(namespace, limit=limit, **query)
    paged = list(pages(api, namespace, limit=limit, page_size=page_size, **query))
    assert all(len(page.results) <= page_size for page in paged)
    assert [result.item.text for page in paged for result in page.results] == whole
    assert len(set(whole)) == (25 if limit == -1 else 20)


# Filters


def filtered_namespace(api: Api, namespace: str) -> None:
    for i in range(6):
        api.add(
            namespace,
            text=f"heron {i}",
            session_id="even" if i % 2 == 0 else "odd",
            labels={"color": "red" if i < 3 else "blue", "n": str(i)},
            create_time=Timestamp(seconds=100 + i),
        )


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"query_text": "heron"},
        {"query_text": "heron", "mode": pb.RETRIEVE_MODE_LEXICAL},
        {"query_text": "heron", "mode": pb.RETRIEVE_MODE_VECTOR},
    ],
    ids=["recency", "hybrid", "lexical", "vector"],
)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"session_id": "odd"}, "135"),
        ({"session_id": "od"}, ""),
        ({"labels": {"color": "red"}}, "012"),
        ({"labels": {"color": "red", "n": "1"}}, "1"),
        ({"labels": {"color": "red", "n": "4"}}, ""),
        ({"labels": {"n": ""}}, ""),
        ({"labels": {"missing": "x"}}, ""),
        ({"start_time": Timestamp(seconds=104)}, "45"),
        ({"end_time": Timestamp(seconds=102)}, "01"),
        ({"start_time": Timestamp(seconds=101), "end_time": Timestamp(seconds=104)}, "123"),
        ({"start_time": Timestamp(seconds=102), "end_time": Timestamp(seconds=102)}, ""),
        ({"session_id": "even", "labels": {"color": "blue"}, "start_time": Timestamp(seconds=1)}, "4"),
    ],
    ids=str,
)
def test_filters_hold_with_and_without_a_query(
    api: Api, namespace: str, query: dict[str, Any], options: dict[str, Any], expected: str
) -> None:
    filtered_namespace(api, namespace)
    found = api.found(namespace, **query, **options)
    assert sorted(found) == [f"heron {i}" for i in expected]


def test_a_filter_does_not_use_up_the_limit(api: Api, namespace: str) -> None:
    api.add_texts(namespace, *(f"heron {i}" for i in range(30)))
    api.add(namespace, text="a few words more about the heron and much else", labels={"rare": "1"})
    api.add_texts(namespace, *(f"heron {i}" for i in range(30)))
    for query in ({}, {"query_text": "heron"}):
        found = api.found(namespace, limit=1, labels={"rare": "1"}, **query)
        assert found == ["a few words more about the heron and much else"]


# By words and vectors


@pytest.mark.parametrize(
    "mode", [pb.RETRIEVE_MODE_UNSPECIFIED, pb.RETRIEVE_MODE_HYBRID, pb.RETRIEVE_MODE_VECTOR]
)
@pytest.mark.parametrize(
    ("query", "best"),
    [("bird catching fish in water", 2), ("what does Ada drink", 0), ("company income growth", 1)],
)
def test_the_best_comes_first(api: Api, namespace: str, mode: int, query: str, best: int) -> None:
    api.add_texts(namespace, *SENTENCES)
    results = api.retrieve(namespace, query_text=query, mode=mode).results
    assert results[0].item.text == SENTENCES[best]
    scores = [result.score for result in results]
    assert scores == sorted(scores, reverse=True)


def test_lexical_search_finds_the_words_and_nothing_else(api: Api, namespace: str) -> None:
    api.add_texts(namespace, *SENTENCES)
    response = api.retrieve(namespace, query_text="revenue Lisbon", mode=pb.RETRIEVE_MODE_LEXICAL)
    found = texts_of(result.item for result in response.results)
    assert found[0] == SENTENCES[5]
    assert sorted(found) == sorted([SENTENCES[1], SENTENCES[3], SENTENCES[5]])
    assert all(result.score > 0 for result in response.results)
    assert reasons(response) == []


def test_every_kind_of_content_is_found_by_its_words(api: Api, namespace: str) -> None:
    parts = [pb.Part(text="first"), pb.Part(text="a pelican")]
    result = pb.ToolCallResult(name="birds")
    result.result.struct_value.update({"seen": ["an albatross"]})
    api.add(namespace, id="message", chat_message=pb.ChatMessage(role=pb.ROLE_USER, parts=parts))
    api.add(namespace, id="result", tool_call_result=result)
    data = pb.MemoryItem(id="data")
    data.data.update({"note": {"bird": "a cormorant"}})
    api.memory.Add(pb.AddRequest(namespace=namespace, item=data))
    for word, expected in {"pelican": "message", "albatross": "result", "cormorant": "data"}.items():
        found = api.retrieve(namespace, query_text=word, mode=pb.RETRIEVE_MODE_LEXICAL).results
        assert [f.item.id for f in found] == [expected]


def test_vector_scores_are_cosine_similarities(api: Api, namespace: str) -> None:
    vectors = {"same": (2, 0), "near": (3, 3), "right angle": (0, 5), "opposite": (-1, 0)}
    for text, values in vectors.items():
        api.add(namespace, text=text, embedding=vector(*values))
    results = api.retrieve(namespace, query_embedding=vector(7, 0)).results
    assert texts_of(result.item for result in results) == list(vectors)
    scores = [result.score for result in results]
    assert scores == pytest.approx([1.0, math.sqrt(0.5), 0.0, -1.0], abs=1e-5)
    assert all(-1.0 <= score <= 1.0 for score in scores)


def test_vectors_are_read_in_whatever_form_they_are_encoded(api: Api, namespace: str) -> None:
    near, far = struct.pack("<4f", 1, 0, 0.5, 0), struct.pack("<4f", 0, 1, 0, 0.5)
    for text, values in (("near", near), ("far", far)):
        api.add(namespace, text=text, embedding=pb.Embedding.FromString(b"\n\x10" + values))
    forms = {
        "as one block": b"\n\x10" + near,
        "as two": b"\n\x08" + near[:8] + b"\n\x08" + near[8:],
        "one by one": b"".join(b"\r" + near[at : at + 4] for at in range(0, 16, 4)),
        "with a field of later versions": b"\n\x10" + near + b"\x7a\x02hi",
    }
    for form, encoded in forms.items():
        found = api.retrieve(namespace, query_embedding=pb.Embedding.FromString(encoded))
        assert [result.item.text for result in found.results] == ["near", "far"], form
        assert found.results[0].score == pytest.approx(1), form


def test_a_text_and_a_vector_are_searched_together(api: Api, namespace: str) -> None:
    api.add(namespace, text="heron", embedding=vector(0, 1))
    api.add(namespace, text="otter", embedding=vector(1, 0))
    api.add(namespace, text="heron and otter", embedding=vector(1, 0.2))
    response = api.retrieve(namespace, query_text="heron", query_embedding=vector(1, 0.1))
    assert response.results[0].item.text == "heron and otter"
    assert {result.item.text for result in response.results} == {"heron", "otter", "heron and otter"}
    assert reasons(response) == []


def test_vectors_are_left_out_unless_asked_for(api: Api, namespace: str) -> None:
    api.add(namespace, text="a", embedding=vector(0.25, 0.5))
    for query in ({}, {"query_embedding": vector(1, 0)}):
        plain = api.retrieve(namespace, **query).results[0].item
        full = api.retrieve(namespace, include_embedding=True, **query).results[0].item
        assert not plain.HasField("embedding")
        assert full.embedding == vector(0.25, 0.5)


def test_the_server_embeds_what_comes_without_a_vector(api: Api, namespace: str) -> None:
    item = api.add(namespace, text=SENTENCES[0])
    embedding = api.get(namespace, item.id, include_embedding=True).embedding
    assert len(embedding.values) == api.stats(namespace).embedding_dimension > 0
    best = api.retrieve(namespace, query_embedding=embedding).results[0]
    assert best.score == pytest.approx(1.0, abs=1e-5)


# Scores


@pytest.mark.parametrize(
    "query",
    [
        {"query_text": "revenue from Lisbon tea"},
        {"query_text": "revenue from Lisbon tea", "mode": pb.RETRIEVE_MODE_LEXICAL},
        {"query_text": "revenue from Lisbon tea", "mode": pb.RETRIEVE_MODE_VECTOR},
    ],
    ids=["hybrid", "lexical", "vector"],
)
def test_contributions_add_up_to_the_score(api: Api, namespace: str, query: dict[str, Any]) -> None:
    api.add_texts(namespace, *SENTENCES)
    hybrid = "mode" not in query
    for result in api.retrieve(namespace, explain=True, **query).results:
        contributions = result.explanation.contributions
        assert contributions
        assert sum(c.contribution for c in contributions) == pytest.approx(result.score, abs=1e-9)
        for c in contributions:
            assert c.channel in {"vector", "lexical"}
            share = c.raw_score / c.scale * c.weight if c.scale else 0.0
            assert c.contribution == pytest.approx(max(share, 0.0) if hybrid else share, abs=1e-9)
        assert not hybrid or 0 <= result.score <= 1 + 1e-9


def test_there_is_no_explanation_unless_asked_for(api: Api, namespace: str) -> None:
    api.add_texts(namespace, *SENTENCES)
    results = api.retrieve(namespace, query_text="tea").results
    assert not any(result.HasField("explanation") for result in results)


@pytest.mark.parametrize(
    "query",
    [
        {"query_text": "revenue from Lisbon tea"},
        {"query_text": "revenue from Lisbon tea", "mode": pb.RETRIEVE_MODE_LEXICAL},
        {"query_text": "revenue from Lisbon tea", "mode": pb.RETRIEVE_MODE_VECTOR},
    ],
    ids=["hybrid", "lexical", "vector"],
)
def test_min_score_leaves_out_what_is_below_it(api: Api, namespace: str, query: dict[str, Any]) -> None:
    api.add_texts(namespace, *SENTENCES)
    scored = [(result.score, result.item.text) for result in api.retrieve(namespace, **query).results]
    for bound in (scored[1][0], scored[0][0] + 0.01, -2.0):
        expected = [text for score, text in scored if score >= bound]
        assert api.found(namespace, min_score=bound, **query) == expected


# Written items are found immediately


def test_what_was_added_is_found_at_once_by_words_and_by_vector(
    graph_server: ServerProcess, connect: Connect, namespace: str
) -> None:
    # The namespace grows from exact search to its first graph and through several merges.
    api = connect(graph_server)
    for i in range(200):
        angle = i * 0.618
        embedding = vector(math.cos(angle), math.sin(angle), 0.01 * i)
        api.add(namespace, text=f"uniqueword{i}", embedding=embedding)
        by_word = api.found(namespace, query_text=f"uniqueword{i}", mode=pb.RETRIEVE_MODE_LEXICAL, limit=1)
        by_vector = api.found(namespace, query_embedding=embedding, limit=1)
        assert by_word == by_vector == [f"uniqueword{i}"]
    assert api.stats(namespace).index.graph_count > 0


def test_writers_at_once_each_find_their_own_writes(api: Api, namespace: str) -> None:
    def write_and_look(thread: int) -> None:
        for i in range(10):
            word = f"word{thread}x{i}"
            item = api.add(namespace, text=word)
            embedding = api.get(namespace, item.id, include_embedding=True).embedding
            lexical = pb.RETRIEVE_MODE_LEXICAL
            assert api.found(namespace, query_text=word, mode=lexical, limit=1) == [word]
            assert word in api.found(namespace, query_embedding=embedding)
            assert api.found(namespace, limit=80).count(word) == 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write_and_look, range(8)))


# Missing channels are reported


def test_a_text_query_to_client_vectors_is_answered_by_words_and_says_so(api: Api, namespace: str) -> None:
    api.add(namespace, text="a heron", embedding=vector(1, 0))
    item = pb.MemoryItem(text="an otter")
    assert reasons(api.memory.Add(pb.AddRequest(namespace=namespace, item=item))) == [FOREIGN_VECTORS]
    response = api.retrieve(namespace, query_text="heron or otter")
    assert {result.item.text for result in response.results} == {"a heron", "an otter"}
    assert reasons(response) == [FOREIGN_VECTORS]
    assert api.found(namespace, query_embedding=vector(1, 0)) == ["a heron"]
    assert (api.stats(namespace).embedded_count, api.stats(namespace).item_count) == (1, 2)


def test_a_text_cannot_be_searched_by_vector_among_client_vectors(api: Api, namespace: str) -> None:
    api.add(namespace, text="a heron", embedding=vector(1, 0))
    options = pb.RetrieveOptions(query_text="heron", mode=pb.RETRIEVE_MODE_VECTOR)
    error = refusal(api.memory.Retrieve, pb.RetrieveRequest(namespace=namespace, options=options))
    assert (error.code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "EMBEDDER_REQUIRED")


@pytest.mark.parametrize("store", ["hnsw", "memory"])
def test_without_an_embedder_words_are_searched_and_the_answer_says_so(
    tmp_path: Path, connect: Connect, namespace: str, store: str
) -> None:
    with ServerProcess(tmp_path, flags=["--store", store, "--embedder", "none"]) as server:
        api = connect(server)
        added = api.memory.Add(pb.AddRequest(namespace=namespace, item=pb.MemoryItem(text=SENTENCES[2])))
        assert reasons(added) == [NO_EMBEDDER]
        assert reasons(api.add_texts(namespace, *SENTENCES)) == [NO_EMBEDDER]
        response = api.retrieve(namespace, query_text="Lisbon")
        assert {r.item.text for r in response.results} == {SENTENCES[3], SENTENCES[5]}
        assert reasons(response) == [NO_EMBEDDER]
        assert reasons(api.retrieve(namespace)) == []
        assert reasons(api.retrieve(namespace, query_text="tea", mode=pb.RETRIEVE_MODE_LEXICAL)) == []
        options = pb.RetrieveOptions(query_text="tea", mode=pb.RETRIEVE_MODE_VECTOR)
        error = refusal(api.memory.Retrieve, pb.RetrieveRequest(namespace=namespace, options=options))
        assert error.reason == "EMBEDDER_REQUIRED"


def test_without_an_embedder_client_vectors_are_searched_in_full(
    tmp_path: Path, connect: Connect, namespace: str
) -> None:
    with ServerProcess(tmp_path, flags=["--embedder", "none"]) as server:
        api = connect(server)
        item = pb.MemoryItem(text="heron", embedding=vector(1, 0))
        assert reasons(api.memory.Add(pb.AddRequest(namespace=namespace, item=item))) == []
        response = api.retrieve(namespace, query_text="heron", query_embedding=vector(1, 0))
        assert [(r.item.text, reasons(response)) for r in response.results] == [("heron", [])]
