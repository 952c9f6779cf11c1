"""A byte store of LangChain on a memory server."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.stores import BaseStore

from memory_client._both_clients import BothClients, Closing, Steps, calling
from memory_client.aio import AsyncMemoryClient
from memory_client.client import MemoryClient
from memory_client.errors import NotFound
from memory_client.operations import DeleteStateOperation, SaveStateOperation

_OPERATIONS_MAX = 500
"""Operations of a batch: the server takes 1000; with fewer, a long one takes turns with other writes."""
_BATCH_BYTES_MAX = 8_000_000
"""Bytes of a batch: a request may have 16 MiB."""
_READS_AT_ONCE = 32
"""Calls side by side: more would wait at the server, fewer leave it idle."""


class MemoryServiceByteStore(Closing, BaseStore[str, bytes]):
    """A `ByteStore`, such as for `CacheBackedEmbeddings`: values under keys of the server's states.

    A key has up to 512 bytes, a value about 780 kB. `mset` and `mdelete` are atomic up to 500 keys and 8 MB.
    """

    def __init__(
        self, client: MemoryClient | AsyncMemoryClient | str, *, namespace: str | None = None
    ) -> None:
        """Take a client, which stays open, or an address. `namespace` None: the client's, or "default"."""
        self._clients = BothClients(client, namespace)

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return the values of keys, None for those without."""
        return [self._clients.run(_loaded(key)) for key in keys]

    async def amget(self, keys: Sequence[str]) -> list[bytes | None]:
        """As `mget`, side by side."""
        at_once = asyncio.Semaphore(_READS_AT_ONCE)

        async def load(key: str) -> bytes | None:
            async with at_once:
                return await self._clients.arun(_loaded(key))

        return list(await asyncio.gather(*map(load, keys)))

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Write values; of a key given twice the last."""
        self._clients.run(_saved(key_value_pairs))

    async def amset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """As `mset`."""
        await self._clients.arun(_saved(key_value_pairs))

    def mdelete(self, keys: Sequence[str]) -> None:
        """Delete keys, also missing ones."""
        self._clients.run(
            in_batches([(DeleteStateOperation(key, allow_missing=True), 0) for key in set(keys)])
        )

    async def amdelete(self, keys: Sequence[str]) -> None:
        """As `mdelete`."""
        deletions = [(DeleteStateOperation(key, allow_missing=True), 0) for key in set(keys)]
        await self._clients.arun(in_batches(deletions))

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield the keys that begin with `prefix`, in order."""
        for entry in self._clients.sync.list_state_keys(prefix=prefix or "", page_size=1000):
            yield entry.key

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """As `yield_keys`."""
        async for entry in self._clients.aio.list_state_keys(prefix=prefix or "", page_size=1000):
            yield entry.key


def _loaded(key: str) -> Steps[bytes | None]:
    try:
        entry = yield calling("load_state", key)
    except NotFound:
        return None
    return base64.b64decode(entry.value)


def _saved(pairs: Sequence[tuple[str, bytes]]) -> Steps[None]:
    encoded = {key: base64.b64encode(value).decode() for key, value in pairs}
    yield from in_batches(
        [(SaveStateOperation(key, value), len(key) + len(value)) for key, value in encoded.items()]
    )


def in_batches(operations: Sequence[tuple[Any, int]]) -> Steps[None]:
    """Run operations, given with their sizes."""
    batch: list[Any] = []
    total = 0
    for operation, size in operations:
        if batch and (len(batch) >= _OPERATIONS_MAX or total + size > _BATCH_BYTES_MAX):
            yield calling("batch_write", batch)
            batch, total = [], 0
        batch.append(operation)
        total += size
    if batch:
        yield calling("batch_write", batch)
