"""Row `overload`: ten times the calls that a server can take, and a modest tenant beside a greedy one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import grpc.aio

from benchmarks.bench import Bench, progress, settle
from benchmarks.client import Client, Load, drive
from benchmarks.crowd import BATCH_ADD, RETRIEVE, Outcome, overload
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
_BATCHES_IN_FLIGHT = 16
_BATCH_ITEMS = 100
_MODEST_ITEMS = 100
_LONG_LIMIT = 500
_MODEST_CALLS = 1000
_QUESTION = "what did we say about the plan"
_CROWD_S = 8.0
# Its processes have to start and to connect.
_CROWD_STARTS_S = 1.5


async def run(bench: Bench) -> list[Measurement]:
    """Goodput, health and memory with ten times the calls or callers of the peak; then two tenants."""
    size = bench.sizes.overload_items
    progress(f"overload: importing {count(size)} texts")
    with memory_server(bench.new_folder()) as server:
        async with Client(server.address) as client:
            await client.import_all(list(import_messages(_GREEDY, size, None)))
            await client.import_all(list(import_messages(_MODEST, _MODEST_ITEMS, None)))
            # A graph that is being built takes both cores.
            await settle(client, server, _GREEDY)
        # Many words, each in many of the texts; and for a flood, which the client has to make on the same
        # cores, many results.
        dear = _request(_GREEDY, " ".join(text(number) for number in range(0, size, size // 8)))
        long = _request(_GREEDY, _QUESTION, _LONG_LIMIT)
        ordinary = _request(_MODEST, _QUESTION)
        return [
            *await _overloaded(bench, server, "ordinary", ordinary, "callers"),
            *await _overloaded(bench, server, "long", long, "rate"),
            # More than the bare server could take in on this machine: reported.
            *await _overloaded(bench, server, "ordinary", ordinary, "rate", has_bar=False),
            *await _fairness(
                bench,
                server,
                {
                    "dear": Greedy(dear),
                    "ordinary": Greedy(_request(_GREEDY, _QUESTION)),
                    "batches": Greedy(_batch(_GREEDY), BATCH_ADD, _BATCHES_IN_FLIGHT),
                },
            ),
        ]


def _request(namespace: str, text: str, limit: int = LIMIT) -> bytes:
    options = memory_pb2.RetrieveOptions(query_text=text, limit=limit)
    return memory_pb2.RetrieveRequest(namespace=namespace, options=options).SerializeToString()


def _batch(namespace: str) -> bytes:
    items = [memory_pb2.MemoryItem(text=text(number)) for number in range(_BATCH_ITEMS)]
    return memory_pb2.BatchAddRequest(namespace=namespace, items=items).SerializeToString()


async def _overloaded(
    bench: Bench, server: ServerProcess, kind: str, request: bytes, how: str, *, has_bar: bool = True
) -> list[Measurement]:
    seconds = bench.sizes.overload_s
    peak = await _peak(server, request, seconds)
    number = OVERLOAD_FACTOR * (OVERLOAD_IN_FLIGHT if how == "callers" else peak)
    asked = f"{number} callers" if how == "callers" else f"{OVERLOAD_FACTOR} x the peak"
    progress(f"overload: {kind} calls, {asked}")
    resident = server.resident_bytes()
    ends, health = await overload(server.address, request, how, number, seconds)
    grown = server.resident_bytes() - resident
    latencies, answers = sorted(ends.latencies_s), sorted(health.latencies_s)
    return [
        Measurement(
            row="overload",
            what=f"good {kind} calls/s, {asked}, deadline {OVERLOAD_DEADLINE_S:g} s",
            measured=ends.good / seconds,
            unit="/s",
            reference=peak,
            reference_name=f"peak, {OVERLOAD_IN_FLIGHT} callers",
            bar=Bar(0.8, "higher") if has_bar else None,
            details={
                "made": float(ends.made),
                **{code: float(number) for code, number in ends.codes.items()},
                "grown MB": grown / 1e6,
                "p99 of good ms": latencies[int(0.99 * len(latencies))] * 1e3 if latencies else float("inf"),
            },
        ),
        Measurement(
            row="overload",
            what=f"health meanwhile, the slowest answer beside {kind} calls, {asked}",
            measured=answers[-1] * 1e3 if answers else float("inf"),
            unit="ms",
            bar=Bar(100, "lower", of="measured") if has_bar else None,
            details={
                "answers": float(len(answers)),
                "without answer": float(health.made - len(answers)),
                "p50 ms": answers[len(answers) // 2] * 1e3 if answers else float("inf"),
            },
        ),
    ]


async def _peak(server: ServerProcess, request: bytes, seconds: float) -> float:
    """The calls per second of as many clients as the server likes best, each waiting for its answer."""
    channels = [
        grpc.aio.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)])
        for _ in range(OVERLOAD_CONNECTIONS)
    ]
    calls: list[Any] = [
        channel.unary_unary("/memory_service.v1.MemoryService/Retrieve") for channel in channels
    ]
    in_flight = OVERLOAD_IN_FLIGHT // len(calls)
    # The namespace is cold, and so are the connections.
    await asyncio.gather(*(drive(call, [request], calls=20, in_flight=4) for call in calls))
    loads = await asyncio.gather(
        *(drive(call, [request], calls=10**9, in_flight=in_flight, limit_s=seconds) for call in calls)
    )
    for channel in channels:
        await channel.close()
    return sum(load.rate for load in loads)


@dataclass(frozen=True)
class Greedy:
    """What a tenant asks all the time."""

    request: bytes
    method: str = RETRIEVE
    in_flight: int = _GREEDY_IN_FLIGHT


async def _fairness(bench: Bench, server: ServerProcess, kinds: dict[str, Greedy]) -> list[Measurement]:
    """The latency of one call at a time, alone and while another namespace keeps the server busy."""
    lines: list[Measurement] = []
    with memory_server(bench.new_folder()) as apart:
        async with Client(server.address) as client, Client(apart.address) as client_apart:
            await client_apart.import_all(list(import_messages(_MODEST, _MODEST_ITEMS, None)))
            for kind, greedy in kinds.items():
                progress(f"overload: a modest tenant beside a greedy one, {kind}")
                alone = await _modest(client)
                beside, crowd = await _beside(client, server, greedy)
                # What the crowd takes from the machine, and not from the server.
                with_its_own, _ = await _beside(client_apart, server, greedy)
                lines += _fairness_lines(kind, greedy, alone, beside, with_its_own, crowd)
    return lines


async def _modest(client: Client) -> Load:
    request = _request(_MODEST, _QUESTION)
    return await drive(client.retrieve, [request], calls=_MODEST_CALLS, in_flight=1, limit_s=_CROWD_S - 1)


async def _beside(client: Client, server: ServerProcess, greedy: Greedy) -> tuple[Load, Outcome]:
    """What a modest tenant's calls take while a crowd keeps this server busy, and how the crowd fared."""
    # In processes of their own: the answers of a crowd would keep a loop that has to time one call.
    crowd = asyncio.create_task(
        overload(server.address, greedy.request, "callers", greedy.in_flight, _CROWD_S, greedy.method)
    )
    await asyncio.sleep(_CROWD_STARTS_S)
    beside = await _modest(client)
    ends, _ = await crowd
    return beside, ends


def _fairness_lines(
    kind: str, greedy: Greedy, alone: Load, beside: Load, with_its_own: Load, crowd: Outcome
) -> list[Measurement]:
    """Beside the greedy one, compared with a server of its own beside the same crowd, and with alone.

    The crowd's processes take the cores that the tenant has alone, whoever answers them. What sharing a
    server adds to that is the first, and has the bar. The second is reported.
    """
    latencies = sorted(crowd.latencies_s)
    p99_ms, p99_alone_ms, p99_its_own_ms = (
        load.percentile(0.99) * 1e3 for load in (beside, alone, with_its_own)
    )
    return [
        Measurement(
            row="overload",
            what=f"p99 of a tenant with one call at a time, beside one with {greedy.in_flight} {kind}",
            measured=p99_ms,
            unit="ms",
            reference=p99_its_own_ms,
            reference_name="with a server of its own",
            bar=Bar(2, "lower"),
            details={
                "p50 ms": beside.percentile(0.5) * 1e3,
                "p50 with a server of its own ms": with_its_own.percentile(0.5) * 1e3,
                "greedy p50 ms": latencies[len(latencies) // 2] * 1e3,
                "greedy calls/s": crowd.good / _CROWD_S,
            },
        ),
        Measurement(
            row="overload",
            what=f"the same, beside {greedy.in_flight} {kind}",
            measured=p99_ms,
            unit="ms",
            reference=p99_alone_ms,
            reference_name="alone",
            details={
                "p50 alone ms": alone.percentile(0.5) * 1e3,
                "with a server of its own x alone": p99_its_own_ms / p99_alone_ms,
            },
        ),
    ]
