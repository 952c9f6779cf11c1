"""What the adapters for frameworks share: their client, and changes that a cancellation cannot interrupt."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from hashlib import sha256
from types import TracebackType
from typing import Any, Self, TypeVar

from memory_client.aio import AsyncMemoryClient
from memory_client.client import MemoryClient
from memory_client.errors import invalid

T = TypeVar("T")

_RESERVED = re.compile(r"[%/*?\[\]\\]")
_LABEL_BYTES = 256


def quoted(name: str) -> str:
    """Return a name as a part of a state's key: without "/" and what patterns of keys give a meaning.

    `urllib.parse.unquote` returns the name.
    """
    return _RESERVED.sub(lambda found: f"%{ord(found[0]):02X}", name)


def label_of(*names: str) -> str:
    """Return names as one value of a label, or of `session_id`: a hash if they are too long for it."""
    value = "/".join(map(quoted, names))
    packed = value.encode(errors="replace")
    return value if len(packed) <= _LABEL_BYTES else sha256(packed).hexdigest()


class AsyncAdapter:
    """An adapter over an asynchronous client: one that is given, or one that it makes and closes itself."""

    _client: AsyncMemoryClient

    def _connect(self, client: AsyncMemoryClient | str, namespace: str | None) -> None:
        """Keep the client, or make one for an address, bound to the namespace.

        Args:
            client: A client, which stays open, or an address.
            namespace: None: the client's, or "default" for an address.

        Raises:
            InvalidArgument: The first argument is neither, or the namespace is malformed.
        """
        self._owns_client = isinstance(client, str)
        if isinstance(client, str):
            self._client = AsyncMemoryClient(client, namespace="default" if namespace is None else namespace)
        elif isinstance(client, AsyncMemoryClient):
            self._client = client if namespace is None else client.namespace(namespace)
        else:
            raise invalid(
                "client", f"must be an AsyncMemoryClient or an address, not {type(client).__name__}"
            )

    async def aclose(self) -> None:
        """Close the client if the adapter made it."""
        if self._owns_client:
            await self._client.close()

    async def __aenter__(self) -> Self:
        """Return the adapter itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client if the adapter made it."""
        await self.aclose()


class Adapter:
    """An adapter over a synchronous client: one that is given, or one that it makes and closes itself."""

    _client: MemoryClient

    def _connect(self, client: MemoryClient | str, namespace: str | None) -> None:
        """Do as `AsyncAdapter` does, with a `MemoryClient`."""
        self._owns_client = isinstance(client, str)
        if isinstance(client, str):
            self._client = MemoryClient(client, namespace="default" if namespace is None else namespace)
        elif isinstance(client, MemoryClient):
            self._client = client if namespace is None else client.namespace(namespace)
        else:
            raise invalid("client", f"must be a MemoryClient or an address, not {type(client).__name__}")

    def close(self) -> None:
        """Close the client if the adapter made it."""
        if self._owns_client:
            self._client.close()

    def __enter__(self) -> Self:
        """Return the adapter itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client if the adapter made it."""
        self.close()


async def completed(change: Coroutine[Any, Any, T]) -> T:
    """Run a change to its end even if the caller is cancelled meanwhile; then raise the cancellation."""
    task = asyncio.ensure_future(change)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # Otherwise asyncio logs that it was never retrieved.
        raise cancelled
    return task.result()
