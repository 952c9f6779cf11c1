"""Retrieve: results with the turns right before and after each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from grpc_api import Api, eventually, exactly, refusal, texts_of
from memory_service.v1 import interaction_pb2, interaction_pb2_grpc
from memory_service.v1 import memory_pb2 as pb

QUERIES: dict[str, dict[str, Any]] = {
    "recency": {},
    "hybrid": {"query_text": "heron"},
    "lexical": {"query_text": "heron", "mode": pb.RETRIEVE_MODE_LEXICAL},
    "vector": {"query_text": "heron", "mode": pb.RETRIEVE_MODE_VECTOR},
}


@pytest.fixture(params=list(QUERIES))
def query(request: pytest.FixtureRequest) -> dict[str, Any]:
    """By recency, and by each kind of query."""
    return QUERIES[request.param]


def around(results: Any) -> dict[str, tuple[list[str], list[str]]]:
    """Return the texts before and after each result."""
    return {result.item.text: (texts_of(result.before), texts_of(result.after)) for result in results}


def say(api: Api, namespace: str, *turns: str, session_id: str = "s", **fields: Any) -> None:
    for text in turns:
        api.add(namespace, text=text, session_id=session_id, **fields)


def pages(api: Api, namespace: str, **options: Any) -> Iterator[pb.RetrieveResponse]:
    token = ""
    while True:
        response = api.retrieve(namespace, page_token=token, **options)
        yield response
        token = response.next_page_token
        if not token:
            return


def test_a_result_comes_with_its_neighbours(api: Api, namespace: str, query: dict[str, Any]) -> None:
    say(api, namespace, "a", "b")
    say(api, namespace, "somewhere else", session_id="other")
    say(api, namespace, "heron", labels={"it": "yes"})
    say(api, namespace, "c", "d", "e")
    for count, expected in ((1, (["b"], ["c"])), (2, (["a", "b"], ["c", "d"])), (20, ([*"ab"], [*"cde"]))):
        results = api.retrieve(namespace, labels={"it": "yes"}, context_window=count, **query).results
        assert around(results) == {"heron": expected}
    plain = api.retrieve(namespace, labels={"it": "yes"}, **query).results
    assert around(plain) == {"heron": ([], [])}
    assert (plain[0].item, plain[0].score) == (results[0].item, results[0].score)


def test_windows_are_whole_although_they_overlap(api: Api, namespace: str, query: dict[str, Any]) -> None:
    say(api, namespace, "heron one", "heron two", "heron three")
    results = api.retrieve(namespace, context_window=1, **query).results
    assert around(results) == {
        "heron one": ([], ["heron two"]),
        "heron two": (["heron one"], ["heron three"]),
        "heron three": (["heron two"], []),
    }


def test_neighbours_that_are_not_trusted_are_left_out(
    api: Api, namespace: str, query: dict[str, Any]
) -> None:
    little = pb.Provenance(source=pb.SOURCE_KIND_WEB, trust=0.25)
    say(api, namespace, "a")
    say(api, namespace, "a page " * 50, provenance=little)
    say(api, namespace, "heron", labels={"it": "yes"})
    say(api, namespace, "b", provenance=pb.Provenance(source=pb.SOURCE_KIND_TOOL))
    options = {"labels": {"it": "yes"}, "context_window": 2, **query}

    def found(**wanted: Any) -> dict[str, tuple[list[str], list[str]]]:
        return around(api.retrieve(namespace, **options, **wanted).results)

    assert found(min_trust=0.25) == {"heron": (["a", "a page " * 50], ["b"])}
    # No neighbour farther off takes its place.
    assert found(min_trust=0.3) == {"heron": (["a"], ["b"])}
    assert found(sources=[pb.SOURCE_KIND_UNSPECIFIED]) == {"heron": (["a"], [])}
    # Omitted neighbours cost no tokens.
    assert found(max_tokens=10) == {}
    assert found(max_tokens=10, min_trust=0.3) == {"heron": (["a"], ["b"])}


def test_neighbours_are_whole_items(api: Api, namespace: str, query: dict[str, Any]) -> None:
    parts = [pb.Part(text="hello")]
    message = pb.ChatMessage(role=pb.ROLE_USER, name="Ada", parts=parts)
    before = api.add(namespace, chat_message=message, session_id="s", labels={"k": "v"})
    say(api, namespace, "heron", labels={"it": "yes"})
    after = api.add(namespace, text="bye", session_id="s", embedding=None)
    options = {"labels": {"it": "yes"}, "context_window": 1, **query}
    for more in ({}, {"explain": True}, {"include_embedding": True}):
        (result,) = api.retrieve(namespace, **options, **more).results
        # Their vectors are left out, even if those of the results are included.
        assert [exactly(each) for each in result.before] == [exactly(before)]
        assert [exactly(each) for each in result.after] == [exactly(after)]
        assert result.item.HasField("embedding") == ("include_embedding" in more)


def test_what_has_no_session_or_is_no_turn_has_no_neighbours(api: Api, namespace: str) -> None:
    say(api, namespace, "a", "heron", "b", session_id="")
    found = around(api.retrieve(namespace, context_window=3).results)
    assert found == {"a": ([], []), "heron": ([], []), "b": ([], [])}


def test_messages_and_responses_are_neighbours_and_expired_items_are_not(api: Api, namespace: str) -> None:
    talk: Any = interaction_pb2_grpc.InteractionServiceStub(api.channel)
    say(api, namespace, "heron")
    for content, ttl in (("hello", Duration(seconds=1)), ("what is that bird?", None)):
        talk.StoreInteraction(
            interaction_pb2.StoreInteractionRequest(
                namespace=namespace, sender="ada", content=content, session_id="s", ttl=ttl
            )
        )

    def said_after() -> list[str]:
        (result,) = api.retrieve(
            namespace, query_text="heron", mode=pb.RETRIEVE_MODE_LEXICAL, limit=1, context_window=1
        ).results
        return [item.chat_message.parts[0].text for item in result.after]

    eventually(lambda: said_after() == ["what is that bird?"], "the first message expires")


def test_neighbours_follow_deletions_and_updates(api: Api, namespace: str) -> None:
    for text in "abcd":
        api.add(namespace, id=text, text=text, session_id="s")
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="b"))
    moved = pb.MemoryItem(id="c", session_id="elsewhere")
    api.memory.Update(pb.UpdateRequest(namespace=namespace, item=moved))
    results = api.retrieve(namespace, context_window=1).results
    assert around(results) == {"a": ([], ["d"]), "c": ([], []), "d": (["a"], [])}


@pytest.mark.parametrize("page_size", [1, 4, 1000])
def test_pages_with_windows_add_up_to_the_whole(
    api: Api, namespace: str, query: dict[str, Any], page_size: int
) -> None:
    say(api, namespace, *("heron " + " ".join(f"w{n}" for n in range(i)) for i in range(15)))
    options = {"limit": 12, "context_window": 2, **query}
    whole = api.retrieve(namespace, **options)
    assert len(whole.results) == 12
    paged = [
        result for page in pages(api, namespace, page_size=page_size, **options) for result in page.results
    ]
    assert [exactly(result) for result in paged] == [exactly(result) for result in whole.results]


def test_a_page_token_is_good_for_one_window_only(api: Api, namespace: str, query: dict[str, Any]) -> None:
    say(api, namespace, "heron one", "heron two")
    token = api.retrieve(namespace, page_size=1, context_window=1, **query).next_page_token
    for other in (0, 2):
        options = pb.RetrieveOptions(page_size=1, context_window=other, page_token=token, **query)
        error = refusal(api.memory.Retrieve, pb.RetrieveRequest(namespace=namespace, options=options))
        assert error.reason == "INVALID_PAGE_TOKEN"


def test_neighbours_count_in_the_size_of_a_page(api: Api, namespace: str, query: dict[str, Any]) -> None:
    say(api, namespace, *(f"heron {n} " + "x" * 60_000 for n in range(40)))
    found = list(pages(api, namespace, limit=-1, context_window=3, **query))
    assert len(found) > 2
    # A client accepts 4 MiB, gRPC's default.
    assert all(page.ByteSize() < 4 << 20 for page in found)
    assert sum(len(page.results) for page in found) == 40


def test_of_a_window_that_fits_into_no_response_the_nearest_come(api: Api, namespace: str) -> None:
    large = pb.Part(binary=pb.BinaryPart(mime_type="image/png", content=b"x" * 900_000))
    for name in "abcdef":
        message = pb.ChatMessage(role=pb.ROLE_USER, parts=[pb.Part(text=name), large])
        api.add(namespace, id=name, chat_message=message, session_id="s")
    (result,) = api.retrieve(
        namespace, query_text="d", mode=pb.RETRIEVE_MODE_LEXICAL, limit=1, context_window=20
    ).results
    assert [item.id for item in (*result.before, result.item, *result.after)] == ["c", "d", "e"]
