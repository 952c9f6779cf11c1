"""A retriever of LangChain on a memory server."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, PrivateAttr

from memory_client._both_clients import BothClients, Closing, Steps, calling
from memory_client.aio import AsyncMemoryClient
from memory_client.client import MemoryClient


class MemoryServiceRetriever(Closing, BaseRetriever):
    """A retriever of anything in a namespace: notes, messages, facts, fragments of documents and files.

    The metadata of a document are those of its item, with `score`, `relevance`, `speaker` and `create_time`.
    """

    k: int = 4
    """Number of documents."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Further options of `MemoryClient.retrieve`, such as `kinds`, `filter`, `min_relevance` and `rerank`."""
    _clients: BothClients = PrivateAttr()

    def __init__(
        self, client: MemoryClient | AsyncMemoryClient | str, *, namespace: str | None = None, **settings: Any
    ) -> None:
        """Take a client, which stays open, or an address. `namespace` None: the client's, or "default"."""
        super().__init__(**settings)
        self._clients = BothClients(client, namespace)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return self._clients.run(self._found(query, **kwargs))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return await self._clients.arun(self._found(query, **kwargs))

    def _found(self, query: str, k: int | None = None, **options: Any) -> Steps[list[Document]]:
        limit = self.k if k is None else k
        found = yield calling("retrieve", query, limit=limit, **{**self.options, **options})
        documents = []
        for each in found:
            metadata = {
                "score": each.score,
                "relevance": each.relevance,
                "speaker": each.item.speaker,
                "create_time": each.item.create_time,
                **each.item.metadata,
            }
            documents.append(Document(id=each.item.id, page_content=each.text, metadata=metadata))
        return documents
