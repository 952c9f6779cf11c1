"""More calls than a server can answer, with health checks meanwhile, each from its own process.

Calls are made at a fixed rate (open loop) or by callers that wait for each response (closed loop): `python -m
benchmarks.crowd rate|callers|health ADDRESS NUMBER SECONDS METHOD`, with the requests on stdin and the
outcome on stdout. Separate processes time the server, not an event loop that is also busy with ten thousand
calls.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import grpc.aio
import msgspec
import uvloop

from benchmarks.settings import OVERLOAD_CONNECTIONS, OVERLOAD_DEADLINE_S, OVERLOAD_PROCESSES

RETRIEVE = "/memory_service.v1.MemoryService/Retrieve"
BATCH_ADD = "/memory_service.v1.MemoryService/BatchAdd"
_HEALTH = "/grpc.health.v1.Health/Check"
_HEALTH_RATE = 20.0
_LAST_ANSWERS_S = 10.0

Call = Any


class Outcome(msgspec.Struct):
    """How the calls of one process ended."""

    made: int = 0
    good: int = 0
    """Answered before the end of the run."""
    codes: dict[str, int] = {}
    latencies_s: list[float] = []
    """Latencies of all successful calls."""


async def overload(
    address: str, requests: Sequence[bytes], how: str, number: float, seconds: float, method: str = RETRIEVE
) -> tuple[Outcome, Outcome]:
    """Make `number` calls a second (`how` is "rate") or run as many callers ("callers"), in some processes.

    Calls, or callers, cycle through the requests. Return the outcome of the calls, and that of the health
    checks.
    """
    share = number / OVERLOAD_PROCESSES
    *parts, health = await asyncio.gather(
        *(_outcome(how, address, share, seconds, method, requests) for _ in range(OVERLOAD_PROCESSES)),
        _outcome("health", address, _HEALTH_RATE, seconds, _HEALTH, [b""]),
    )
    codes: Counter[str] = Counter()
    for part in parts:
        codes.update(part.codes)
    latencies_s = [seconds for part in parts for seconds in part.latencies_s]
    made, good = sum(part.made for part in parts), sum(part.good for part in parts)
    return Outcome(made, good, codes, latencies_s), health


async def _outcome(
    how: str, address: str, number: float, seconds: float, method: str, requests: Sequence[bytes]
) -> Outcome:
    command = (sys.executable, "-m", "benchmarks.crowd", how, address, str(number), str(seconds), method)
    return await _written(command, msgspec.msgpack.encode(requests))


async def _written(command: Sequence[str], given: bytes) -> Outcome:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    written, _ = await process.communicate(given)
    return msgspec.json.decode(written, type=Outcome)


async def _run(
    how: str, address: str, number: float, seconds: float, method: str, requests: Sequence[bytes]
) -> Outcome:
    outcome = Outcome()
    connections = 1 if how == "health" else OVERLOAD_CONNECTIONS // OVERLOAD_PROCESSES
    async with AsyncExitStack() as stack:
        calls: list[Call] = []
        for _ in range(connections):
            channel = grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
            await stack.enter_async_context(channel)
            await channel.channel_ready()
            calls.append(channel.unary_unary(method))
        until = time.perf_counter() + seconds
        if how == "callers":
            callers = range(int(number))
            under_way = {
                asyncio.create_task(
                    _caller(calls[n % connections], requests[n % len(requests)], outcome, until)
                )
                for n in callers
            }
        else:
            under_way = await _at_rate(calls, number, requests, outcome, until)
        # Each call has a deadline, but gRPC failed to end one out of some millions.
        if under_way:
            left_s = until - time.perf_counter() + _LAST_ANSWERS_S
            ended, never_ended = await asyncio.wait(under_way, timeout=left_s)
            for task in ended:
                task.result()
            if never_ended:
                outcome.codes["NEVER_ENDED"] = len(never_ended)
    return outcome


async def _at_rate(
    calls: list[Call], rate: float, requests: Sequence[bytes], outcome: Outcome, until: float
) -> set[asyncio.Task[None]]:
    """Make calls; return those that are still unanswered."""
    under_way = set[asyncio.Task[None]]()
    began, made = time.perf_counter(), 0
    while (now := time.perf_counter()) < until:
        due = int((now - began) * rate)
        for number in range(made, due):
            request = requests[number % len(requests)]
            task = asyncio.create_task(_one(calls[number % len(calls)], request, outcome, until))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        made = due
        await asyncio.sleep(0.002)
    return under_way


async def _caller(call: Call, request: bytes, outcome: Outcome, until: float) -> None:
    while time.perf_counter() < until:
        await _one(call, request, outcome, until)


async def _one(call: Call, request: bytes, outcome: Outcome, until: float) -> None:
    began = time.perf_counter()
    outcome.made += 1
    try:
        await call(request, timeout=OVERLOAD_DEADLINE_S)
    except grpc.aio.AioRpcError as error:
        name = error.code().name
        outcome.codes[name] = outcome.codes.get(name, 0) + 1
    else:
        outcome.good += time.perf_counter() <= until
        outcome.latencies_s.append(time.perf_counter() - began)


def main() -> None:
    """Run one process."""
    how, address, number, seconds, method = sys.argv[1:]
    requests = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[bytes])
    outcome = uvloop.run(_run(how, address, float(number), float(seconds), method, requests))
    sys.stdout.buffer.write(msgspec.json.encode(outcome))


if __name__ == "__main__":
    main()
