"""Long-term memory and checkpoints of LangGraph on a memory server. Needs the extra `langgraph`.

with MemoryServiceStore("127.0.0.1:50051", namespace="ada") as store:
    with MemoryServiceSaver("127.0.0.1:50051", namespace="ada/checkpoints") as saver:
        graph = builder.compile(checkpointer=saver, store=store)
"""

from __future__ import annotations

from memory_client._langgraph_saver import MemoryServiceSaver
from memory_client._langgraph_store import MemoryServiceStore

__all__ = ["MemoryServiceSaver", "MemoryServiceStore"]
