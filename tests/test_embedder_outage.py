"""An embedder that is down, slow or rate-limited fails no write: vectors follow when it is back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from conftest import Connect
from embedding_provider import EmbeddingProvider, vector_of
from grpc_api import Api, eventually, refusal
from memory_service.v1 import admin_pb2, user_memory_pb2, user_memory_pb2_grpc
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

DIMENSION = 32
# Short enough for a test, and yet a pause.
PAUSE_S = 0.2
FLAGS = [
    *EmbeddingProvider.flags, "--embedding-dimension", str(DIMENSION), "--embedder-retries", "0",
    "--embedder-pause", str(PAUSE_S),
]  # fmt: skip
LONG_PAUSE = ["--embedder-pause", "3600"]
PENDING = pb.DEGRADATION_REASON_EMBEDDING_PENDING
UNAVAILABLE = pb.DEGRADATION_REASON_EMBEDDER_UNAVAILABLE
VECTOR = pb.RETRIEVE_MODE_VECTOR


@pytest.fixture
def provider() -> Iterator[EmbeddingProvider]:
    with EmbeddingProvider() as provider:
        yield provider


def start(provider: EmbeddingProvider, data_dir: Path, *flags: str) -> ServerProcess:
    return ServerProcess(data_dir, flags=[*FLAGS, *flags], env=provider.env)


def add(api: Api, text: str, *, timeout: float = 30, **fields: object) -> pb.AddResponse:
    item = pb.MemoryItem(text=text, **fields)
    response: pb.AddResponse = api.memory.Add(pb.AddRequest(namespace="ns", item=item), timeout=timeout)
    return response


def reasons(response: pb.RetrieveResponse | pb.AddResponse) -> list[int]:
    return [degradation.reason for degradation in response.degraded]


def by_vector(api: Api, text: str) -> dict[str, float]:
    """Search by the provider's vector of a text; return the score of each item that has a vector, by text."""
    embedding = pb.Embedding(values=vector_of(text, DIMENSION))
    response = api.retrieve("ns", query_embedding=embedding, limit=-1)
    return {result.item.text: result.score for result in response.results}


def is_filled(api: Api, count: int) -> bool:
    stats = api.stats("ns")
    return (stats.pending_count, stats.embedded_count) == (0, count)


def test_a_write_while_the_provider_is_down_is_found_by_its_words_and_later_by_its_vector(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    provider.failing = True
    with start(provider, tmp_path) as server:
        api = connect(server)
        written = add(api, "a heron", id="h")
        assert reasons(written) == [PENDING]
        found = api.retrieve("ns", query_text="heron")
        assert [result.item.text for result in found.results] == ["a heron"]
        assert reasons(found) == [UNAVAILABLE]
        assert (api.stats("ns").pending_count, api.stats("ns").embedded_count) == (1, 0)
        server.kill()
    provider.failing = False
    with start(provider, tmp_path) as server:
        api = connect(server)
        eventually(lambda: is_filled(api, 1), "vectors to be filled in")
        assert by_vector(api, "a heron") == {"a heron": pytest.approx(1)}
        assert reasons(api.retrieve("ns", query_text="heron")) == []
        item = api.get("ns", "h", include_embedding=True)
        assert list(item.embedding.values) == pytest.approx(vector_of("a heron", DIMENSION))
        assert (item.revision, item.update_time) == (written.item.revision, written.item.update_time)
        assert api.stats("ns").revision == written.revision


def test_vectors_come_when_the_provider_is_back(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with start(provider, tmp_path) as server:
        api = connect(server)
        add(api, "a heron")
        provider.failing = True
        for status in (500, 429, 401, 503):
            provider.failure_status = status
            assert reasons(add(api, f"an otter {status}")) == [PENDING]
        embedding = pb.Embedding(values=vector_of("a heron", DIMENSION))
        found = api.retrieve("ns", query_embedding=embedding, limit=-1)
        assert [result.item.text for result in found.results] == ["a heron"]
        assert [(d.reason, d.message.split()[0]) for d in found.degraded] == [(PENDING, "4")]
        provider.failing = False
        eventually(lambda: is_filled(api, 5), "vectors to be filled in")
        assert len(by_vector(api, "a heron")) == 5


def test_a_slow_provider_costs_its_timeout_and_no_write(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with start(provider, tmp_path, "--embedder-timeout", "0.2") as server:
        api = connect(server)
        provider.hold()
        assert reasons(add(api, "a heron")) == [PENDING]
        assert reasons(api.retrieve("ns", query_text="heron")) == [UNAVAILABLE]
        provider.may_answer.set()
        eventually(lambda: is_filled(api, 1), "vectors to be filled in")


def test_a_caller_in_a_hurry_is_answered_within_its_deadline(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with start(provider, tmp_path, "--embedder-timeout", "60") as server:
        api = connect(server)
        provider.hold()
        assert reasons(add(api, "a heron", timeout=2)) == [PENDING]
        provider.may_answer.set()
        eventually(lambda: is_filled(api, 1), "vectors to be filled in")


def test_what_waits_is_changed_deleted_and_reset_like_anything(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    provider.failing = True
    with start(provider, tmp_path) as server:
        api = connect(server)
        for name in ("changed", "labelled", "deleted", "own"):
            add(api, name, id=name)
        update(api, "changed", "content", text="something else")
        update(api, "labelled", "labels", labels={"k": "v"})
        update(api, "own", "embedding", embedding=pb.Embedding(values=[1.0] * DIMENSION))
        api.memory.Delete(pb.DeleteRequest(namespace="ns", id="deleted"))
        api.add("other", text="gone")
        api.memory.Reset(pb.ResetRequest(namespace="other"))
        assert api.stats("ns").pending_count == 2
        provider.failing = False
        eventually(lambda: is_filled(api, 3), "vectors to be filled in")
        items = {name: api.get("ns", name, include_embedding=True) for name in ("changed", "labelled", "own")}
        assert list(items["changed"].embedding.values) == pytest.approx(
            vector_of("something else", DIMENSION)
        )
        assert list(items["labelled"].embedding.values) == pytest.approx(vector_of("labelled", DIMENSION))
        assert list(items["own"].embedding.values) == [1.0] * DIMENSION
        assert api.stats("other").pending_count == 0
        assert "gone" not in [text for request in provider.requests[-3:] for text in request]


def update(api: Api, item_id: str, path: str, **fields: object) -> None:
    request = pb.UpdateRequest(namespace="ns", item=pb.MemoryItem(id=item_id, **fields))
    request.update_mask.paths.append(path)
    api.memory.Update(request)


def test_a_failing_provider_is_left_alone_and_asked_again_after_a_pause(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    provider.failing = True
    with start(provider, tmp_path, *LONG_PAUSE) as server:
        api = connect(server)
        for n in range(20):
            assert reasons(add(api, f"heron {n}")) == [PENDING]
        # Three failures open the circuit; one of them is the background task's.
        assert len(provider.requests) == 3
        for _ in range(5):
            assert reasons(api.retrieve("ns", query_text="heron")) == [UNAVAILABLE]
        assert len(provider.requests) == 3
        server.kill()
    with start(provider, tmp_path) as server:
        api = connect(server)
        for n in range(5):
            add(api, f"otter {n}")
        provider.failing = False
        eventually(lambda: is_filled(api, 25), "vectors to be filled in")
        assert reasons(add(api, "the circuit is closed")) == []


def test_texts_that_the_provider_refuses_keep_no_other_from_its_vector(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    provider.failing = True
    with start(provider, tmp_path) as server:
        api = connect(server)
        texts = [f"{'bad' if n % 2 else 'good'} {n}" for n in range(20)]
        api.add_texts("ns", *texts)
        provider.refuses = lambda text: text.startswith("bad")
        provider.failing = False
        eventually(lambda: is_filled(api, 10), "vectors to be filled in")
        assert set(by_vector(api, "good 0")) == {text for text in texts if text.startswith("good")}
        assert len(api.found("ns", query_text="bad", limit=-1)) == 10
        # Refused texts are not tried again, and the log does not contain them.
        asked = len(provider.requests)
        add(api, "good again")
        assert len(provider.requests) == asked + 1
        told = [line for line in server.log if "text_refused_by_embedder" in line]
        assert len(told) == 10 and not any(text in line for line in told for text in texts)
        assert json.loads(told[0])["model"] == f"openai:text-embedding-3-small-{DIMENSION}"


def test_a_provider_that_refuses_everything_loses_no_item_its_vector(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    provider.refuses = lambda text: True
    with start(provider, tmp_path) as server:
        api = connect(server)
        assert reasons(add(api, "a heron")) == [PENDING]
        # It has tried, and has found that the text is not the cause.
        eventually(lambda: ["text"] in provider.requests, "the provider to be asked for something harmless")
        assert api.stats("ns").pending_count == 1
        provider.refuses = lambda text: False
        eventually(lambda: is_filled(api, 1), "vectors to be filled in")


def test_a_text_that_makes_the_provider_fail_keeps_no_other_from_its_vector(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    provider.failing = True
    with start(provider, tmp_path, "--embedder-pause", "0.02") as server:
        api = connect(server)
        api.add_texts("ns", *(f"text {n}" for n in range(6)), "bad", *(f"more {n}" for n in range(6)))
        provider.breaks = lambda text: text == "bad"
        provider.failing = False
        eventually(lambda: api.stats("ns").embedded_count == 12, "all others to have vectors")
        assert api.stats("ns").pending_count == 1
        provider.breaks = lambda text: False
        eventually(lambda: is_filled(api, 13), "vectors to be filled in")


def test_every_namespace_that_waits_has_its_turn(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    provider.failing = True
    with start(provider, tmp_path) as server:
        api = connect(server)
        for at in range(3):
            api.add_texts("large", *(f"text {at}.{n}" for n in range(200)))
        api.add_texts("small", "only one")
        provider.failing = False
        eventually(lambda: api.stats("small").pending_count == 0, "the small one to be filled in")
        eventually(lambda: api.stats("large").pending_count == 0, "the large one to be filled in")
    answered = [set(request) for request in provider.requests if len(request) > 1 or "only one" in request]
    first = next(at for at, texts in enumerate(answered) if "only one" in texts)
    assert any(texts - {"only one"} for texts in answered[first:]), "the small one had to wait for the large"


def test_a_memory_saved_while_the_provider_is_down_is_compared_by_its_words(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    provider.failing = True
    with start(provider, tmp_path) as server:
        api = connect(server)
        request = user_memory_pb2.SaveMemoryRequest(
            namespace="ns",
            content="User likes green tea",
            category="MEMORY_CATEGORY_PREFERENCE",
            reasoning="What she likes to drink",
        )
        memories = user_memory_pb2_grpc.UserMemoryServiceStub(api.channel)
        first = memories.SaveMemory(request)
        assert {d.reason for d in first.degraded} == {UNAVAILABLE, PENDING}
        again = memories.SaveMemory(request)
        assert again.outcome == user_memory_pb2.MEMORY_OUTCOME_DUPLICATE
        assert again.existing.id == first.memory.id
        provider.failing = False
        eventually(lambda: is_filled(api, 1), "vectors to be filled in")


def test_a_text_is_written_also_where_a_client_was_first_with_vectors_of_another_dimension(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with (
        start(provider, tmp_path, "--embedder-timeout", "60") as server,
        ThreadPoolExecutor(1) as beside,
    ):
        api = connect(server)
        provider.hold()
        writing = beside.submit(add, api, "a heron")
        assert provider.asked.wait(30)
        api.add("ns", text="own", embedding=pb.Embedding(values=[1.0, 2.0]))
        provider.may_answer.set()
        assert reasons(writing.result()) == [pb.DEGRADATION_REASON_FOREIGN_VECTORS]
        assert api.found("ns", query_text="heron") == ["a heron"]


def test_without_an_embedder_nothing_waits(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, flags=["--embedder", "none"]) as server:
        api = connect(server)
        assert reasons(add(api, "a heron")) == [pb.DEGRADATION_REASON_NO_EMBEDDER]
        assert api.stats("ns").pending_count == 0


def test_a_move_to_a_provider_that_is_down_gives_up_no_vector(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with ServerProcess(tmp_path) as server:
        connect(server).add_texts("ns", "a heron", "an otter")
    provider.failing = True
    with start(provider, tmp_path) as server:
        api = connect(server)
        error = refusal(api.admin.Reembed, admin_pb2.ReembedRequest(namespace="ns"))
        assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "EMBEDDER_UNAVAILABLE")
        assert error.retry_after_s
        stats = api.stats("ns")
        assert (stats.embedding_model, stats.embedded_count) == ("local:wordllama-256", 2)


def test_a_server_with_work_in_the_background_stops_in_order(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    provider.failing = True
    with start(provider, tmp_path) as server:
        api = connect(server)
        api.add_texts("ns", "a heron")
        provider.hold()
        provider.failing = False
        assert provider.asked.wait(30)
        assert server.terminate() == 0
    with ServerProcess(tmp_path, flags=["--embedder", "none"]) as server:
        assert connect(server).stats("ns").pending_count == 1
