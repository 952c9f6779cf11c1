"""Calls at a rate, however they fare, and health asked meanwhile; each from a process of its own.

`python -m benchmarks.open_loop load|health ADDRESS RATE SECONDS`, the request on stdin, the outcome on
stdout: so what is timed is the server, and not the event loop that also makes ten thousand calls.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import grpc.aio
import msgspec
import uvloop

from benchmarks.settings import OVERLOAD_CONNECTIONS, OVERLOAD_DEADLINE_S, OVERLOAD_PROCESSES

_METHODS = {"load": "/memory_service.v1.MemoryService/Retrieve", "health": "/grpc.health.v1.Health/Check"}
_HEALTH_RATE = 20.0

Call = Any


class Outcome(msgspec.Struct):
    """How the calls of one process ended."""

    good: int = 0
    """Answered before the time was up."""
    codes: dict[str, int] = {}
    latencies_s: list[float] = []
    """Of those that were answered well."""


async def overload(address: str, request: bytes, rate: float, seconds: float) -> tuple[Outcome, Outcome]:
    """Makes calls at a rate, from several processes; returns how they ended, and how health did."""
    share = rate / OVERLOAD_PROCESSES
    *parts, health = await asyncio.gather(
        *(_outcome("load", address, share, seconds, request) for _ in range(OVERLOAD_PROCESSES)),
        _outcome("health", address, _HEALTH_RATE, seconds, b""),
    )
    codes: Counter[str] = Counter()
    for part in parts:
        codes.update(part.codes)
    latencies_s = [seconds for part in parts for seconds in part.latencies_s]
    return Outcome(sum(part.good for part in parts), codes, latencies_s), health


async def _outcome(kind: str, address: str, rate: float, seconds: float, request: bytes) -> Outcome:
    command = (sys.executable, "-m", "benchmarks.open_loop", kind, address, str(rate), str(seconds))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    written, _ = await process.communicate(request)
    return msgspec.json.decode(written, type=Outcome)


async def _run(kind: str, address: str, rate: float, seconds: float, request: bytes) -> Outcome:
    outcome, under_way = Outcome(), set[asyncio.Task[None]]()
    connections = OVERLOAD_CONNECTIONS // OVERLOAD_PROCESSES if kind == "load" else 1
    async with AsyncExitStack() as stack:
        calls: list[Call] = []
        for _ in range(connections):
            channel = grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
            await stack.enter_async_context(channel)
            await channel.channel_ready()
            calls.append(channel.unary_unary(_METHODS[kind]))
        began, made = time.perf_counter(), 0
        while (now := time.perf_counter()) < began + seconds:
            due = int((now - began) * rate)
            for number in range(made, due):
                call = calls[number % connections]
                task = asyncio.create_task(_one(call, request, outcome, began + seconds))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            made = due
            await asyncio.sleep(0.002)
        await asyncio.gather(*under_way)
    outcome.codes["made"] = made
    return outcome


async def _one(call: Call, request: bytes, outcome: Outcome, until: float) -> None:
    began = time.perf_counter()
    try:
        await call(request, timeout=OVERLOAD_DEADLINE_S)
    except grpc.aio.AioRpcError as error:
        name = error.code().name
        outcome.codes[name] = outcome.codes.get(name, 0) + 1
    else:
        outcome.good += time.perf_counter() <= until
        outcome.latencies_s.append(time.perf_counter() - began)


def main() -> None:
    """What a process does."""
    kind, address, rate, seconds = sys.argv[1:]
    outcome = uvloop.run(_run(kind, address, float(rate), float(seconds), sys.stdin.buffer.read()))
    sys.stdout.buffer.write(msgspec.json.encode(outcome))


if __name__ == "__main__":
    main()
