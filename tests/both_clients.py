"""Clients for tests: the synchronous one, and the asynchronous one behind synchronous methods."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any

from memory_client import AsyncMemoryClient, MemoryClient


class Blocking:
    """An asynchronous client behind synchronous methods."""

    def __init__(self, runner: asyncio.Runner, client: AsyncMemoryClient) -> None:
        self._runner = runner
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*arguments: Any, **fields: Any) -> Any:
            answer = method(*arguments, **fields)
            if isinstance(answer, AsyncMemoryClient):
                return Blocking(self._runner, answer)
            if inspect.isawaitable(answer):
                return self._runner.run(answer)
            return _stepped(self._runner, answer)

        return call


def _stepped(runner: asyncio.Runner, entries: AsyncIterator[Any]) -> Iterator[Any]:
    """Yield the values of an asynchronous iterator, and close it when this one is closed."""
    end = object()
    try:
        while (entry := runner.run(_next_or(end, entries))) is not end:
            yield entry
    finally:
        if isinstance(entries, AsyncGenerator):
            runner.run(entries.aclose())


async def _next_or(end: object, entries: AsyncIterator[Any]) -> Any:
    return await anext(entries, end)


def connected(address: str, namespace: str, kind: str, **settings: Any) -> Iterator[Any]:
    """Yield a client of the given kind, and close it at the end."""
    if kind == "sync":
        with MemoryClient(address, namespace=namespace, **settings) as client:
            yield client
        return
    with asyncio.Runner() as runner:
        client = AsyncMemoryClient(address, namespace=namespace, **settings)
        yield Blocking(runner, client)
        runner.run(client.close())
