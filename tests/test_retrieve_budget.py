"""Retrieve: results within a number of tokens."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from grpc_api import Api, refusal
from memory_service.v1 import memory_pb2 as pb

LEXICAL = pb.RETRIEVE_MODE_LEXICAL
QUERIES: dict[str, dict[str, Any]] = {
    "recency": {},
    "hybrid": {"query_text": "heron"},
    "lexical": {"query_text": "heron", "mode": LEXICAL},
}


@pytest.fixture(params=list(QUERIES))
def query(request: pytest.FixtureRequest) -> dict[str, Any]:
    """By recency, and by two kinds of query."""
    return QUERIES[request.param]


def tokens(text: str) -> int:
    """Return the estimated tokens of a text without CJK."""
    return -(-len(text) // 4)


def texts(results: Any) -> list[str]:
    return [result.item.text for result in results]


def pages(api: Api, namespace: str, **options: Any) -> Iterator[pb.RetrieveResponse]:
    token = ""
    while True:
        response = api.retrieve(namespace, page_token=token, **options)
        yield response
        token = response.next_page_token
        if not token:
            return


def all_of(results: Any) -> set[str]:
    """Return the texts of results and of their neighbours."""
    return {item.text for r in results for item in (r.item, *r.before, *r.after)}


def conversations(api: Api, namespace: str, count: int) -> None:
    """Turns of three sessions, of different lengths."""
    rng = random.Random(5)
    for n in range(count):
        text = f"heron {n} " + "word " * rng.randrange(30)
        api.add(namespace, text=text, session_id=rng.choice("abc"))


def test_the_best_that_fit_come_and_what_does_not_fit_makes_room(api: Api, namespace: str) -> None:
    sizes = [3, 40, 12, 7, 90, 5]
    api.add_texts(namespace, *("heron " + "x" * (4 * n - 6) for n in sizes))
    whole = texts(api.retrieve(namespace, query_text="heron", mode=LEXICAL).results)
    for most in range(1, 170):
        response = api.retrieve(namespace, query_text="heron", mode=LEXICAL, max_tokens=most)
        expected, left = [], most
        for text in whole:
            if tokens(text) <= left:
                expected.append(text)
                left -= tokens(text)
        assert texts(response.results) == expected
        assert response.token_count == most - left


def test_without_a_query_the_newest_that_fit_come_without_a_gap(api: Api, namespace: str) -> None:
    sizes = [3, 4, 50, 5, 6, 7]
    said = [f"{n}" + "x" * (4 * size - 1) for n, size in enumerate(sizes)]
    api.add_texts(namespace, *said)
    for most, count in (
        (1, 0),
        (6, 0),
        (7, 1),
        (12, 1),
        (13, 2),
        (18, 3),
        (67, 3),
        (68, 4),
        (75, 6),
        (9999, 6),
    ):
        response = api.retrieve(namespace, max_tokens=most)
        assert texts(response.results) == said[len(said) - count :]
        assert response.token_count == sum(sizes[len(sizes) - count :])


def test_without_a_budget_nothing_is_counted(api: Api, namespace: str, query: dict[str, Any]) -> None:
    api.add_texts(namespace, "heron one", "heron two")
    assert api.retrieve(namespace, **query).token_count == 0
    assert api.retrieve(namespace, context_window=1, **query).token_count == 0
    assert api.retrieve(namespace, max_tokens=1000, **query).token_count == 6


def test_the_limit_counts_what_fits(api: Api, namespace: str) -> None:
    # The five long texts rank first and do not fit.
    api.add_texts(namespace, *("heron " * 60 for _ in range(5)), *("heron " + "x " * n for n in range(20)))
    options = {"query_text": "heron", "mode": LEXICAL, "max_tokens": 60}
    assert len(texts(api.retrieve(namespace, limit=3, **options).results)) == 3
    assert len(texts(api.retrieve(namespace, limit=-1, **options).results)) > 5


@pytest.mark.parametrize(("long", "found"), [(31, ["a heron among others"]), (32, [])])
def test_nothing_is_tried_for_ever(api: Api, namespace: str, long: int, found: list[str]) -> None:
    # The first results are too long.
    api.add_texts(namespace, *("heron " * 10 + f"{n}" for n in range(long)), "a heron among others")
    options = {"query_text": "heron", "mode": LEXICAL, "limit": -1}
    assert texts(api.retrieve(namespace, **options).results)[-1] == "a heron among others"
    assert texts(api.retrieve(namespace, max_tokens=15, **options).results) == found


@pytest.mark.parametrize("window", [0, 2])
@pytest.mark.parametrize("page_size", [1, 3, 1000])
def test_pages_together_hold_what_fits(
    api: Api, namespace: str, query: dict[str, Any], page_size: int, window: int
) -> None:
    conversations(api, namespace, 25)
    options = {"limit": -1, "context_window": window, **query}
    for most in (20, 250, 100_000):
        whole = api.retrieve(namespace, max_tokens=most, **options)
        paged = list(pages(api, namespace, max_tokens=most, page_size=page_size, **options))
        assert [r for page in paged for r in page.results] == list(whole.results)
        assert all(page.results for page in paged[1:])
        # Each text counts once, on the page where it appears first.
        assert sum(page.token_count for page in paged) == whole.token_count <= most
        assert whole.token_count == sum(map(tokens, all_of(whole.results)))
    assert len(whole.results) == 25


def test_a_neighbour_that_came_before_costs_nothing(api: Api, namespace: str) -> None:
    for text in ("a heron in the reeds", "another one, a heron", "and more"):
        api.add(namespace, text=text, session_id="s")
    all_three = 5 + 5 + 2
    for query in QUERIES.values():
        fits = api.retrieve(namespace, max_tokens=all_three, context_window=2, **query)
        assert len(fits.results) == len(api.retrieve(namespace, context_window=2, **query).results) >= 2
        assert fits.token_count == all_three
        assert len(api.retrieve(namespace, max_tokens=all_three - 1, context_window=2, **query).results) == 0


def test_what_has_no_text_takes_a_token(api: Api, namespace: str) -> None:
    parts = [pb.Part(binary=pb.BinaryPart(mime_type="image/png", content=b"x"))]
    for _ in range(3):
        api.add(namespace, chat_message=pb.ChatMessage(role=pb.ROLE_USER, parts=parts))
    response = api.retrieve(namespace, max_tokens=2)
    assert (len(response.results), response.token_count) == (2, 2)


def test_what_a_message_says_counts_with_the_name_of_who_says_it(api: Api, namespace: str) -> None:
    message = pb.ChatMessage(role=pb.ROLE_USER, name="Ada", parts=[pb.Part(text="heron!")])
    api.add(namespace, chat_message=message)
    assert api.retrieve(namespace, max_tokens=50).token_count == tokens("Ada: heron!")


def test_a_page_token_is_good_for_one_budget_only(api: Api, namespace: str, query: dict[str, Any]) -> None:
    api.add_texts(namespace, "heron one", "heron two")
    token = api.retrieve(namespace, page_size=1, max_tokens=50, **query).next_page_token
    assert token
    for other in ({}, {"max_tokens": 51}):
        options = pb.RetrieveOptions(page_size=1, page_token=token, **query, **other)
        error = refusal(api.memory.Retrieve, pb.RetrieveRequest(namespace=namespace, options=options))
        assert error.reason == "INVALID_PAGE_TOKEN"
