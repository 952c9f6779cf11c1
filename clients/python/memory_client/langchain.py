"""LangChain's byte store, vector store and retriever on a memory server. Needs the extra `langchain`.

with MemoryServiceVectorStore("127.0.0.1:50051", namespace="ada") as store:
    store.add_texts(["Ada likes tea"])
    print(store.similarity_search("what does she drink?"))
"""

from __future__ import annotations

from memory_client._langchain_byte_store import MemoryServiceByteStore
from memory_client._langchain_retriever import MemoryServiceRetriever
from memory_client._langchain_vector_store import MemoryServiceVectorStore

__all__ = ["MemoryServiceByteStore", "MemoryServiceRetriever", "MemoryServiceVectorStore"]
