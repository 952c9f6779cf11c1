"""Long-term memory and checkpoints of LangGraph on a memory server. Needs the extra `langgraph`.

with MemoryServiceStore("127.0.0.1:50051", namespace="ada") as store:
    graph = builder.compile(store=store)
"""

from __future__ import annotations

from memory_client._langgraph_store import MemoryServiceStore

__all__ = ["MemoryServiceStore"]
