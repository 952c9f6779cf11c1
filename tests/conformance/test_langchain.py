"""LangChain's standard tests of stores, vector stores and retrievers, and what they leave out."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_tests.integration_tests import (
    BaseStoreAsyncTests,
    BaseStoreSyncTests,
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

from memory_client import AsyncMemoryClient, InvalidArgument, MemoryClient, chat_message
from memory_client.langchain import MemoryServiceByteStore, MemoryServiceRetriever, MemoryServiceVectorStore


class _ByteStore:
    @pytest.fixture
    def kv_store(self, memory: MemoryClient) -> MemoryServiceByteStore:
        return MemoryServiceByteStore(memory)

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return b"foo", b"\0\xff", b""


class TestByteStore(_ByteStore, BaseStoreSyncTests[bytes]):
    """LangChain's tests of synchronous calls."""


class TestAsyncByteStore(_ByteStore, BaseStoreAsyncTests[bytes]):
    """LangChain's tests of asynchronous calls."""


class TestVectorStoreWithEmbedding(VectorStoreIntegrationTests):
    """LangChain's tests, with vectors of an embedding."""

    @pytest.fixture
    def vectorstore(self, memory: MemoryClient) -> MemoryServiceVectorStore:
        return MemoryServiceVectorStore(memory, self.get_embeddings())


class TestVectorStoreWithoutEmbedding(VectorStoreIntegrationTests):
    """LangChain's tests, with searches by the server's words and vectors."""

    @pytest.fixture
    def vectorstore(self, address: str, namespace: str) -> MemoryServiceVectorStore:
        return MemoryServiceVectorStore(address, namespace=namespace)


class TestRetriever(RetrieversIntegrationTests):
    """LangChain's tests of retrievers."""

    @pytest.fixture(autouse=True)
    def _add_notes(self, memory: MemoryClient) -> None:
        self._memory = memory
        memory.batch_add([f"Ada drinks tea number {number}" for number in range(5)])

    @property
    def retriever_constructor(self) -> type[MemoryServiceRetriever]:
        return MemoryServiceRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"client": self._memory}

    @property
    def retriever_query_example(self) -> str:
        return "what does Ada drink?"


def test_a_byte_store_takes_more_than_a_batch(memory: MemoryClient) -> None:
    store = MemoryServiceByteStore(memory)
    values = {f"key {number}": bytes([number % 256]) * 20_000 for number in range(700)}
    store.mset(list(values.items()))
    assert sorted(store.yield_keys(prefix="key ")) == sorted(values)
    assert store.mget(["key 0", "key 699", "none"]) == [values["key 0"], values["key 699"], None]
    store.mdelete([*values, "none"])
    assert list(store.yield_keys()) == []


@pytest.mark.parametrize("text", ["", "é" * 50_000, '{"role": "user"}'])
@pytest.mark.parametrize("is_embedded", [True, False])
def test_any_text_comes_back(memory: MemoryClient, text: str, is_embedded: bool) -> None:
    store = MemoryServiceVectorStore(memory, DeterministicFakeEmbedding(size=8) if is_embedded else None)
    metadata = {"role": "user", "content": [1, {"a": None}]}
    (id,) = store.add_texts([text], [metadata])
    assert store.get_by_ids([id]) == [Document(id=id, page_content=text, metadata=metadata)]


def test_documents_alone_are_found_and_deleted(memory: MemoryClient) -> None:
    memory.add("Ada likes tea", id="note")
    store = MemoryServiceVectorStore(memory)
    store.add_texts(["Ada likes green tea", "Ada likes coffee"], [{"n": 1}, {"n": 2}], ids=["1", "2"])
    assert [each.id for each in store.similarity_search("tea")] == ["1", "2"]
    assert [each.id for each in store.similarity_search("tea", filter={"n": {"$gt": 1}})] == ["2"]
    assert [each.id for each in store.similarity_search("tea", filter="metadata.n = 1")] == ["1"]
    scores = [score for _, score in store.similarity_search_with_relevance_scores("tea")]
    assert scores[0] > 0.5 > scores[1] >= 0
    retriever = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.5}
    )
    assert [each.id for each in retriever.invoke("tea")] == ["1"]
    store.delete()
    assert [item.id for item in memory.list_items()] == ["note"]


async def test_marginal_relevance_prefers_what_differs(address: str, namespace: str) -> None:
    class Plane(DeterministicFakeEmbedding):
        """Vectors of texts such as "1,0"."""

        def embed_query(self, text: str) -> list[float]:
            return [float(each) for each in text.split(",")]

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

    async with AsyncMemoryClient(address, namespace=namespace) as client:
        store = await MemoryServiceVectorStore.afrom_texts(
            ["1,0", "1,0.01", "0.7,0.7"], Plane(size=2), client=client
        )
        found = await store.amax_marginal_relevance_search("1,0", k=2, lambda_mult=0.2)
        assert [each.page_content for each in found] == ["1,0", "0.7,0.7"]
        assert [each.page_content for each in await store.asimilarity_search("1,0", k=2)] == ["1,0", "1,0.01"]
        with pytest.raises(InvalidArgument, match="embedding"):
            await MemoryServiceVectorStore(client).amax_marginal_relevance_search("1,0")


def test_a_retriever_finds_what_other_clients_wrote(
    memory: MemoryClient, address: str, namespace: str
) -> None:
    memory.add(chat_message("user", "I moved to Paris", name="Ada"), session_id="trip", metadata={"n": 1})
    memory.save_memory("I live in Paris", "identity", "Where the user lives")
    with MemoryServiceRetriever(address, namespace=namespace, k=1) as retriever:
        (found,) = retriever.invoke("who moved?")
        assert found.page_content == "I moved to Paris"
        assert found.metadata["speaker"] == "Ada"
        assert found.metadata["n"] == 1
        (fact,) = retriever.invoke("where?", kinds=["user_memory"])
        assert fact.page_content == "User lives in Paris"
        assert retriever.invoke(f"{uuid.uuid4()}", min_relevance=0.9) == []
