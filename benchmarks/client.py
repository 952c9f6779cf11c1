"""A light client: it sends already serialized requests and does not look at the responses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc.aio

from benchmarks.processes import ServerProcess
from benchmarks.settings import BURST_TIMEOUT_S, CALL_TIMEOUT_S, IMPORT_TIMEOUT_S
from memory_service.v1 import admin_pb2, memory_pb2

Call = Callable[[bytes], Awaitable[bytes]]

_OPTIONS = (
    # Servers start and stop on ports that may be reused, so no connection outlives its channel.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
)


class Client:
    """One connection to the memory server or the bare server, with a token if one is given."""

    def __init__(self, address: str, token: str = "") -> None:
        self._metadata = (("authorization", f"Bearer {token}"),) if token else None
        self._channel = grpc.aio.insecure_channel(address, options=_OPTIONS)
        self.add = self._unary("MemoryService/Add")
        self.batch_add = self._unary("MemoryService/BatchAdd")
        self.retrieve = self._unary("MemoryService/Retrieve")
        self.update = self._unary("MemoryService/Update")
        self.delete = self._unary("MemoryService/Delete")
        self._stats = self._unary("AdminService/GetNamespaceStats")

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._channel.close()

    def _unary(self, method: str) -> Call:
        # Without (de)serializers, requests and responses are bytes.
        call: Callable[..., Awaitable[bytes]] = self._channel.unary_unary(f"/memory_service.v1.{method}")

        def send(request: bytes) -> Awaitable[bytes]:
            return call(request, timeout=CALL_TIMEOUT_S, metadata=self._metadata)

        return send

    async def stats(self, namespace: str) -> admin_pb2.GetNamespaceStatsResponse:
        """Return the counts and the kind of search of the namespace."""
        request = admin_pb2.GetNamespaceStatsRequest(namespace=namespace)
        answer = await self._stats(request.SerializeToString())
        return admin_pb2.GetNamespaceStatsResponse.FromString(answer)

    async def import_all(self, messages: Iterable[bytes]) -> memory_pb2.ImportResponse:
        """Send the messages in one Import."""

        async def stream() -> AsyncIterator[bytes]:
            for message in messages:
                yield message

        call: Any = self._channel.stream_unary("/memory_service.v1.MemoryService/Import")
        answer: bytes = await call(stream(), timeout=IMPORT_TIMEOUT_S, metadata=self._metadata)
        return memory_pb2.ImportResponse.FromString(answer)


@dataclass
class Load:
    """Number, time and latencies of a burst of calls."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """Number of calls made."""
        return len(self.latencies)

    @property
    def rate(self) -> float:
        """Calls per second."""
        return self.calls / self.seconds

    def percentile(self, share: float) -> float:
        """The latency in seconds that this share of the calls did not exceed."""
        return sorted(self.latencies)[min(int(share * self.calls), self.calls - 1)]


async def drive(
    call: Call,
    requests: Sequence[bytes],
    *,
    calls: int,
    in_flight: int,
    limit_s: float = BURST_TIMEOUT_S,
    pause_s: float = 0.0,
) -> Load:
    """Make calls, always `in_flight` at a time, until their number or the time limit is reached.

    The requests are sent in order, starting again from the first when they run out. Each caller pauses for
    `pause_s` between its calls.
    """
    load = Load()
    numbers = iter(range(calls))
    began = time.perf_counter()
    stop = began + limit_s

    async def work() -> None:
        for number in numbers:
            sent = time.perf_counter()
            if sent > stop:
                return
            await call(requests[number % len(requests)])
            load.latencies.append(time.perf_counter() - sent)
            if pause_s:
                await asyncio.sleep(pause_s)

    await asyncio.gather(*(work() for _ in range(in_flight)))
    load.seconds = time.perf_counter() - began
    return load


async def ask_all(call: Call, requests: Sequence[bytes], in_flight: int) -> list[bytes]:
    """Make every call once and return the responses in the order of the requests."""
    answers = [b""] * len(requests)
    numbers = iter(range(len(requests)))

    async def work(mine: Iterator[int]) -> None:
        for number in mine:
            answers[number] = await call(requests[number])

    await asyncio.gather(*(work(numbers) for _ in range(in_flight)))
    return answers


@dataclass(frozen=True)
class Burst:
    """A burst of calls and the server CPU that it used."""

    load: Load
    cpu_per_call: float


async def measured_burst(
    server: ServerProcess,
    call: Call,
    requests: Sequence[bytes],
    *,
    calls: int,
    in_flight: int,
    limit_s: float = BURST_TIMEOUT_S,
) -> Burst:
    """Make calls and divide the CPU of the server's process by their number."""
    before = server.cpu_seconds()
    load = await drive(call, requests, calls=calls, in_flight=in_flight, limit_s=limit_s)
    return Burst(load, (server.cpu_seconds() - before) / load.calls)
