"""A namespace moves to another embedding model while it serves, even if its server is killed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import grpc
import numpy as np
import pytest

from conftest import Connect
from embedding_provider import EmbeddingProvider, vector_of
from grpc_api import SMALL_GRAPHS, Api, eventually, refusal
from memory_service.v1 import admin_pb2, knowledge_pb2, knowledge_pb2_grpc
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

DIMENSION = 32
MODEL = f"openai:text-embedding-3-small-{DIMENSION}"
LOCAL = "local:wordllama-256"
FLAGS = [*EmbeddingProvider.flags, "--embedding-dimension", str(DIMENSION)]
PENDING = pb.DEGRADATION_REASON_EMBEDDING_PENDING
FOREIGN = pb.DEGRADATION_REASON_FOREIGN_VECTORS
VECTOR = pb.RETRIEVE_MODE_VECTOR
ITEMS = 800
SUBJECTS = ("a heron", "an otter", "green tea", "the harbour", "an old bicycle")


@pytest.fixture
def provider() -> Iterator[EmbeddingProvider]:
    with EmbeddingProvider() as provider:
        yield provider


def start(provider: EmbeddingProvider, data_dir: Path) -> ServerProcess:
    return ServerProcess(data_dir, flags=FLAGS, env={**provider.env, **SMALL_GRAPHS})


def start_local(data_dir: Path) -> ServerProcess:
    return ServerProcess(data_dir, env=SMALL_GRAPHS)


def reembed(api: Api, namespace: str = "ns", **fields: bool) -> admin_pb2.ReembedResponse:
    response: admin_pb2.ReembedResponse = api.admin.Reembed(
        admin_pb2.ReembedRequest(namespace=namespace, **fields)
    )
    return response


def is_moved(api: Api, namespace: str = "ns") -> bool:
    stats = api.stats(namespace)
    assert stats.embedding_model == MODEL
    return stats.pending_count == 0 and stats.embedded_count == stats.item_count


def are_moved(api: Api, pending: int) -> bool:
    """Return whether at most this many items are pending."""
    return bool(api.stats("ns").pending_count <= pending)


def assert_of_new_model(item: pb.MemoryItem) -> None:
    assert list(item.embedding.values) == pytest.approx(vector_of(item.text, DIMENSION), abs=1e-6)


def search(api: Api, query: str) -> pb.RetrieveResponse:
    """Search by vector, and check that all results have vectors of the query's model."""
    response = api.retrieve("ns", query_text=query, mode=VECTOR, limit=50, include_embedding=True)
    asked = np.array(vector_of(query, DIMENSION))
    for result in response.results:
        assert_of_new_model(result.item)
        its = np.array(vector_of(result.item.text, DIMENSION))
        cosine = float(asked @ its / np.linalg.norm(asked) / np.linalg.norm(its))
        assert result.score == pytest.approx(cosine, abs=1e-4)
    return response


@dataclass
class Writer:
    """Adds, changes and deletes items until its server is down, and knows what must be stored."""

    texts: dict[str, str] = field(default_factory=dict)
    count: int = 0
    in_doubt: tuple[str, object, str, str | None] | None = None
    chance: random.Random = field(default_factory=lambda: random.Random(5))

    def run(self, api: Api) -> grpc.StatusCode:
        while True:
            self.in_doubt = self._next()
            try:
                self.finish(api)
                search(api, self.chance.choice(SUBJECTS))
            except grpc.RpcError as error:
                return error.code()

    def finish(self, api: Api) -> None:
        """Make the write in doubt; after a crash once more, with the same request id."""
        if self.in_doubt is None:
            return
        method, request, item_id, text = self.in_doubt
        getattr(api.memory, method)(request)
        self.in_doubt = None
        if text is None:
            self.texts.pop(item_id, None)
        else:
            self.texts[item_id] = text

    def has_written(self, count: int) -> bool:
        """Return whether this many writes have begun."""
        return self.count > count

    def _next(self) -> tuple[str, object, str, str | None]:
        self.count += 1
        name, text = f"r-{self.count}", f"written {self.count} about {self.chance.choice(SUBJECTS)}"
        kind = self.chance.choice(["Add", "Update", "Delete"])
        if kind == "Add":
            item = pb.MemoryItem(id=name, text=text)
            return kind, pb.AddRequest(namespace="ns", item=item, request_id=name), name, text
        item_id = self.chance.choice(sorted(self.texts))
        if kind == "Delete":
            return kind, pb.DeleteRequest(namespace="ns", id=item_id, request_id=name), item_id, None
        update = pb.UpdateRequest(namespace="ns", item=pb.MemoryItem(id=item_id, text=text), request_id=name)
        update.update_mask.paths.append("content")
        return kind, update, item_id, text


def test_a_move_that_is_killed_twice_completes_and_never_mixes_models(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    texts = {f"i{n:03}": f"note {n} about {SUBJECTS[n % len(SUBJECTS)]}" for n in range(ITEMS)}
    with start_local(tmp_path) as server:
        api = connect(server)
        items = [pb.MemoryItem(id=item_id, text=text) for item_id, text in texts.items()]
        api.memory.BatchAdd(pb.BatchAddRequest(namespace="ns", items=items))
        api.admin.Flush(admin_pb2.FlushRequest())
        assert api.stats("ns").index.kind == "hnsw"
    writer = Writer(texts)
    provider.answer_batches(2)
    for turn in range(2):
        # The provider answers only a few batches, so that each turn stops half-way.
        with start(provider, tmp_path) as server, ThreadPoolExecutor(1) as pool:
            api = connect(server)
            writer.finish(api)
            before = ITEMS if turn == 0 else api.stats("ns").pending_count
            assert reembed(api).embedding_model == MODEL
            assert PENDING in {d.reason for d in search(api, "a heron").degraded}
            writing = pool.submit(writer.run, connect(server))
            written = writer.count
            eventually(partial(are_moved, api, before - 200), "some to be moved")
            eventually(partial(writer.has_written, written + 20), "some to be written meanwhile")
            assert search(api, "green tea").results
            server.kill()
            assert writing.result() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        provider.answer_batches(3)
    with start(provider, tmp_path) as server:
        api = connect(server)
        writer.finish(api)
        assert 0 < api.stats("ns").pending_count < ITEMS
        assert len(api.found("ns", query_text="note", limit=-1)) > 0
        provider.answer_batches(None)
        eventually(lambda: is_moved(api), "the rest to be moved")
        assert_all_moved(api, writer.texts)
        api.admin.Flush(admin_pb2.FlushRequest())
        found = [result.item.id for result in search(api, "the harbour").results]
        server.kill()
    with start(provider, tmp_path) as server:
        api = connect(server)
        assert [result.item.id for result in search(api, "the harbour").results] == found
        assert_all_moved(api, writer.texts)


def assert_all_moved(api: Api, texts: dict[str, str]) -> None:
    stats = api.stats("ns")
    assert (stats.item_count, stats.embedded_count, stats.pending_count) == (len(texts), len(texts), 0)
    stored = {}
    for event in api.memory.Export(pb.ExportRequest(namespace="ns", include_embedding=True)):
        assert_of_new_model(event.item)
        stored[event.item.id] = event.item.text
    assert stored == texts
    assert search(api, "a heron").degraded == []
    everything = api.retrieve("ns", query_text="a heron", mode=VECTOR, limit=-1)
    assert {result.item.id for result in everything.results} | _rest(api, everything) == set(texts)


def _rest(api: Api, page: pb.RetrieveResponse) -> set[str]:
    found: set[str] = set()
    while page.next_page_token:
        page = api.retrieve(
            "ns", query_text="a heron", mode=VECTOR, limit=-1, page_token=page.next_page_token
        )
        found |= {result.item.id for result in page.results}
    return found


def test_a_namespace_serves_by_its_words_until_the_turn_of_its_items_has_come(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with start_local(tmp_path) as server:
        connect(server).add_texts("ns", "a heron", "an otter", " ")
    provider.answer_batches(0)
    with start(provider, tmp_path) as server:
        api = connect(server)
        assert [d.reason for d in api.retrieve("ns", query_text="heron").degraded] == [FOREIGN]
        before = api.stats("ns")
        moved = reembed(api)
        assert (moved.pending_count, moved.embedding_model, moved.revision) == (3, MODEL, before.revision)
        stats = api.stats("ns")
        assert (stats.embedding_dimension, stats.embedded_count, stats.item_count) == (DIMENSION, 0, 3)
        found = api.retrieve("ns", query_text="heron")
        assert [result.item.text for result in found.results] == ["a heron"]
        assert [(d.reason, d.message.split()[0]) for d in found.degraded] == [(PENDING, "3")]
        assert api.retrieve("ns", query_text="heron", mode=VECTOR).results == []
        old = pb.Embedding(values=[1.0] * 256)
        options = pb.RetrieveOptions(query_embedding=old)
        refused = refusal(api.memory.Retrieve, pb.RetrieveRequest(namespace="ns", options=options))
        assert (refused.reason, refused.metadata["expected"]) == ("DIMENSION_MISMATCH", str(DIMENSION))
        api.add("ns", text="added meanwhile")
        assert [result.item.text for result in search(api, "a heron").results] == ["added meanwhile"]
        assert reembed(api).pending_count == 3
        provider.answer_batches(None)
        eventually(lambda: api.stats("ns").pending_count == 0, "all to be moved")
        # One item has nothing to embed.
        assert api.stats("ns").embedded_count == 3
        assert reembed(api).pending_count == 0
        assert len(search(api, "a heron").results) == 3


def test_watchers_and_exports_see_nothing_of_a_move(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with start_local(tmp_path) as server:
        connect(server).add_texts("ns", "a heron", "an otter")
    with start(provider, tmp_path) as server:
        api = connect(server)
        watch = api.memory.Watch(pb.WatchRequest(namespace="ns"))
        assert next(watch).revision == 2
        reembed(api)
        eventually(lambda: is_moved(api), "all to be moved")
        api.add("ns", id="new", text="new")
        event = next(watch)
        assert (event.change.item.id, event.revision) == ("new", 3)
        assert [e.item.id for e in api.memory.Export(pb.ExportRequest(namespace="ns", after_revision=2))] == [
            "new"
        ]
        watch.cancel()


def test_what_cannot_be_moved_is_refused(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with start(provider, tmp_path) as server:
        api = connect(server)
        assert (
            refusal(api.admin.Reembed, admin_pb2.ReembedRequest(namespace="none")).reason
            == "NAMESPACE_NOT_FOUND"
        )
        assert refusal(api.admin.Reembed, admin_pb2.ReembedRequest()).names("namespace")
        api.add("ns", text="own", embedding=pb.Embedding(values=[1.0, 0.0]))
        error = refusal(api.admin.Reembed, admin_pb2.ReembedRequest(namespace="ns"))
        assert (error.code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "EMBEDDER_REQUIRED")
        assert api.stats("ns").embedded_count == 1
        assert reembed(api, replace_client_vectors=True).pending_count == 1
        eventually(lambda: is_moved(api), "it to be moved")
        assert_all_moved(api, {api.items("ns")[0].id: "own"})


def test_a_server_without_an_embedder_moves_nothing(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, flags=["--embedder", "none"]) as server:
        api = connect(server)
        api.add("ns", text="a heron")
        error = refusal(api.admin.Reembed, admin_pb2.ReembedRequest(namespace="ns"))
        assert error.reason == "EMBEDDER_REQUIRED"
    with start_local(tmp_path) as server:
        api = connect(server)
        assert reembed(api).embedding_model == LOCAL
        eventually(lambda: api.stats("ns").embedded_count == 1, "what was written without one to be embedded")


def test_documents_move_with_their_fragments(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    with start_local(tmp_path) as server:
        api = connect(server)
        knowledge = knowledge_pb2_grpc.KnowledgeServiceStub(api.channel)
        document = knowledge_pb2.Document(text="A heron waits. " * 300)
        knowledge.AddDocument(knowledge_pb2.AddDocumentRequest(namespace="ns", document=document))
        embedded = api.stats("ns").embedded_count
    with start(provider, tmp_path) as server:
        api = connect(server)
        # The document's own text is not embedded, but its fragments are.
        assert reembed(api).pending_count == embedded + 1
        eventually(lambda: api.stats("ns").pending_count == 0, "all to be moved")
        assert api.stats("ns").embedded_count == embedded
