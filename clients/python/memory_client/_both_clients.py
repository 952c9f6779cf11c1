"""Both kinds of client for the adapters of frameworks, and steps that either can run."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import fields
from functools import cached_property
from typing import Any, Self, TypeAlias, TypeVar

from memory_client.aio import AsyncMemoryClient
from memory_client.client import MemoryClient
from memory_client.errors import invalid
from memory_client.options import ClientOptions

T = TypeVar("T")
Steps: TypeAlias = Generator[Callable[[Any], Any], Any, T]
"""Yields functions of a client, receives their results, and returns a value. It is written once and run by
either client: each function calls a method that both clients have."""


class BothClients:
    """A synchronous and an asynchronous client of one namespace, each made at its first use.

    Made from a client, the other one has its settings. `close` and `aclose` close only clients made here.
    """

    def __init__(self, client: MemoryClient | AsyncMemoryClient | str, namespace: str | None) -> None:
        """Take a client, or the address of a server.

        Args:
            client: A client, which stays open, or an address.
            namespace: None: the client's, or "default" for an address.

        Raises:
            InvalidArgument: The first argument is neither, or the namespace is malformed.
        """
        self._is_async = isinstance(client, AsyncMemoryClient)
        self._made: list[MemoryClient | AsyncMemoryClient] = []
        self._settings: dict[str, Any] = {"namespace": "default" if namespace is None else namespace}
        if isinstance(client, str):
            self._settings["address"] = client
        elif isinstance(client, MemoryClient | AsyncMemoryClient):
            bound = client if namespace is None else client.namespace(namespace)
            options = client._transport.options
            self._settings = {each.name: getattr(options, each.name) for each in fields(ClientOptions)}
            self._settings["namespace"] = bound._namespace
            # Takes the place of the cached property.
            self.__dict__["aio" if self._is_async else "sync"] = bound
        else:
            raise invalid("client", f"must be a client or an address, not {type(client).__name__}")

    @cached_property
    def sync(self) -> MemoryClient:
        """The synchronous client."""
        client = MemoryClient(**self._settings)
        self._made.append(client)
        return client

    @cached_property
    def aio(self) -> AsyncMemoryClient:
        """The asynchronous client."""
        client = AsyncMemoryClient(**self._settings)
        self._made.append(client)
        return client

    def _check_thread(self) -> None:
        if self._is_async:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return
            raise asyncio.InvalidStateError("a synchronous call would block the event loop: await the other")

    def run(self, steps: Steps[T]) -> T:
        """Run steps with the synchronous client.

        Raises:
            asyncio.InvalidStateError: In an event loop's thread, if an asynchronous client was given.
        """
        self._check_thread()
        try:
            step = next(steps)
            while True:
                try:
                    result = step(self.sync)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            value: T = end.value
            return value

    async def arun(self, steps: Steps[T]) -> T:
        """Run steps with the asynchronous client."""
        try:
            step = next(steps)
            while True:
                try:
                    result = step(self.aio)
                    if inspect.isawaitable(result):
                        result = await result
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            value: T = end.value
            return value

    def close(self) -> None:
        """Close the synchronous client, if it was made here."""
        for client in self._made:
            if isinstance(client, MemoryClient):
                client.close()

    async def aclose(self) -> None:
        """Close the clients that were made here."""
        self.close()
        for client in self._made:
            if isinstance(client, AsyncMemoryClient):
                await client.close()


class Closing:
    """An adapter over both clients that closes those it made."""

    _clients: BothClients

    def close(self) -> None:
        """Close the synchronous client, unless it was given."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the clients, unless they were given."""
        await self._clients.aclose()

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the synchronous client, unless it was given."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return the object itself."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the clients, unless they were given."""
        await self.aclose()


def reading(
    method: str, is_enough: Callable[[T], bool], *arguments: Any, **named: Any
) -> Callable[[Any], Any]:
    """Return a step that passes the entries which a method yields to `is_enough`, until it returns True."""

    def step(client: MemoryClient | AsyncMemoryClient) -> Any:
        entries: Iterator[T] | AsyncIterator[T] = getattr(client, method)(*arguments, **named)
        if isinstance(entries, AsyncIterator):
            return _aentries_of(entries, is_enough)
        any(is_enough(entry) for entry in entries)
        return None

    return step


async def _aentries_of(entries: AsyncIterator[T], is_enough: Callable[[T], bool]) -> None:
    async for entry in entries:
        if is_enough(entry):
            break


def calling(method: str, *arguments: Any, **named: Any) -> Callable[[Any], Any]:
    """Return a step that calls a method of the client."""
    return lambda client: getattr(client, method)(*arguments, **named)


def embedded(embeddings: Any, texts: list[str]) -> Steps[list[Any]]:
    """Return the vectors that LangChain's `Embeddings` make of texts."""
    vectors: list[Any] = yield _embedding(embeddings, "embed_documents", texts)
    return vectors


def embedded_query(embeddings: Any, text: str) -> Steps[Any]:
    """Return the vector that LangChain's `Embeddings` make of a query."""
    return (yield _embedding(embeddings, "embed_query", text))


def _embedding(embeddings: Any, method: str, given: Any) -> Callable[[Any], Any]:
    return lambda client: getattr(
        embeddings, f"a{method}" if isinstance(client, AsyncMemoryClient) else method
    )(given)
