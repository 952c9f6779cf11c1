"""Row `fairness`: a modest tenant sharing a server with a greedy one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from benchmarks.bench import Bench, progress
from benchmarks.client import Client, Load, drive
from benchmarks.crowd import BATCH_ADD, RETRIEVE, Outcome, overload
from benchmarks.items import import_messages, text
from benchmarks.processes import ServerProcess, memory_server
from benchmarks.table import Bar, Measurement
from benchmarks.tenants import GREEDY, MODEST, MODEST_ITEMS, query, two_tenants
from benchmarks.turns import middle
from memory_service.v1 import memory_pb2

# No stricter bar: finer isolation between tenants is the job of rate limits.
_BAR = Bar(50, "lower", of="measured")
_GREEDY_IN_FLIGHT = 64
_BATCHES_IN_FLIGHT = 16
_BATCH_ITEMS = 100
_MODEST_CALLS = 1000
_CROWD_S = 8.0
# Many small tenants, which together make that many calls a second, and one with many callers.
_SMALL = tuple(f"small-{number}" for number in range(50))
_SMALL_RATE_PER_S = 250
_MANY_IN_FLIGHT = 200
# A rate limit for each caller, of which the modest one uses half.
_RATE_PER_S = 100
_UNDER_RATE_PAUSE_S = 0.02
# Its processes have to start and to connect.
_CROWD_STARTS_S = 1.5


@dataclass(frozen=True)
class Greedy:
    """The request that a tenant sends all the time."""

    request: bytes
    method: str = RETRIEVE
    in_flight: int = _GREEDY_IN_FLIGHT


@dataclass(frozen=True)
class Sharing:
    """Sequential calls of a modest tenant."""

    alone: Load
    beside: Load
    with_its_own: Load
    """On its own server, beside the same crowd."""
    crowd: Outcome

    @property
    def cost(self) -> float:
        """How many times longer a call takes because the crowd uses the same server."""
        return self.beside.percentile(0.99) / self.with_its_own.percentile(0.99)


async def run(bench: Bench) -> list[Measurement]:
    """Measure the latency of one call at a time, alone and while another namespace keeps the server busy."""
    size = bench.sizes.overload_items
    # Many words, each in many of the texts.
    dear = " ".join(text(number) for number in range(0, size, size // 8))
    kinds = {
        "dear": Greedy(query(GREEDY, dear)),
        "ordinary": Greedy(query(GREEDY)),
        "batches": Greedy(_batch(), BATCH_ADD, _BATCHES_IN_FLIGHT),
    }
    lines: list[Measurement] = []
    async with two_tenants(bench) as server:
        # The batches below leave the greedy one with many times its items.
        small_ones = await _small_ones(bench, server)
        with memory_server(bench.new_folder()) as apart:
            async with Client(apart.address) as client:
                await client.import_all(list(import_messages(MODEST, MODEST_ITEMS, None)))
            for kind, greedy in kinds.items():
                progress(f"fairness: a modest tenant beside a greedy one, {kind}")
                turns = [await _turn(server, apart, greedy) for _ in range(bench.sizes.fairness_turns)]
                lines += _lines(kind, greedy, middle(turns, lambda turn: turn.cost))
    return [*lines, small_ones, await _held_to_rate(bench, kinds["ordinary"])]


async def _small_ones(bench: Bench, server: ServerProcess) -> Measurement:
    """Measure the latency of many tenants that call occasionally, alone and beside one with many callers."""
    async with Client(server.address) as client:
        for namespace in _SMALL:
            await client.import_all(list(import_messages(namespace, MODEST_ITEMS, None)))
    asked = [query(namespace) for namespace in _SMALL]
    turns = []
    for number in range(bench.sizes.fairness_turns):
        progress(f"fairness: {len(_SMALL)} small tenants beside a greedy one, {number + 1}")
        alone, _ = await overload(server.address, asked, "rate", _SMALL_RATE_PER_S, _CROWD_S)
        crowd_s = _CROWD_S + 2 * _CROWD_STARTS_S
        crowd = asyncio.create_task(
            overload(server.address, [query(GREEDY)], "callers", _MANY_IN_FLIGHT, crowd_s)
        )
        await asyncio.sleep(_CROWD_STARTS_S)
        beside, _ = await overload(server.address, asked, "rate", _SMALL_RATE_PER_S, _CROWD_S)
        greedy, _ = await crowd
        turns.append((alone, beside, greedy.good / crowd_s))
    alone, beside, greedy_per_s = middle(turns, lambda turn: _p99(turn[1]) / _p99(turn[0]))
    return Measurement(
        row="fairness",
        what=f"p99 of {len(_SMALL)} tenants, {_SMALL_RATE_PER_S} calls/s, beside {_MANY_IN_FLIGHT} ordinary",
        measured=_p99(beside) * 1e3,
        unit="ms",
        reference=_p99(alone) * 1e3,
        reference_name="alone",
        details={
            "not answered": float(beside.made - beside.good),
            "p50 ms": _quantile(beside, 0.5) * 1e3,
            "p50 alone ms": _quantile(alone, 0.5) * 1e3,
            "greedy calls/s": greedy_per_s,
        },
    )


def _quantile(outcome: Outcome, share: float) -> float:
    latencies = sorted(outcome.latencies_s)
    return latencies[int(share * len(latencies))] if latencies else float("inf")


def _p99(outcome: Outcome) -> float:
    return _quantile(outcome, 0.99)


async def _held_to_rate(bench: Bench, greedy: Greedy) -> Measurement:
    """Measure the latency of one call at a time beside callers that exceed their rate limit and retry."""
    turns = []
    with memory_server(bench.new_folder(), flags=("--calls-per-s-max", str(_RATE_PER_S))) as server:
        async with Client(server.address) as client:
            await client.import_all(list(import_messages(MODEST, MODEST_ITEMS, None)))
            await client.import_all(list(import_messages(GREEDY, MODEST_ITEMS, None)))
            for number in range(bench.sizes.fairness_turns):
                progress(f"fairness: beside a greedy one that is held to a rate, {number + 1}")
                alone = await _modest(client, _UNDER_RATE_PAUSE_S)
                turns.append((alone, *await _beside(client, server, greedy, _UNDER_RATE_PAUSE_S)))
    alone, beside, crowd = middle(turns, lambda turn: turn[1].percentile(0.99) / turn[0].percentile(0.99))
    return Measurement(
        row="fairness",
        what=f"p99 beside {greedy.in_flight} who ask again at once, held to {_RATE_PER_S} calls/s",
        measured=beside.percentile(0.99) * 1e3,
        unit="ms",
        reference=alone.percentile(0.99) * 1e3,
        reference_name="alone",
        bar=_BAR,
        details={
            "p50 ms": beside.percentile(0.5) * 1e3,
            "p50 alone ms": alone.percentile(0.5) * 1e3,
            "greedy calls/s": crowd.good / _CROWD_S,
            "greedy refused/s": (crowd.made - crowd.good) / _CROWD_S,
        },
    )


def _batch() -> bytes:
    items = [memory_pb2.MemoryItem(text=text(number)) for number in range(_BATCH_ITEMS)]
    return memory_pb2.BatchAddRequest(namespace=GREEDY, items=items).SerializeToString()


async def _turn(server: ServerProcess, apart: ServerProcess, greedy: Greedy) -> Sharing:
    async with Client(server.address) as client, Client(apart.address) as client_apart:
        alone = await _modest(client)
        beside, crowd = await _beside(client, server, greedy)
        # What the crowd takes from the machine rather than from the server.
        with_its_own, _ = await _beside(client_apart, server, greedy)
    return Sharing(alone, beside, with_its_own, crowd)


async def _modest(client: Client, pause_s: float = 0.0) -> Load:
    return await drive(
        client.retrieve,
        [query(MODEST)],
        calls=_MODEST_CALLS,
        in_flight=1,
        limit_s=_CROWD_S - _CROWD_STARTS_S - 0.5,
        pause_s=pause_s,
    )


async def _beside(
    client: Client, server: ServerProcess, greedy: Greedy, pause_s: float = 0.0
) -> tuple[Load, Outcome]:
    """Time a modest tenant's calls while a crowd keeps this server busy; also return the crowd's outcome."""
    # In separate processes: the crowd's responses would delay a loop that has to time one call.
    crowd = asyncio.create_task(
        overload(server.address, [greedy.request], "callers", greedy.in_flight, _CROWD_S, greedy.method)
    )
    await asyncio.sleep(_CROWD_STARTS_S)
    beside = await _modest(client, pause_s)
    ends, _ = await crowd
    return beside, ends


def _lines(kind: str, greedy: Greedy, turn: Sharing) -> list[Measurement]:
    """Compare the latency beside the greedy one with that on its own server beside the same crowd, and alone.

    The crowd's processes take cores that the tenant has to itself when alone, whichever server answers them.
    The first comparison shows the cost of sharing a server and has the bar; the second is only reported.
    """
    p99_ms, p99_alone_ms, p99_its_own_ms = (
        load.percentile(0.99) * 1e3 for load in (turn.beside, turn.alone, turn.with_its_own)
    )
    return [
        Measurement(
            row="fairness",
            what=f"p99 of a tenant with one call at a time, beside one with {greedy.in_flight} {kind}",
            measured=p99_ms,
            unit="ms",
            reference=p99_its_own_ms,
            reference_name="with a server of its own",
            bar=_BAR,
            details={
                "p50 ms": turn.beside.percentile(0.5) * 1e3,
                "p50 with a server of its own ms": turn.with_its_own.percentile(0.5) * 1e3,
                "greedy p50 ms": _quantile(turn.crowd, 0.5) * 1e3,
                "greedy calls/s": turn.crowd.good / _CROWD_S,
            },
        ),
        Measurement(
            row="fairness",
            what=f"the same, beside {greedy.in_flight} {kind}",
            measured=p99_ms,
            unit="ms",
            reference=p99_alone_ms,
            reference_name="alone",
            details={
                "p50 alone ms": turn.alone.percentile(0.5) * 1e3,
                "with a server of its own x alone": p99_its_own_ms / p99_alone_ms,
            },
        ),
    ]
