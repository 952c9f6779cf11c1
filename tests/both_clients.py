"""Clients for tests: the asynchronous one with methods that are called like the synchronous one's."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from memory_client import AsyncMemoryClient, MemoryClient
from server_process import ServerProcess


class Blocking:
    """An asynchronous client whose methods are called like those of the synchronous one."""

    def __init__(self, runner: asyncio.Runner, client: AsyncMemoryClient) -> None:
        self._runner = runner
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*arguments: Any, **fields: Any) -> Any:
            answer = method(*arguments, **fields)
            return self._runner.run(answer if inspect.isawaitable(answer) else _listed(answer))

        return call


async def _listed(entries: AsyncIterator[Any]) -> list[Any]:
    return [entry async for entry in entries]


def connected(server: ServerProcess, namespace: str, kind: str) -> Iterator[Any]:
    """A client of the kind that is asked for."""
    if kind == "sync":
        with MemoryClient(server.address, namespace=namespace) as client:
            yield client
        return
    with asyncio.Runner() as runner:
        client = AsyncMemoryClient(server.address, namespace=namespace)
        yield Blocking(runner, client)
        runner.run(client.close())
