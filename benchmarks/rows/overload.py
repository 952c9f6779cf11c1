"""Row `overload`: ten times the calls that a server can take, and a modest tenant beside a greedy one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from benchmarks.bench import Bench, progress, settle
from benchmarks.client import Client, Load, drive
from benchmarks.crowd import BATCH_ADD, RETRIEVE, Outcome, overload
from benchmarks.items import import_messages, text
from benchmarks.processes import ServerProcess, memory_server
from benchmarks.settings import (
    LIMIT,
    OVERLOAD_DEADLINE_S,
    OVERLOAD_FACTOR,
    OVERLOAD_IN_FLIGHT,
)
from benchmarks.table import Bar, Measurement, count
from benchmarks.turns import middle
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
            # Many words, each in many of the texts; and for a flood, which the client has to make on the
            # same cores, many results.
            dear = _request(_GREEDY, " ".join(text(number) for number in range(0, size, size // 8)))
            long = _request(_GREEDY, _QUESTION, _LONG_LIMIT)
            ordinary = _request(_MODEST, _QUESTION)
            await drive(client.retrieve, [dear, long, ordinary], calls=60, in_flight=4)
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


@dataclass(frozen=True)
class Turn:
    """What a crowd got done of what it asked, and a small one before it."""

    peak: float
    asked: float
    ends: Outcome
    health: Outcome
    seconds: float

    @property
    def good(self) -> float:
        """Calls per second that were answered in time."""
        return self.ends.good / self.seconds


async def _overloaded(
    bench: Bench, server: ServerProcess, kind: str, request: bytes, how: str, *, has_bar: bool = True
) -> list[Measurement]:
    resident = server.resident_bytes()
    turns = []
    for number in range(bench.sizes.overload_turns):
        progress(f"overload: {kind} calls, {how}, {number + 1} of {bench.sizes.overload_turns}")
        turns.append(await _turn(server, request, how, bench.sizes.overload_s))
    grown = server.resident_bytes() - resident
    turn = middle(turns, lambda turn: turn.good / turn.peak)
    asked = f"{turn.asked:g} callers" if how == "callers" else f"{OVERLOAD_FACTOR} x the peak"
    latencies = sorted(turn.ends.latencies_s)
    # Of health the worst counts.
    answers = sorted(seconds for turn in turns for seconds in turn.health.latencies_s)
    return [
        Measurement(
            row="overload",
            what=f"good {kind} calls/s, {asked}, deadline {OVERLOAD_DEADLINE_S:g} s",
            measured=turn.good,
            unit="/s",
            reference=turn.peak,
            reference_name=f"peak, {OVERLOAD_IN_FLIGHT} callers",
            bar=Bar(0.8, "higher") if has_bar else None,
            details={
                "made": float(turn.ends.made),
                **{code: float(number) for code, number in turn.ends.codes.items()},
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
                "without answer": float(sum(turn.health.made for turn in turns) - len(answers)),
                "p50 ms": answers[len(answers) // 2] * 1e3 if answers else float("inf"),
            },
        ),
    ]


async def _turn(server: ServerProcess, request: bytes, how: str, seconds: float) -> Turn:
    """The peak, which is what as many callers get done as the server likes best; then ten times as much.

    Of the same processes: what those take of the cores would else count as what the server lost.
    """
    small, _ = await overload(server.address, request, "callers", OVERLOAD_IN_FLIGHT, seconds)
    peak = small.good / seconds
    asked = OVERLOAD_FACTOR * (OVERLOAD_IN_FLIGHT if how == "callers" else peak)
    return Turn(peak, asked, *await overload(server.address, request, how, asked, seconds), seconds)


@dataclass(frozen=True)
class Greedy:
    """What a tenant asks all the time."""

    request: bytes
    method: str = RETRIEVE
    in_flight: int = _GREEDY_IN_FLIGHT


@dataclass(frozen=True)
class Sharing:
    """What a modest tenant's calls took, one after the other."""

    alone: Load
    beside: Load
    with_its_own: Load
    """Server, beside the same crowd."""
    crowd: Outcome

    @property
    def cost(self) -> float:
        """How many times as long a call takes because the crowd asks the same server."""
        return self.beside.percentile(0.99) / self.with_its_own.percentile(0.99)


async def _fairness(bench: Bench, server: ServerProcess, kinds: dict[str, Greedy]) -> list[Measurement]:
    """The latency of one call at a time, alone and while another namespace keeps the server busy."""
    lines: list[Measurement] = []
    with memory_server(bench.new_folder()) as apart:
        async with Client(server.address) as client, Client(apart.address) as client_apart:
            await client_apart.import_all(list(import_messages(_MODEST, _MODEST_ITEMS, None)))
            for kind, greedy in kinds.items():
                turns = []
                for _ in range(bench.sizes.overload_turns):
                    progress(f"overload: a modest tenant beside a greedy one, {kind}")
                    alone = await _modest(client)
                    beside, crowd = await _beside(client, server, greedy)
                    # What the crowd takes from the machine, and not from the server.
                    with_its_own, _ = await _beside(client_apart, server, greedy)
                    turns.append(Sharing(alone, beside, with_its_own, crowd))
                turn = middle(
                    turns, lambda turn: turn.beside.percentile(0.99) / turn.with_its_own.percentile(0.99)
                )
                lines += _fairness_lines(kind, greedy, turn)
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


def _fairness_lines(kind: str, greedy: Greedy, turn: Sharing) -> list[Measurement]:
    """Beside the greedy one, compared with a server of its own beside the same crowd, and with alone.

    The crowd's processes take the cores that the tenant has alone, whoever answers them. What sharing a
    server adds to that is the first, and has the bar. The second is reported.
    """
    latencies = sorted(turn.crowd.latencies_s)
    p99_ms, p99_alone_ms, p99_its_own_ms = (
        load.percentile(0.99) * 1e3 for load in (turn.beside, turn.alone, turn.with_its_own)
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
                "p50 ms": turn.beside.percentile(0.5) * 1e3,
                "p50 with a server of its own ms": turn.with_its_own.percentile(0.5) * 1e3,
                "greedy p50 ms": latencies[len(latencies) // 2] * 1e3,
                "greedy calls/s": turn.crowd.good / _CROWD_S,
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
                "p50 alone ms": turn.alone.percentile(0.5) * 1e3,
                "with a server of its own x alone": p99_its_own_ms / p99_alone_ms,
            },
        ),
    ]
