"""An embedding service that returns nonsense: no wrong vector is stored or searched with, no write lost."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from conftest import Connect
from embedding_provider import Body, EmbeddingProvider, body_of, vector_of
from grpc_api import Api, Refusal, eventually, refusal
from memory_service.v1 import admin_pb2, interaction_pb2, interaction_pb2_grpc
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

DIMENSION = 32
FLAGS = [*EmbeddingProvider.flags, "--embedder-retries", "0", "--log-level", "debug"]
ASKED_DIMENSION = ["--embedding-dimension", str(DIMENSION)]
# Short enough for a failing service to be asked again quickly.
SHORT_PAUSE = ["--embedder-pause", "0.01"]
# A model whose vectors are unknown until its first response.
UNKNOWN_MODEL = [*FLAGS, *SHORT_PAUSE, "--embedding-model", "homemade"]
PENDING = pb.DEGRADATION_REASON_EMBEDDING_PENDING
UNAVAILABLE = pb.DEGRADATION_REASON_EMBEDDER_UNAVAILABLE
FOREIGN = pb.DEGRADATION_REASON_FOREIGN_VECTORS

# In stored texts, queries, and any text in the service's responses.
CANARY = "cAnArY"

Answer = dict[str, Any]
Says = Callable[[Answer], Body]


def last_vector(change: Callable[[list[float]], Any]) -> Says:
    """Change only the last vector."""

    def says(answer: Answer) -> Body:
        last = answer["data"][-1]
        last["embedding"] = change(last["embedding"])
        return body_of(answer)

    return says


def data(change: Callable[[list[Any]], Any]) -> Says:
    """Change only the list of vectors."""
    return lambda answer: body_of({**answer, "data": change(answer["data"])})


def numbers(number: Callable[[int], Any]) -> Says:
    """Change only the text numbers of the vectors."""
    return data(lambda data: [{**datum, "index": number(at)} for at, datum in enumerate(data)])


PAGE = f"<html><title>502 {CANARY}</title></html>".encode()
NONSENSE: dict[str, Says] = {
    "NaN": last_vector(lambda v: [math.nan, *v[1:]]),
    "infinity": last_vector(lambda v: [*v[:-1], math.inf]),
    "minus infinity": last_vector(lambda v: [*v[:-1], -math.inf]),
    "more than 32 bits hold": last_vector(lambda v: [1e39, *v[1:]]),
    "an integer that no float holds": last_vector(lambda v: [10**400, *v[1:]]),
    "null among the values": last_vector(lambda v: [None, *v[1:]]),
    "zeros": last_vector(lambda v: [0.0] * len(v)),
    "zeros in 32 bits": last_vector(lambda v: [1e-60] * len(v)),
    "too short": last_vector(lambda v: v[:-1]),
    "too long": last_vector(lambda v: [*v, 0.5]),
    "no values": last_vector(lambda v: []),
    "values in a list of lists": last_vector(lambda v: [v]),
    "values that are words": last_vector(lambda v: [CANARY] * len(v)),
    "a word for a vector": last_vector(lambda v: CANARY),
    "an object for a vector": last_vector(lambda v: {CANARY: v}),
    "null for a vector": last_vector(lambda v: None),
    "too few": data(lambda data: data[:-1]),
    "too many": data(lambda data: [*data, {**data[-1], "index": len(data)}]),
    "none": data(lambda data: []),
    "two of the same text": numbers(lambda at: max(at, 1)),
    "numbers from 1 on": numbers(lambda at: at + 1),
    "no numbers": numbers(lambda at: None),
    "words for numbers": numbers(str),
    "lists for numbers": numbers(lambda at: [at]),
    "null for the vectors": data(lambda data: None),
    "an object for the vectors": data(lambda data: {str(at): datum for at, datum in enumerate(data)}),
    "numbers for the vectors": data(lambda data: list(range(len(data)))),
    "another object": lambda answer: body_of({CANARY: answer}),
    "a list": lambda answer: body_of(answer["data"]),
    "a word": lambda answer: body_of(CANARY),
    "an error that is none": lambda answer: body_of({"error": {"message": CANARY, "code": 500}}),
    "half of the JSON": lambda answer: Body(body_of(answer).raw[:-40]),
    "no JSON": lambda answer: Body(b"\x00\xff" + CANARY.encode()),
    "JSON that goes too deep": lambda answer: Body(b"[" * 100_000),
    "no body": lambda answer: Body(b""),
    "a page": lambda answer: Body(PAGE, "text/html"),
    "a page that is said to be JSON": lambda answer: Body(PAGE),
}


@pytest.fixture(scope="module")
def provider() -> Iterator[EmbeddingProvider]:
    """The service for the whole file."""
    with EmbeddingProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def server(provider: EmbeddingProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server for all kinds of nonsense."""
    flags = [*FLAGS, *ASKED_DIMENSION, *SHORT_PAUSE]
    process = ServerProcess(tmp_path_factory.mktemp("data"), flags=flags, env=provider.env)
    process.log = deque()  # all of it
    with process:
        yield process


@pytest.fixture
def api(server: ServerProcess, provider: EmbeddingProvider, connect: Connect, namespace: str) -> Api:
    """The stubs of the server, after a good response from the service."""
    api = connect(server)
    talk_sense(provider)
    eventually(lambda: reasons(api.add_texts(f"{namespace}/first", "any")) == [], "a good answer")
    provider.requests.clear()
    return api


def talk_sense(provider: EmbeddingProvider, dimension: int = DIMENSION) -> None:
    provider.says, provider.dimension = body_of, dimension


def add(api: Api, namespace: str, name: str) -> pb.AddResponse:
    item = pb.MemoryItem(id=name, text=text_of(name))
    response: pb.AddResponse = api.memory.Add(pb.AddRequest(namespace=namespace, item=item))
    return response


def change(api: Api, namespace: str, name: str, into: str) -> pb.UpdateResponse:
    request = pb.UpdateRequest(namespace=namespace, item=pb.MemoryItem(id=name, text=text_of(into)))
    request.update_mask.paths.append("content")
    response: pb.UpdateResponse = api.memory.Update(request)
    return response


def text_of(name: str) -> str:
    return f"{CANARY} {name}"


def reasons(response: Any) -> list[int]:
    return [degradation.reason for degradation in response.degraded]


def by_vector(api: Api, namespace: str, name: str, dimension: int = DIMENSION) -> dict[str, float]:
    """Return the scores of all items with a vector, for the vector of a text."""
    embedding = pb.Embedding(values=vector_of(text_of(name), dimension))
    response = api.retrieve(namespace, query_embedding=embedding, limit=-1)
    return {result.item.text: result.score for result in response.results}


def vectors(api: Api, namespace: str) -> dict[str, list[float]]:
    """Return the vectors of all items by their texts, checking that `Get` and `List` agree."""
    found = {}
    for listed in api.items(namespace):
        item = api.get(namespace, listed.id, include_embedding=True)
        assert (item.text, item.revision) == (listed.text, listed.revision)
        found[item.text] = list(item.embedding.values)
    return found


def pending_and_embedded(api: Api, namespace: str) -> tuple[int, int]:
    stats = api.stats(namespace)
    return stats.pending_count, stats.embedded_count


def needs_a_vector(api: Api, namespace: str) -> Refusal:
    options = pb.RetrieveOptions(query_text=text_of("any"), mode=pb.RETRIEVE_MODE_VECTOR)
    return refusal(api.memory.Retrieve, pb.RetrieveRequest(namespace=namespace, options=options))


def found_by_words(api: Api, namespace: str, name: str, reason: int) -> None:
    """Check that a query finds an item by its words alone, and says why."""
    found = api.retrieve(namespace, query_text=name)
    assert [result.item.text for result in found.results] == [text_of(name)]
    assert reasons(found) == [reason]


BATCH = ("one", "two", "three")


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_is_as_good_as_no_answer(
    server: ServerProcess, provider: EmbeddingProvider, api: Api, namespace: str, kind: str
) -> None:
    for name in ("before", "old"):
        assert reasons(add(api, namespace, name)) == []
    told = len(server.log)
    provider.says = NONSENSE[kind]
    written = api.add_texts(namespace, *map(text_of, BATCH))
    assert reasons(written) == [PENDING]
    assert list(map(text_of, BATCH)) in provider.requests, "it was not asked"
    assert reasons(add(api, namespace, "alone")) == reasons(change(api, namespace, "old", "new")) == [PENDING]

    def asked_in_vain() -> bool:
        found_by_words(api, namespace, "alone", UNAVAILABLE)
        return ["alone"] in provider.requests

    eventually(asked_in_vain, "it is asked by a query")
    error = needs_a_vector(api, namespace)
    assert (error.code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "EMBEDDER_REQUIRED")
    # All items are there, and the pending ones have no vector at all.
    waiting = {text_of(name) for name in (*BATCH, "alone", "new")}
    present = vectors(api, namespace)
    assert set(present) == {*waiting, text_of("before")}
    assert {text for text, values in present.items() if not values} == waiting
    assert set(by_vector(api, namespace, "alone")) == {text_of("before")}
    assert pending_and_embedded(api, namespace) == (5, 1)

    talk_sense(provider)
    eventually(lambda: reasons(api.retrieve(namespace, query_text="alone")) == [], "all have vectors")
    for text, values in vectors(api, namespace).items():
        assert values == pytest.approx(vector_of(text, DIMENSION))
    for name in (*BATCH, "alone", "new"):
        scores = by_vector(api, namespace, name)
        assert len(scores) == 6 and scores[text_of(name)] == pytest.approx(1)
    assert server.process.poll() is None
    eventually(lambda: '"embedder_' in "".join(list(server.log)[told:]), "an operator can see it")
    log = list(server.log)
    for secret in (CANARY, *provider.env.values()):
        assert not [line for line in log if secret in line]
    assert not [line for line in log if '"level": "error"' in line or not line.startswith("{")]


def test_vectors_may_come_in_any_order(provider: EmbeddingProvider, api: Api, namespace: str) -> None:
    provider.says = data(lambda data: data[::-1])
    assert reasons(api.add_texts(namespace, *map(text_of, BATCH))) == []
    for text, values in vectors(api, namespace).items():
        assert values == pytest.approx(vector_of(text, DIMENSION))


def test_no_vector_is_given_up_for_nonsense(provider: EmbeddingProvider, api: Api, namespace: str) -> None:
    own = pb.Embedding(values=[1.0, 2.0])
    api.add(namespace, text="own", embedding=own)
    provider.says = NONSENSE["zeros"]
    request = admin_pb2.ReembedRequest(namespace=namespace, replace_client_vectors=True)
    error = refusal(api.admin.Reembed, request)
    assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "EMBEDDER_UNAVAILABLE")
    assert api.stats(namespace).embedding_model == "client"
    assert api.found(namespace, query_embedding=own) == ["own"]


def test_who_talks_nonsense_is_left_alone_for_a_while(connect: Connect, namespace: str) -> None:
    flags = ["--store", "memory", *FLAGS, *ASKED_DIMENSION, "--embedder-pause", "3600"]
    with EmbeddingProvider() as provider, ServerProcess(flags=flags, env=provider.env) as server:
        api = connect(server)
        provider.says = NONSENSE["a page"]
        for number in range(10):
            assert reasons(add(api, namespace, str(number))) == [PENDING]
        assert len(provider.requests) == 3


def test_a_dimension_that_changes_in_mid_life_is_nonsense(
    tmp_path: Path, connect: Connect, namespace: str
) -> None:
    with (
        EmbeddingProvider() as provider,
        ServerProcess(tmp_path, flags=UNKNOWN_MODEL, env=provider.env) as server,
    ):
        api = connect(server)
        talk_sense(provider)
        assert reasons(add(api, namespace, "before")) == []
        provider.dimension = 2 * DIMENSION
        assert reasons(add(api, namespace, "heron")) == [PENDING]
        found_by_words(api, namespace, "heron", UNAVAILABLE)
        assert pending_and_embedded(api, namespace) == (1, 1)
        talk_sense(provider)
        eventually(lambda: reasons(api.retrieve(namespace, query_text="heron")) == [], "it has its vector")
        assert by_vector(api, namespace, "heron")[text_of("heron")] == pytest.approx(1)


def context(api: Api, namespace: str) -> interaction_pb2.RetrieveRelevantContextResponse:
    stub = interaction_pb2_grpc.InteractionServiceStub(api.channel)
    response: interaction_pb2.RetrieveRelevantContextResponse = stub.RetrieveRelevantContext(
        interaction_pb2.RetrieveRelevantContextRequest(namespace=namespace, query="heron")
    )
    return response


FIRST_CALLS: dict[str, Callable[[Api, str], Any]] = {
    "Add": lambda api, namespace: add(api, namespace, "added"),
    "Retrieve": lambda api, namespace: api.retrieve(namespace, query_text="heron"),
    "RetrieveRelevantContext": context,
}


def test_a_model_that_has_another_dimension_after_a_restart_is_another_model(
    tmp_path: Path, connect: Connect, namespace: str
) -> None:
    with EmbeddingProvider() as provider:

        def start() -> ServerProcess:
            return ServerProcess(tmp_path, flags=UNKNOWN_MODEL, env=provider.env)

        talk_sense(provider)
        with start() as server:
            assert reasons(add(connect(server), namespace, "heron")) == []
        provider.dimension = 2 * DIMENSION
        # Each is a server's first call to the service, which is when it learns the dimension.
        for what, call in FIRST_CALLS.items():
            with start() as server:
                api = connect(server)
                assert set(reasons(call(api, namespace))) == {FOREIGN}, what
                found_by_words(api, namespace, "heron", FOREIGN)
                assert by_vector(api, namespace, "heron")[text_of("heron")] == pytest.approx(1)
                assert pending_and_embedded(api, namespace)[0] == 0
        with start() as server:
            api = connect(server)
            # The re-embedding also asks first, and does not assume that the same name means the same model.
            assert api.admin.Reembed(admin_pb2.ReembedRequest(namespace=namespace)).pending_count == 2
            eventually(lambda: pending_and_embedded(api, namespace) == (0, 2), "all have vectors")
            for name in ("heron", "added"):
                scores = by_vector(api, namespace, name, 2 * DIMENSION)
                assert scores[text_of(name)] == pytest.approx(1)
