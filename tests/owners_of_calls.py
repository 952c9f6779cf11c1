"""Serves a call of a namespace: prints whether others were here, as seen by that namespace and by another."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

from memory_client import MemoryClient
from memory_service.config import Config
from memory_service.giving_way import others_were_here
from memory_service.runtime.caller import Owner
from memory_service.server.logs import configure_logging
from memory_service.server.server import run


def _search(address: str, namespace: str) -> None:
    with MemoryClient(address, namespace=namespace) as memory:
        memory.retrieve("kiwi", limit=1)


async def main() -> None:
    """Serve until the call is answered."""
    namespace = sys.argv[1]
    configure_logging("error")
    listening = asyncio.get_running_loop().create_future()
    config = Config(address="127.0.0.1:0", store="memory")
    serving = asyncio.create_task(run(config, lambda address, _: listening.set_result(address)))
    address = await listening
    before = time.perf_counter()
    await asyncio.to_thread(_search, address, namespace)
    print(
        *(int(others_were_here(Owner("", seen_by), before)) for seen_by in (namespace.encode(), b"another"))
    )
    os.kill(os.getpid(), signal.SIGTERM)
    await serving


asyncio.run(main())
