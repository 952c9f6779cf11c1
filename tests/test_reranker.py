"""Reranking with a real, if tiny, cross-encoder, which fastembed loads and onnxruntime runs."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from grpc_api import Api, Connect, exactly
from memory_service.rerankers.base import CannotLoad, RerankerFailed
from memory_service.rerankers.fastembed import FastembedReranker
from memory_service.v1 import admin_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess
from tiny_cross_encoder import MODEL, log_odds, write_cross_encoder

NO_RERANKER = pb.DEGRADATION_REASON_NO_RERANKER
UNAVAILABLE = pb.DEGRADATION_REASON_RERANKER_UNAVAILABLE
WORDS = ("what", "does", "the", "heron", "eat", "eats", "fish", "a")
QUERY = "what does the heron eat"
# A search by words puts the first on top; the model counts tokens of the query.
SAID = [
    "heron heron heron",
    "the heron eats fish",
    "nobody knows what the heron does eat",
    "a fish",
    "what the heron does",
]


def probability(score: float) -> float:
    return 1 / (1 + math.exp(-score))


def shared(text: str) -> int:
    """Return the number of pairs of equal tokens in the query and a text."""
    known = [word for word in QUERY.split() if word in WORDS]
    return sum(known.count(word) for word in text.split())


def flags(model: Path, *more: str) -> list[str]:
    return ["--reranker", "fastembed", "--reranker-model", MODEL, "--reranker-dir", str(model), *more]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the model."""
    folder = tmp_path_factory.mktemp("model")
    write_cross_encoder(folder, WORDS)
    return folder


@pytest.fixture(scope="module")
def reranking(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A server with a reranker."""
    with ServerProcess(tmp_path_factory.mktemp("data"), flags=flags(model)) as process:
        api = Api.connect(process.address)
        yield api
        api.channel.close()


def scored(response: pb.RetrieveResponse) -> list[tuple[str, float]]:
    return [(result.item.text, result.score) for result in response.results]


def reasons(response: pb.RetrieveResponse) -> list[int]:
    return [each.reason for each in response.degraded]


# Through the API


def test_the_server_tells_its_reranker(reranking: Api, api: Api) -> None:
    info = admin_pb2.GetInfoRequest()
    assert reranking.admin.GetInfo(info).reranker == f"fastembed:{MODEL}"
    assert api.admin.GetInfo(info).reranker == "none"


@pytest.mark.parametrize("mode", ["UNSPECIFIED", "LEXICAL", "VECTOR"])
def test_results_come_in_the_order_of_the_reranker(reranking: Api, namespace: str, mode: str) -> None:
    reranking.add_texts(namespace, *SAID)
    options = {"query_text": QUERY, "mode": f"RETRIEVE_MODE_{mode}"}
    plain = reranking.retrieve(namespace, **options)
    found = reranking.retrieve(namespace, rerank=True, **options)
    assert reasons(plain) == reasons(found) == []
    assert {text for text, _ in scored(found)} == {text for text, _ in scored(plain)}
    expected = sorted((-log_odds(shared(text)), -SAID.index(text), text) for text, _ in scored(plain))
    assert [text for text, _ in scored(found)] == [text for *_, text in expected]
    for text, score in scored(found):
        assert score == pytest.approx(probability(log_odds(shared(text))), abs=1e-6)
    assert scored(found)[0][0] == "nobody knows what the heron does eat"


def test_the_limit_is_applied_after_reranking(reranking: Api, namespace: str) -> None:
    reranking.add_texts(namespace, *SAID)
    options = {"query_text": QUERY, "mode": pb.RETRIEVE_MODE_LEXICAL, "limit": 1}
    best = reranking.retrieve(namespace, rerank=True, **options).results[0].item.text
    assert best == "nobody knows what the heron does eat"
    assert reranking.retrieve(namespace, **options).results[0].item.text != best


def test_the_explanation_is_the_rerankers(reranking: Api, namespace: str) -> None:
    reranking.add_texts(namespace, *SAID)
    results = reranking.retrieve(namespace, query_text=QUERY, rerank=True, explain=True).results
    for result in results:
        (share,) = result.explanation.contributions
        assert share.channel == "reranker"
        assert share.raw_score == log_odds(shared(result.item.text))
        assert share.contribution == result.score


def test_what_is_not_among_the_best_stays_behind_them(reranking: Api, namespace: str) -> None:
    # BM25 prefers texts with fewer words; the reranker would put the very last one first.
    texts = ["heron " + "x " * n for n in range(60)] + ["heron what does the eat " + "y " * 400]
    reranking.add_texts(namespace, *texts)
    options = {"query_text": "heron", "mode": pb.RETRIEVE_MODE_LEXICAL, "limit": -1}
    plain = scored(reranking.retrieve(namespace, **options))
    found = reranking.retrieve(namespace, rerank=True, explain=True, **options)
    assert {text for text, _ in scored(found)[:50]} == {text for text, _ in plain[:50]}
    assert scored(found)[50:] == plain[50:]
    channels = [result.explanation.contributions[0].channel for result in found.results]
    assert channels == ["reranker"] * 50 + ["lexical"] * 11


def test_a_lowest_score_holds_for_the_scores_that_are_returned(reranking: Api, namespace: str) -> None:
    reranking.add_texts(namespace, *SAID)
    whole = scored(reranking.retrieve(namespace, query_text=QUERY, rerank=True))
    least = whole[1][1]
    found = scored(reranking.retrieve(namespace, query_text=QUERY, rerank=True, min_score=least))
    assert found == [pair for pair in whole if pair[1] >= least]
    assert 1 < len(found) < len(whole)


@pytest.mark.parametrize("more", [{}, {"context_window": 1}, {"max_tokens": 25}], ids=str)
def test_pages_fit_together(reranking: Api, namespace: str, more: dict[str, Any]) -> None:
    reranking.add_texts(namespace, *SAID)
    options = {"query_text": QUERY, "rerank": True, "limit": 4, **more}
    whole = reranking.retrieve(namespace, **options)
    paged, token = [], ""
    while True:
        page = reranking.retrieve(namespace, page_size=1, page_token=token, **options)
        paged += page.results
        token = page.next_page_token
        if not token:
            break
    assert [exactly(result) for result in paged] == [exactly(result) for result in whole.results]
    assert len(paged) == 4


def test_later_pages_go_by_the_scores_of_the_first(
    model: Path, tmp_path: Path, connect: Connect, namespace: str
) -> None:
    options = {"query_text": QUERY, "rerank": True, "page_size": 2}
    with ServerProcess(tmp_path, flags=flags(model)) as server:
        api = connect(server)
        api.add_texts(namespace, *SAID)
        whole = scored(api.retrieve(namespace, query_text=QUERY, rerank=True))
        token = api.retrieve(namespace, **options).next_page_token
    with ServerProcess(tmp_path) as server:
        api = connect(server)
        second = api.retrieve(namespace, page_token=token, **options)
        assert (scored(second), reasons(second)) == (whole[2:4], [])
        # Without a reranker on the first page, later pages do without it too.
        first = api.retrieve(namespace, **options)
        token = first.next_page_token
    with ServerProcess(tmp_path, flags=flags(model)) as server:
        api = connect(server)
        plain = scored(api.retrieve(namespace, query_text=QUERY))
        second = api.retrieve(namespace, page_token=token, **options)
        assert scored(first) + scored(second) == plain[:4]
        assert (reasons(first), reasons(second)) == ([NO_RERANKER], [UNAVAILABLE])


def test_many_at_once_each_get_their_own_order(reranking: Api, namespace: str) -> None:
    reranking.add_texts(namespace, *SAID)
    queries = [QUERY, "fish", "heron heron", "does what"]
    alone = [scored(reranking.retrieve(namespace, query_text=query, rerank=True)) for query in queries]

    def ask(query: str) -> list[tuple[str, float]]:
        return scored(reranking.retrieve(namespace, query_text=query, rerank=True))

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, queries * 10)) == alone * 10


# Degradations are reported


def test_without_a_reranker_the_order_is_that_of_the_scores(api: Api, namespace: str) -> None:
    api.add_texts(namespace, *SAID)
    plain = api.retrieve(namespace, query_text=QUERY)
    found = api.retrieve(namespace, query_text=QUERY, rerank=True)
    assert (scored(found), reasons(found)) == (scored(plain), [NO_RERANKER])
    assert "reranker" in found.degraded[0].message
    least = scored(plain)[2][1]
    found = api.retrieve(namespace, query_text=QUERY, rerank=True, min_score=least)
    assert scored(found) == scored(plain)[:3]


@pytest.mark.parametrize("trouble", ["it fails", "it takes too long"])
def test_a_reranker_that_gives_no_scores_costs_the_order_only(
    model: Path, tmp_path: Path, connect: Connect, namespace: str, trouble: str
) -> None:
    if trouble == "it fails":
        write_cross_encoder(tmp_path / "model", WORDS, offset=math.nan)
        options = flags(tmp_path / "model")
    else:
        options = flags(model, "--reranker-timeout", "0.000001")
    with ServerProcess(tmp_path / "data", flags=options) as server:
        api = connect(server)
        api.add_texts(namespace, *SAID)
        plain = api.retrieve(namespace, query_text=QUERY, explain=True)
        found = api.retrieve(namespace, query_text=QUERY, explain=True, rerank=True)
        assert reasons(found) == [UNAVAILABLE]
        assert [exactly(result) for result in found.results] == [exactly(result) for result in plain.results]


# Start


def test_a_server_whose_reranker_cannot_be_loaded_does_not_start(tmp_path: Path, model: Path) -> None:
    (tmp_path / "empty").mkdir()
    for folder, said in ((tmp_path / "none", "is not a folder"), (tmp_path / "empty", "model.onnx")):
        with pytest.raises(RuntimeError, match=said):
            ServerProcess(tmp_path / "data", flags=flags(folder)).start()
    without = "import sys; sys.modules['fastembed'] = None; from memory_service.cli import main; main()"
    with pytest.raises(RuntimeError, match=r"locks/reranker\.lock"):
        ServerProcess(
            tmp_path / "data", flags=flags(model), command=(sys.executable, "-c", without, "serve")
        ).start()


# The contract


async def test_a_text_has_its_score_whatever_it_is_scored_together_with(model: Path) -> None:
    reranker = FastembedReranker(MODEL, model)
    texts = [*SAID, "", "HERON", "x" * 200_000, *("fish " * n for n in range(40))]
    together = await reranker.score(QUERY, texts)
    alone = [(await reranker.score(QUERY, [text]))[0] for text in texts]
    assert together == pytest.approx(alone, abs=1e-4)
    assert together[:5] == [log_odds(shared(text)) for text in SAID]
    assert await reranker.score(QUERY, []) == []
    await reranker.close()


async def test_a_text_that_is_too_long_is_cut(model: Path) -> None:
    reranker = FastembedReranker(MODEL, model)
    # The model takes 64 tokens.
    early, late = "heron " + "x " * 300, "x " * 300 + "heron"
    assert await reranker.score("heron", [early, late]) == [log_odds(1), log_odds(0)]
    assert await reranker.score("heron " + "x " * 5000, ["heron"]) == [log_odds(1)]
    await reranker.close()


async def test_a_call_that_is_cancelled_leaves_the_others_alone(model: Path) -> None:
    reranker = FastembedReranker(MODEL, model)
    calls = [asyncio.create_task(reranker.score(QUERY, SAID * 40)) for _ in range(6)]
    await asyncio.sleep(0)
    for call in calls[::2]:
        call.cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [asyncio.CancelledError, list] * 3
    assert answers[1] == answers[3] == [log_odds(shared(text)) for text in SAID] * 40
    await reranker.close()


async def test_a_model_that_says_nothing_is_unavailable(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path, WORDS, offset=math.inf)
    reranker = FastembedReranker(MODEL, tmp_path)
    with pytest.raises(RerankerFailed):
        await reranker.score(QUERY, SAID)
    await reranker.close()


def test_a_damaged_model_cannot_be_loaded(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path, WORDS)
    whole = (tmp_path / "model.onnx").read_bytes()
    (tmp_path / "model.onnx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CannotLoad, match=MODEL):
        FastembedReranker(MODEL, tmp_path)
