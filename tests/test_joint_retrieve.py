"""Retrieve over several namespaces: one order, as if one namespace had all items; pages; counted uses."""

from __future__ import annotations

import random

import pytest

from faults.scale import rounds
from grpc_api import Api
from memory_service.v1 import memory_pb2
from server_process import ServerProcess

_COUNT = 16
_WORDS = [f"word{n}" for n in range(2000)]
_LEXICAL = memory_pb2.RETRIEVE_MODE_LEXICAL


def _text(chance: random.Random) -> str:
    """Return a text with common and rare words, as in a language."""
    return " ".join(_WORDS[int(len(_WORDS) * chance.random() ** 3)] for _ in range(chance.randint(5, 25)))


@pytest.fixture(scope="module")
def filled(server: ServerProcess) -> Api:
    """An API whose namespaces joint/N together have the items of joint/whole."""
    api, chance = Api.connect(server.address), random.Random(3)
    for part in range(_COUNT):
        for start in range(0, rounds(50, 1000), 500):
            items = [
                memory_pb2.MemoryItem(
                    id=f"{part}-{n}", text=_text(chance), session_id=f"session-{part}-{n // 20}"
                )
                for n in range(start, min(start + 500, rounds(50, 1000)))
            ]
            for namespace in (f"joint/{part}", "joint/whole"):
                api.memory.BatchAdd(memory_pb2.BatchAddRequest(namespace=namespace, items=items))
    return api


def _asked(query: str, *, joint: bool, **options: object) -> memory_pb2.RetrieveRequest:
    wanted = memory_pb2.RetrieveOptions(query_text=query, **options)  # type: ignore[arg-type]
    if not joint:
        return memory_pb2.RetrieveRequest(namespace="joint/whole", options=wanted)
    names = [f"joint/{n}" for n in range(_COUNT)]
    return memory_pb2.RetrieveRequest(namespace=names[0], namespaces=names, options=wanted)


def test_the_order_is_that_of_one_namespace_that_holds_all(filled: Api) -> None:
    chance = random.Random(4)
    for _ in range(rounds(20, 200)):
        query = _text(chance)
        found = filled.memory.Retrieve(_asked(query, joint=True)).results
        expected = filled.memory.Retrieve(_asked(query, joint=False)).results
        assert [result.score for result in found] == pytest.approx([result.score for result in expected])
        assert [result.relevance for result in found] == pytest.approx(
            [result.relevance for result in expected], abs=1e-3
        )
        # Equal scores have no order.
        assert _ranks(found) == _ranks(expected)
        assert all(result.namespace == f"joint/{result.item.id.split('-')[0]}" for result in found)


def _ranks(results: object) -> list[set[str]]:
    """Return the ids by score, without the last score: more items may have it."""
    by_score: dict[float, set[str]] = {}
    for result in results:  # type: ignore[attr-defined]
        by_score.setdefault(round(result.score, 9), set()).add(result.item.id)
    return list(by_score.values())[:-1]


def test_pages_join_to_the_whole_answer(filled: Api) -> None:
    request = _asked("word1 word20 word300", joint=True, limit=40)
    whole = [(r.namespace, r.item.id, r.score) for r in filled.memory.Retrieve(request).results]
    request.options.page_size = 7
    pages: list[tuple[str, str, float]] = []
    while True:
        page = filled.memory.Retrieve(request)
        pages += [(r.namespace, r.item.id, r.score) for r in page.results]
        request.options.page_token = page.next_page_token
        if not page.next_page_token:
            break
    assert pages == whole and len(whole) == 40


def test_a_page_token_is_for_the_same_namespaces_only(filled: Api) -> None:
    request = _asked("word1 word20", joint=True, page_size=3)
    request.options.page_token = filled.memory.Retrieve(request).next_page_token
    del request.namespaces[-1]
    with pytest.raises(Exception, match="page_token"):
        filled.memory.Retrieve(request)


def test_uses_are_counted_in_each_namespace(filled: Api) -> None:
    query = _asked("word7 word77", joint=True, mode=_LEXICAL, record_usage=True)
    used = filled.memory.Retrieve(query).results[0]
    alone = memory_pb2.RetrieveRequest(namespace=used.namespace)
    alone.options.query_text, alone.options.explain = "word7 word77", True
    alone.options.weights.usage = 1
    found = {result.item.id: result for result in filled.memory.Retrieve(alone).results}
    shares = {share.channel: share.raw_score for share in found[used.item.id].explanation.contributions}
    assert shares["usage"] == pytest.approx(0.25)


def test_vectors_of_another_model_are_searched_by_words_only(filled: Api) -> None:
    foreign = memory_pb2.MemoryItem(id="foreign", text="word7 word77")
    foreign.embedding.values.extend([1, 0, 0])
    filled.memory.Add(memory_pb2.AddRequest(namespace="joint/foreign", item=foreign))
    request = _asked("word7 word77", joint=True, limit=50)
    request.namespaces[-1] = "joint/foreign"
    answer = filled.memory.Retrieve(request)
    assert "foreign" in {result.item.id for result in answer.results}
    assert [each.reason for each in answer.degraded] == [memory_pb2.DEGRADATION_REASON_FOREIGN_VECTORS]
