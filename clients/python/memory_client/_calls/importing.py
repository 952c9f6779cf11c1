"""The call of Import, with records gathered into batches."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TypeAlias

from memory_client._arguments import converting
from memory_client._calls.call import Call
from memory_client._gen.memory_service.v1 import memory_pb2
from memory_client.convert import degraded_to, imported_item_from, new_entry_from, on_duplicate_number
from memory_client.errors import invalid
from memory_client.models import ImportSummary, MemoryItem, OnDuplicate, StateEntry

Records: TypeAlias = Iterable[MemoryItem | StateEntry]
"""Records to import."""
AsyncRecords: TypeAlias = Records | AsyncIterable[MemoryItem | StateEntry]
"""Records to import with the asynchronous client, in either kind of iterable."""

BATCH_RECORDS = 500
"""Default maximum number of records in a batch."""
BATCH_BYTES = 2 * 1024 * 1024
"""Size in bytes from which a batch is sent."""
_RECORDS_MAX = 1000
"""Maximum number of records in a batch that the server takes."""


def import_call(namespace: str) -> Call[ImportSummary]:
    """Call Import; the requests come from a `Batcher`."""
    request = memory_pb2.ImportRequest(namespace=namespace)

    def read(response: memory_pb2.ImportResponse) -> ImportSummary:
        return ImportSummary(
            response.imported_count,
            response.skipped_count,
            response.imported_state_count,
            response.skipped_state_count,
            response.revision,
            degraded_to(response.degraded),
        )

    return Call("/memory_service.v1.MemoryService/Import", request, memory_pb2.ImportResponse, read)


class Batcher:
    """Gathers records into batches, bounded in number and in bytes."""

    def __init__(self, namespace: str, on_duplicate: OnDuplicate | str, batch_records: int) -> None:
        if not 1 <= batch_records <= _RECORDS_MAX:
            raise invalid("batch_records", f"must be 1 to {_RECORDS_MAX}, not {batch_records}")
        self._batch = memory_pb2.ImportRequest(
            namespace=namespace, on_duplicate=on_duplicate_number(on_duplicate)
        )
        self._batch_records = batch_records
        self._is_first = True
        self._bytes = 0
        self._number = 0

    def add(self, record: MemoryItem | StateEntry) -> memory_pb2.ImportRequest | None:
        """Take a record; return a batch if it is full."""
        with converting(record, MemoryItem | StateEntry, f"records[{self._number}]"):
            proto = imported_item_from(record) if isinstance(record, MemoryItem) else new_entry_from(record)
        self._number += 1
        size = proto.ByteSize()
        too_many = self._count() >= self._batch_records
        is_full = too_many or (self._count() > 0 and self._bytes + size > BATCH_BYTES)
        batch = self._take() if is_full else None
        if isinstance(proto, memory_pb2.MemoryItem):
            self._batch.items.append(proto)
        else:
            self._batch.states.append(proto)
        self._bytes += size
        return batch

    def rest(self) -> memory_pb2.ImportRequest | None:
        """Return the last batch. None: nothing is left to send.

        The first batch is sent even if it is empty: it names the namespace.
        """
        return self._take() if self._is_first or self._count() else None

    def _count(self) -> int:
        return len(self._batch.items) + len(self._batch.states)

    def _take(self) -> memory_pb2.ImportRequest:
        batch, self._batch = self._batch, memory_pb2.ImportRequest()
        self._bytes = 0
        self._is_first = False
        return batch


def batches(batcher: Batcher, records: Records) -> Iterator[memory_pb2.ImportRequest]:
    """Yield the records in batches."""
    for record in records:
        if batch := batcher.add(record):
            yield batch
    if batch := batcher.rest():
        yield batch


async def async_batches(batcher: Batcher, records: AsyncRecords) -> AsyncIterator[memory_pb2.ImportRequest]:
    """Yield the records of either kind of iterable in batches."""
    if isinstance(records, AsyncIterable):
        async for record in records:
            if batch := batcher.add(record):
                yield batch
    else:
        for record in records:
            if batch := batcher.add(record):
                yield batch
    if batch := batcher.rest():
        yield batch
