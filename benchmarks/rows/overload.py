"""Row `overload`: ten times the calls that a server can take, and a modest tenant beside a greedy one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.bench import Bench, progress
from benchmarks.client import Client, Load, drive
from benchmarks.items import import_messages, text
from benchmarks.processes import ServerProcess, memory_server
from benchmarks.settings import (
    LIMIT,
    OVERLOAD_CONNECTIONS,
    OVERLOAD_DEADLINE_S,
    OVERLOAD_FACTOR,
    OVERLOAD_IN_FLIGHT,
)
from benchmarks.table import Bar, Measurement, count
from memory_service.v1 import memory_pb2

_GREEDY, _MODEST = "greedy", "modest"
_GREEDY_IN_FLIGHT = 64
_MODEST_ITEMS = 100
_MODEST_CALLS = 200
_HEALTH_PAUSE_S = 0.05

Answered = Callable[[bytes], Awaitable[bytes]]


async def run(bench: Bench) -> list[Measurement]:
    """Goodput, health and memory at ten times the peak; then two tenants."""
    size = bench.sizes.overload_items
    progress(f"overload: importing {count(size)} texts")
    with memory_server(bench.new_folder()) as server:
        async with Client(server.address) as client:
            await client.import_all(list(import_messages(_GREEDY, size, None)))
            await client.import_all(list(import_messages(_MODEST, _MODEST_ITEMS, None)))
        # Of many words, each in many of the texts.
        dear = _request(_GREEDY, " ".join(text(number) for number in range(0, size, size // 8)))
        return [*await _overloaded(bench, server, dear), await _beside(server, dear)]


def _request(namespace: str, text: str) -> bytes:
    options = memory_pb2.RetrieveOptions(query_text=text, limit=LIMIT)
    return memory_pb2.RetrieveRequest(namespace=namespace, options=options).SerializeToString()


@dataclass
class _Ends:
    """How calls ended."""

    good: int = 0
    codes: dict[str, int] = field(default_factory=dict)
    health_s: list[float] = field(default_factory=list)
    health_failed: int = 0


async def _overloaded(bench: Bench, server: ServerProcess, request: bytes) -> list[Measurement]:
    channels = [
        grpc.aio.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)])
        for _ in range(OVERLOAD_CONNECTIONS)
    ]
    calls = [channel.unary_unary("/memory_service.v1.MemoryService/Retrieve") for channel in channels]
    # The namespace is cold, and so are the connections.
    await asyncio.gather(*(drive(call, [request], calls=20, in_flight=4) for call in calls))
    peak = await _peak(calls, request, bench.sizes.overload_s)
    progress(f"overload: {OVERLOAD_FACTOR} x {peak:.0f} calls/s")
    resident = server.resident_bytes()
    ends = await _open_loop(server, calls, request, peak * OVERLOAD_FACTOR, bench.sizes.overload_s)
    grown = server.resident_bytes() - resident
    for channel in channels:
        await channel.close()
    health = sorted(ends.health_s)
    return [
        Measurement(
            row="overload",
            what=f"good Retrieves/s at {OVERLOAD_FACTOR} x the peak, deadline {OVERLOAD_DEADLINE_S:g} s",
            measured=ends.good / bench.sizes.overload_s,
            unit="/s",
            reference=peak,
            reference_name="peak, closed loop",
            bar=Bar(0.8, "higher"),
            details={**{code: float(number) for code, number in ends.codes.items()}, "grown MB": grown / 1e6},
        ),
        Measurement(
            row="overload",
            what="health meanwhile, the slowest answer",
            measured=health[-1] * 1e3 if health else float("inf"),
            unit="ms",
            bar=Bar(100, "lower", of="measured"),
            details={
                "answers": float(len(health)),
                "without answer": float(ends.health_failed),
                "p50 ms": health[len(health) // 2] * 1e3 if health else float("inf"),
            },
        ),
    ]


async def _peak(calls: list[Answered], request: bytes, seconds: float) -> float:
    loads = await asyncio.gather(
        *(
            drive(call, [request], calls=10**9, in_flight=OVERLOAD_IN_FLIGHT // len(calls), limit_s=seconds)
            for call in calls
        )
    )
    return sum(load.rate for load in loads)


async def _open_loop(
    server: ServerProcess, calls: list[Answered], request: bytes, rate: float, seconds: float
) -> _Ends:
    """Makes calls at a rate, however they fare; bounded in time and, by that, in number."""
    ends, under_way = _Ends(), set[asyncio.Task[None]]()
    asking = asyncio.create_task(_ask_health(server, ends))
    began, made = time.perf_counter(), 0
    while (now := time.perf_counter()) < began + seconds:
        for number in range(made, int((now - began) * rate)):
            task = asyncio.create_task(_one(calls[number % len(calls)], request, ends, began + seconds))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            made += 1
        await asyncio.sleep(0.002)
    asking.cancel()
    await asyncio.gather(*under_way)
    ends.codes["made"] = made
    return ends


async def _one(call: Answered, request: bytes, ends: _Ends, until: float) -> None:
    try:
        await call(request, timeout=OVERLOAD_DEADLINE_S)  # type: ignore[call-arg]
    except grpc.aio.AioRpcError as error:
        name = error.code().name
        ends.codes[name] = ends.codes.get(name, 0) + 1
    else:
        ends.good += time.perf_counter() <= until


async def _ask_health(server: ServerProcess, ends: _Ends) -> None:
    async with grpc.aio.insecure_channel(
        server.address, options=[("grpc.use_local_subchannel_pool", 1)]
    ) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        while True:
            began = time.perf_counter()
            try:
                await health.Check(health_pb2.HealthCheckRequest(), timeout=OVERLOAD_DEADLINE_S)
                ends.health_s.append(time.perf_counter() - began)
            except grpc.aio.AioRpcError:
                ends.health_failed += 1
            await asyncio.sleep(_HEALTH_PAUSE_S)


async def _beside(server: ServerProcess, dear: bytes) -> Measurement:
    """The latency of one call at a time, alone and while another namespace keeps the server busy."""
    progress("overload: a modest tenant beside a greedy one")
    modest = _request(_MODEST, "what did we say about the plan")
    async with Client(server.address) as client, Client(server.address) as greedy:
        alone = await drive(client.retrieve, [modest], calls=_MODEST_CALLS, in_flight=1)
        crowd = asyncio.create_task(
            drive(greedy.retrieve, [dear], calls=10**9, in_flight=_GREEDY_IN_FLIGHT, limit_s=8)
        )
        await asyncio.sleep(0.5)
        beside = await drive(client.retrieve, [modest], calls=_MODEST_CALLS, in_flight=1, limit_s=6)
        crowded: Load = await crowd
    return Measurement(
        row="overload",
        what=f"p99 of a tenant with one call at a time, beside one with {_GREEDY_IN_FLIGHT}",
        measured=beside.percentile(0.99) * 1e3,
        unit="ms",
        reference=alone.percentile(0.99) * 1e3,
        reference_name="alone",
        bar=Bar(2, "lower"),
        details={
            "p50 ms": beside.percentile(0.5) * 1e3,
            "p50 alone ms": alone.percentile(0.5) * 1e3,
            "greedy p50 ms": crowded.percentile(0.5) * 1e3,
            "greedy calls/s": crowded.rate,
        },
    )
