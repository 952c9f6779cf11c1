"""Row `retrieve`: server CPU per vector query, against a bare call plus a bare search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.bench import Bench, Settled, progress, settle
from benchmarks.client import Burst, Call, Client, ask_all, measured_burst
from benchmarks.processes import ServerProcess, bare_server, memory_server, stop
from benchmarks.search import Search, cpu_per_search
from benchmarks.settings import LIMIT, RETRIEVE_IN_FLIGHT
from benchmarks.table import Bar, Measurement, count
from benchmarks.turns import middle
from benchmarks.vectors import Dataset

_BAR = Bar(1.8, "lower")


async def run(bench: Bench) -> list[Measurement]:
    """Measure one line per size of the namespace."""
    return [await _measure(bench, size) for size in bench.sizes.stored]


async def _measure(bench: Bench, size: int) -> Measurement:
    filled = await bench.filled(size)
    requests = bench.requests(size)
    with memory_server(filled.data_dir) as server, bare_server() as bare:
        async with Client(server.address) as client, Client(bare.address) as bare_client:
            await ask_all(client.retrieve, requests, RETRIEVE_IN_FLIGHT)
            await ask_all(bare_client.retrieve, requests, RETRIEVE_IN_FLIGHT)
            settled = await settle(client, server)
            search = bench.search(size)
            progress(f"retrieve: {count(size)} items, {settled.kind} index, against {search.name}")
            rounds = _Rounds(bench, bench.dataset(size), requests)
            for _ in range(bench.sizes.rounds):
                await rounds.take(server, client.retrieve, bare, bare_client.retrieve, search)
        # The folder is reused, so it must be left as after a clean stop.
        stop(server)
    return rounds.result(size, settled, search)


@dataclass(frozen=True)
class _Turn:
    """The measurement and its two references."""

    server: Burst
    bare: Burst
    search_s: float

    @property
    def reference_s(self) -> float:
        """CPU of a bare call plus a bare search."""
        return self.bare.cpu_per_call + self.search_s


@dataclass
class _Rounds:
    """Turns, one after the other."""

    bench: Bench
    data: Dataset
    requests: Sequence[bytes]
    turns: list[_Turn] = field(default_factory=list)

    async def take(
        self, server: ServerProcess, retrieve: Call, bare: ServerProcess, bare_retrieve: Call, search: Search
    ) -> None:
        """Measure each of the three once."""
        self.turns.append(
            _Turn(
                await self._burst(server, retrieve),
                await self._burst(bare, bare_retrieve),
                cpu_per_search(search, self.data.queries, self.bench.sizes.calls),
            )
        )

    async def _burst(self, server: ServerProcess, call: Call) -> Burst:
        calls = self.bench.sizes.calls
        return await measured_burst(server, call, self.requests, calls=calls, in_flight=RETRIEVE_IN_FLIGHT)

    def result(self, size: int, settled: Settled, search: Search) -> Measurement:
        """Return the median turn as one line."""
        turn = middle(self.turns, lambda turn: turn.server.cpu_per_call / turn.reference_s)
        server, bare = turn.server, turn.bare
        return Measurement(
            row="retrieve",
            what=f"server CPU per Retrieve, k = {LIMIT}, {count(size)} items ({settled.kind})",
            measured=server.cpu_per_call * 1e6,
            unit="us",
            reference=turn.reference_s * 1e6,
            reference_name=f"= call {bare.cpu_per_call * 1e6:.0f} + {search.name} {turn.search_s * 1e6:.0f}",
            bar=_BAR,
            details={
                "calls/s": server.load.rate,
                "bare calls/s": bare.load.rate,
                "p50 ms": server.load.percentile(0.5) * 1e3,
                "p99 ms": server.load.percentile(0.99) * 1e3,
                "in flight": float(RETRIEVE_IN_FLIGHT),
                **({} if settled.quiet else {"warning": "the index was still changing"}),
            },
        )
