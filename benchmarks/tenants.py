"""Two tenants of one server: a large one, whose queries can be expensive, and a modest one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.bench import Bench, progress, settle
from benchmarks.client import Client
from benchmarks.items import import_messages
from benchmarks.processes import ServerProcess, memory_server
from benchmarks.settings import LIMIT
from benchmarks.table import count
from memory_service.v1 import memory_pb2

GREEDY, MODEST = "greedy", "modest"
MODEST_ITEMS = 100
QUESTION = "what did we say about the plan"


def query(namespace: str, text: str = QUESTION, limit: int = LIMIT) -> bytes:
    """Return a `RetrieveRequest` by text."""
    options = memory_pb2.RetrieveOptions(query_text=text, limit=limit)
    return memory_pb2.RetrieveRequest(namespace=namespace, options=options).SerializeToString()


@asynccontextmanager
async def two_tenants(bench: Bench) -> AsyncIterator[ServerProcess]:
    """Start a server that holds the items of both and has finished building its index."""
    progress(f"importing {count(bench.sizes.overload_items)} texts")
    with memory_server(bench.new_folder(), flags=("--health-address", "127.0.0.1:0")) as server:
        async with Client(server.address) as client:
            await client.import_all(list(import_messages(GREEDY, bench.sizes.overload_items, None)))
            await client.import_all(list(import_messages(MODEST, MODEST_ITEMS, None)))
            # Building a graph takes both cores.
            await settle(client, server, GREEDY)
        yield server
