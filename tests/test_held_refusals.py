"""What a server does with those that it refuses: who is told first. No clock is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import grpc
import pytest

from memory_service.limits import Limits
from memory_service.server import refusals
from memory_service.server.call_guard import CallGuard
from memory_service.server.refusals import LARGE_BYTES
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import memory_pb2_grpc

LIMITS = Limits(concurrent_calls_max=1, waiting_calls_max=2)
ROOM = 3


class Busy(memory_pb2_grpc.MemoryServiceServicer):
    """A service whose calls take for ever."""

    async def Add(self, request: pb.AddRequest, context: object) -> pb.AddResponse:  # noqa: N802
        return await asyncio.Future()

    async def Watch(  # noqa: N802
        self, request: pb.WatchRequest, context: object
    ) -> AsyncIterator[pb.WatchResponse]:
        await asyncio.Future()
        yield pb.WatchResponse()


class Full:
    """A server that has no room for another call."""

    def __init__(self, guard: CallGuard, channel: grpc.aio.Channel) -> None:
        self.guard = guard
        self._stub: Any = memory_pb2_grpc.MemoryServiceStub(channel)

    def call(self, text: str = "", timeout: float | None = None) -> asyncio.Task[grpc.StatusCode]:
        """Makes a call, which is to be refused."""
        request = pb.AddRequest(namespace="ns", item=pb.MemoryItem(text=text))
        return asyncio.create_task(self._stub.Add(request, timeout=timeout).code())

    def stream(self) -> asyncio.Task[grpc.StatusCode]:
        """Begins a stream, which is to be refused."""
        return asyncio.create_task(self._stub.Watch(pb.WatchRequest(namespace="ns")).code())

    async def until(self, held: int) -> None:
        """Waits until so many refusals are held."""
        async with asyncio.timeout(30):
            while len(self.guard._refusals._held) < held:  # noqa: ASYNC110 - refusals come one by one
                await asyncio.sleep(0)


@asynccontextmanager
async def full_server(limits: Limits = LIMITS, calls: int = ROOM) -> AsyncIterator[Full]:
    guard = CallGuard(limits)
    server = grpc.aio.server()
    registrar: Any = guard.guarding(server)
    memory_pb2_grpc.add_MemoryServiceServicer_to_server(Busy(), registrar)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        full = Full(guard, channel)
        room = [full.call() for _ in range(calls)]
        async with asyncio.timeout(30):
            while guard._calls < calls:  # noqa: ASYNC110 - calls come one by one
                await asyncio.sleep(0)
        yield full
        for call in room:
            call.cancel()
    await server.stop(None)


@pytest.fixture
async def full() -> AsyncIterator[Full]:
    async with full_server() as full:
        yield full


async def first_of(*refused: asyncio.Task[grpc.StatusCode]) -> int:
    """Returns which one is told first, once all are."""
    told: list[int] = []
    for number, call in enumerate(refused):
        call.add_done_callback(lambda _, number=number: told.append(number))
    codes = set(await asyncio.gather(*refused))
    assert codes == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    return told[0]


async def test_who_has_less_time_is_told_before_who_came_earlier(full: Full) -> None:
    patient = full.call()
    await full.until(held=1)
    assert await first_of(patient, full.call(timeout=0.4)) == 1


async def test_a_large_request_is_not_held(full: Full) -> None:
    small = full.call()
    await full.until(held=1)
    assert await first_of(small, full.call("x" * (LARGE_BYTES + 1))) == 1


async def test_no_more_are_held_than_may_be(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "_HELD_MAX", 2)
    held = []
    for number in range(2):
        held.append(full.call())
        await full.until(held=number + 1)
    assert await first_of(*held, full.call()) == len(held)


async def test_a_server_that_ends_holds_none(full: Full) -> None:
    async with AsyncExitStack() as stack:
        another = await stack.enter_async_context(full_server())
        # Who is told sooner than others are, and later than one that is told at once.
        before = another.call(timeout=0.6)
        await another.until(held=1)
        held = full.call()
        await full.until(held=1)
        await full.guard.turn_away(0)
        assert await first_of(before, held) == 1


@pytest.mark.parametrize("begin", [Full.call, Full.stream])
async def test_a_server_that_ends_holds_none_who_calls_too_often(begin: Callable[[Full], object]) -> None:
    async with full_server(Limits(calls_per_s_max=1), calls=1) as full:
        held = full.guard._rate_refusals._held
        async with asyncio.timeout(30):
            while not held:
                # Another one, for a second may have gone by.
                begin(full)
                await asyncio.sleep(0.001)
        await full.guard.turn_away(0)
        for _ in range(3):
            await asyncio.sleep(0)
        assert not held
