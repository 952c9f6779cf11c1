"""A vector store of LangChain on a memory server."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from memory_client._both_clients import BothClients, Closing, Steps, calling, embedded, embedded_query
from memory_client._langchain_byte_store import in_batches
from memory_client._mapping_filters import filter_of
from memory_client.aio import AsyncMemoryClient
from memory_client.client import MemoryClient
from memory_client.errors import NotFound, invalid
from memory_client.models import MemoryItem, OnDuplicate, Result
from memory_client.operations import AddOperation, DeleteOperation

_LABEL = {"langchain": "document"}
_TEXT_BYTES_MAX = 65_536


class MemoryServiceVectorStore(Closing, VectorStore):
    """A `VectorStore` whose documents are plain items with the label `langchain`.

    With `embedding`, searches compare its vectors by cosine; then nothing else may write vectors to this
    namespace of the server. Without it, the server searches by words and its own vectors.
    """

    def __init__(
        self,
        client: MemoryClient | AsyncMemoryClient | str,
        embedding: Embeddings | None = None,
        *,
        namespace: str | None = None,
    ) -> None:
        """Take a client, which stays open, or an address. `namespace` None: the client's, or "default"."""
        self._clients = BothClients(client, namespace)
        self._embedding = embedding

    @property
    def embeddings(self) -> Embeddings | None:
        """What makes the vectors. None: the server."""
        return self._embedding

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        client: MemoryClient | AsyncMemoryClient | str,
        namespace: str | None = None,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make a store and add texts to it."""
        store = cls(client, embedding, namespace=namespace)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        client: MemoryClient | AsyncMemoryClient | str,
        namespace: str | None = None,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """As `from_texts`."""
        store = cls(client, embedding, namespace=namespace)
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    def add_documents(self, documents: list[Document], *, ids: Any = None, **kwargs: Any) -> list[str]:
        """Add documents, or replace those of the same ids; return the ids. Atomic up to 500 and 8 MB."""
        return self._clients.run(self._add(documents, ids))

    async def aadd_documents(self, documents: list[Document], *, ids: Any = None, **kwargs: Any) -> list[str]:
        """As `add_documents`."""
        return await self._clients.arun(self._add(documents, ids))

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """As `add_texts`."""
        given = list(texts)
        about = metadatas or [{} for _ in given]
        if len(about) != len(given):
            raise invalid("metadatas", f"must be {len(given)}, as the texts, not {len(about)}")
        pairs = zip(given, about, strict=True)
        documents = [Document(page_content=text, metadata=metadata) for text, metadata in pairs]
        return await self.aadd_documents(documents, ids=ids)

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents of these ids, without those that do not exist."""
        return self._clients.run(_got(ids))

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """As `get_by_ids`."""
        return await self._clients.arun(_got(ids))

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete documents, also missing ones. None: all documents of LangChain in the namespace."""
        return self._clients.run(_deleted(ids))

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """As `delete`."""
        return await self._clients.arun(_deleted(ids))

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the `k` best documents.

        `filter` is a mapping of metadata to values, or of {"$gt": …} and the like, or an expression of the
        server, as in docs/filters.md.
        """
        return [_document(each) for each in self._clients.run(self._search(query, k, **kwargs))]

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """As `similarity_search`."""
        return [_document(each) for each in await self._clients.arun(self._search(query, k, **kwargs))]

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        """As `similarity_search`, with scores: cosines with an embedding, else 0 to 1; higher is better."""
        return [(_document(each), each.score) for each in self._clients.run(self._search(query, k, **kwargs))]

    async def asimilarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        """As `similarity_search_with_score`."""
        found = await self._clients.arun(self._search(query, k, **kwargs))
        return [(_document(each), each.score) for each in found]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Return the documents whose vectors are nearest."""
        return [_document(each) for each in self._clients.run(self._search(embedding, k, **kwargs))]

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """As `similarity_search_by_vector`."""
        return [_document(each) for each in await self._clients.arun(self._search(embedding, k, **kwargs))]

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return documents that are near and differ from each other."""
        return self._clients.run(self._diverse(embedding, k, fetch_k, lambda_mult, **kwargs))

    async def amax_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """As `max_marginal_relevance_search_by_vector`."""
        return await self._clients.arun(self._diverse(embedding, k, fetch_k, lambda_mult, **kwargs))

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return documents that answer the query and differ from each other. Needs an embedding."""
        return self._clients.run(self._diverse(query, k, fetch_k, lambda_mult, **kwargs))

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """As `max_marginal_relevance_search`."""
        return await self._clients.arun(self._diverse(query, k, fetch_k, lambda_mult, **kwargs))

    def _similarity_search_with_relevance_scores(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        found = self._clients.run(self._search(query, k, **kwargs))
        return [(_document(each), self._relevance(each)) for each in found]

    async def _asimilarity_search_with_relevance_scores(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        found = await self._clients.arun(self._search(query, k, **kwargs))
        return [(_document(each), self._relevance(each)) for each in found]

    def _relevance(self, result: Result) -> float:
        return result.relevance if self._embedding is None else min(1.0, max(0.0, result.score))

    def _add(self, documents: Sequence[Document], ids: Sequence[str | None] | None) -> Steps[list[str]]:
        if ids is not None and len(ids) != len(documents):
            raise invalid("ids", f"must be {len(documents)}, as the documents, not {len(ids)}")
        names = [given or str(uuid.uuid4()) for given in ids or [each.id for each in documents]]
        texts = [each.page_content for each in documents]
        vectors: list[Any] = [None] * len(texts)
        if self._embedding is not None and texts:
            vectors = yield from embedded(self._embedding, texts)
        last: dict[str, tuple[AddOperation, int]] = {}
        for id, document, vector in zip(names, documents, vectors, strict=True):
            item = _item(id, document, vector)
            size = len(document.page_content) * 3 + (0 if vector is None else 4 * len(vector))
            last[id] = (AddOperation(item, OnDuplicate.REPLACE), size)
        yield from in_batches(list(last.values()))
        return names

    def _search(
        self, query: str | list[float], k: int, filter: Mapping[str, Any] | str | None = None, **kwargs: Any
    ) -> Steps[list[Result]]:
        condition = filter if isinstance(filter, str) else filter_of("metadata", filter)
        if isinstance(query, str) and self._embedding is None:
            how: dict[str, Any] = {"query": query, "neighbour_weight": 0.0}
        else:
            vector = query
            if isinstance(query, str):
                vector = yield from embedded_query(self._embedding, query)
            how = {"embedding": vector, "mode": "vector"}
        options = {"limit": k, "labels": _LABEL, "filter": condition, **how, **kwargs}
        found: list[Result] = yield calling("retrieve", **options)
        return found

    def _diverse(
        self, query: str | list[float], k: int, fetch_k: int, lambda_mult: float, **kwargs: Any
    ) -> Steps[list[Document]]:
        vector = query
        if isinstance(query, str):
            if self._embedding is None:
                raise invalid("embedding", "is needed for a search by maximal marginal relevance")
            vector = yield from embedded_query(self._embedding, query)
        assert not isinstance(vector, str)
        import numpy as np  # LangChain needs it for this search only.

        found = yield from self._search(vector, fetch_k, include_embedding=True, **kwargs)
        vectors = [list(each.item.embedding) for each in found]  # type: ignore[arg-type]
        chosen = maximal_marginal_relevance(np.array(vector), vectors, lambda_mult, k) if vectors else []
        return [_document(found[number]) for number in chosen]


def _item(id: str, document: Document, vector: Any) -> MemoryItem:
    text = document.page_content
    is_text = 0 < len(text.encode()) <= _TEXT_BYTES_MAX
    index = None if is_text else text.encode()[:_TEXT_BYTES_MAX].decode(errors="ignore")
    return MemoryItem(
        id=id,
        content=text if is_text else {"page_content": text},
        metadata=document.metadata,
        labels=_LABEL,
        embedding=None if index == "" else vector,
        index=index,
    )


def _document(found: Result | MemoryItem) -> Document:
    item = found.item if isinstance(found, Result) else found
    content = item.content
    text = content["page_content"] if isinstance(content, Mapping) else item.text
    return Document(id=item.id, page_content=text, metadata=dict(item.metadata))


def _got(ids: Sequence[str]) -> Steps[list[Document]]:
    documents = []
    for id in ids:
        try:
            documents.append(_document((yield calling("get", id))))
        except NotFound:
            continue
    return documents


def _deleted(ids: Sequence[str] | None) -> Steps[bool]:
    if ids is None:
        yield calling("delete_where", labels=_LABEL)
    else:
        yield from in_batches([(DeleteOperation(id, allow_missing=True), 0) for id in dict.fromkeys(ids)])
    return True
