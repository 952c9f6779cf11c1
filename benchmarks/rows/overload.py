"""Row `overload`: ten times the calls or callers that a server can handle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.bench import Bench, progress
from benchmarks.client import Client, drive
from benchmarks.crowd import Outcome, overload
from benchmarks.items import import_messages
from benchmarks.processes import ServerProcess
from benchmarks.settings import OVERLOAD_DEADLINE_S, OVERLOAD_FACTOR, OVERLOAD_IN_FLIGHT
from benchmarks.table import Bar, Measurement
from benchmarks.tenants import GREEDY, MODEST, MODEST_ITEMS, query, two_tenants
from benchmarks.turns import middle

# Makes that many calls a second, or runs that many callers, for that many seconds.
Crowd = Callable[[str, float, float], Awaitable[tuple[Outcome, Outcome]]]

_LONG_LIMIT = 500
_WARM_UP_CALLS = 40
_NAMESPACES = tuple(f"crowd-{number}" for number in range(4))


async def run(bench: Bench) -> list[Measurement]:
    """Measure goodput, health checks and memory at ten times the calls or callers of the peak."""
    # The client makes ten times the calls on the same cores, so the calls return many results and are fewer.
    long, ordinary = query(GREEDY, limit=_LONG_LIMIT), query(MODEST)
    of_several = [query(namespace) for namespace in _NAMESPACES]
    async with two_tenants(bench) as server:
        async with Client(server.address) as client:
            for namespace in _NAMESPACES:
                await client.import_all(list(import_messages(namespace, MODEST_ITEMS, None)))
            warm_up = [long, ordinary, *of_several]
            await drive(client.retrieve, warm_up, calls=_WARM_UP_CALLS, in_flight=4)
        return [
            *await _overloaded(bench, server, "ordinary calls", [ordinary], "callers"),
            *await _overloaded(
                bench, server, f"ordinary calls of {len(_NAMESPACES)} namespaces", of_several, "callers"
            ),
            *await _overloaded(bench, server, "long calls", [long], "callers"),
            *await _overloaded(bench, server, "long calls", [long], "rate"),
        ]


@dataclass(frozen=True)
class Turn:
    """What a crowd achieved, and a small one before it."""

    peak: float
    ends: Outcome
    health: Outcome
    seconds: float

    @property
    def good(self) -> float:
        """Calls per second that were answered in time."""
        return self.ends.good / self.seconds


async def _overloaded(
    bench: Bench, server: ServerProcess, kind: str, requests: Sequence[bytes], how: str
) -> list[Measurement]:
    many = f"{OVERLOAD_FACTOR * OVERLOAD_IN_FLIGHT} callers"
    asked = many if how == "callers" else f"{OVERLOAD_FACTOR} x the peak"
    crowd = partial(overload, server.address, requests)
    take_turn = partial(_turn, crowd, how, OVERLOAD_FACTOR)
    # Calls made regardless of the responses are a flood, which is limited on the client side: see the docs.
    return await _measured(bench, server, kind, asked, take_turn, has_bar=how == "callers")


async def _measured(
    bench: Bench,
    server: ServerProcess,
    kind: str,
    asked: str,
    take_turn: Callable[[float], Awaitable[Turn]],
    *,
    has_bar: bool,
) -> list[Measurement]:
    resident = server.resident_bytes()
    turns = []
    for number in range(bench.sizes.overload_turns):
        progress(f"overload: {kind}, {asked}, {number + 1} of {bench.sizes.overload_turns}")
        turns.append(await take_turn(bench.sizes.overload_s))
    grown = server.resident_bytes() - resident
    turn = middle(turns, lambda turn: turn.good / turn.peak)
    latencies = sorted(turn.ends.latencies_s)
    # For health checks the worst turn counts.
    answers = sorted(seconds for turn in turns for seconds in turn.health.latencies_s)
    return [
        Measurement(
            row="overload",
            what=f"good {kind}, {asked}, deadline {OVERLOAD_DEADLINE_S:g} s",
            measured=turn.good,
            unit="/s",
            reference=turn.peak,
            reference_name=f"peak, {OVERLOAD_IN_FLIGHT} callers",
            bar=Bar(0.7, "higher") if has_bar else None,
            details={
                "made": float(turn.ends.made),
                **{code: float(number) for code, number in turn.ends.codes.items()},
                "grown MB": grown / 1e6,
                "p99 of good ms": latencies[int(0.99 * len(latencies))] * 1e3 if latencies else float("inf"),
            },
        ),
        Measurement(
            row="overload",
            what=f"health meanwhile, the slowest answer beside {kind}, {asked}",
            measured=answers[-1] * 1e3 if answers else float("inf"),
            unit="ms",
            bar=Bar(150, "lower", of="measured") if has_bar else None,
            details={
                "answers": float(len(answers)),
                "without answer": float(sum(turn.health.made for turn in turns) - len(answers)),
                "p50 ms": answers[len(answers) // 2] * 1e3 if answers else float("inf"),
            },
        ),
    ]


async def _turn(crowd: Crowd, how: str, factor: float, seconds: float) -> Turn:
    """Measure the peak, the throughput with the server's preferred number of callers; then a multiple of it.

    Both use the same number of processes: otherwise the cores that these take would count as a loss of the
    server.
    """
    small, _ = await crowd("callers", OVERLOAD_IN_FLIGHT, seconds)
    peak = small.good / seconds
    asked = factor * (OVERLOAD_IN_FLIGHT if how == "callers" else peak)
    return Turn(peak, *await crowd(how, asked, seconds), seconds)
