"""Row `add`: durable Adds per second, embedded by the server, against the bare server."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bench import NAMESPACE, Bench, progress, settle
from benchmarks.client import Burst, Client, drive, measured_burst
from benchmarks.items import import_messages, item
from benchmarks.processes import ServerProcess, bare_server, memory_server
from benchmarks.settings import ADD_IN_FLIGHT, ADD_NAMESPACES
from benchmarks.table import Bar, Measurement, count
from benchmarks.turns import middle
from memory_service.v1 import memory_pb2

_BAR = Bar(0.4, "higher")
_PREPARED_PER_S = 6_000
_MANY = 10**9
_WARM_UP_CALLS = 1_000


async def run(bench: Bench) -> list[Measurement]:
    """Measure writes spread over many namespaces, then writes into one that is already full."""
    spread = [f"user-{number}" for number in range(ADD_NAMESPACES)]
    with memory_server(bench.new_folder()) as server, bare_server() as bare:
        lines = await _compare(bench, server, bare, spread, f"{ADD_NAMESPACES} namespaces", _BAR)
    with memory_server(bench.new_folder()) as server, bare_server() as bare:
        await _fill(bench, server)
        into = f"one namespace of {count(bench.sizes.add_into)} items"
        lines += await _compare(bench, server, bare, [NAMESPACE], into, None)
    return lines


async def _fill(bench: Bench, server: ServerProcess) -> None:
    """Imports texts that the server embeds, and waits until they are indexed."""
    size = bench.sizes.add_into
    progress(f"add: importing {count(size)} texts")
    async with Client(server.address) as client:
        answer = await client.import_all(list(import_messages(NAMESPACE, size, None)))
        if answer.imported_count != size or answer.degraded:
            raise RuntimeError(f"the import was not complete: {answer}")
        await settle(client, server)


async def _compare(
    bench: Bench,
    server: ServerProcess,
    bare: ServerProcess,
    namespaces: Sequence[str],
    into: str,
    bar: Bar | None,
) -> list[Measurement]:
    """Let the server and the bare one take turns."""
    requests = _requests(namespaces, int(bench.sizes.add_seconds * bench.sizes.rounds * _PREPARED_PER_S))
    progress(f"add: into {into}")
    bursts: dict[ServerProcess, list[Burst]] = {server: [], bare: []}
    async with Client(server.address) as client, Client(bare.address) as bare_client:
        calls = {server: client.add, bare: bare_client.add}
        for call in calls.values():
            await drive(call, requests, calls=_WARM_UP_CALLS, in_flight=ADD_IN_FLIGHT)
        for turn in range(bench.sizes.rounds):
            start = turn * len(requests) // bench.sizes.rounds
            for process, call in calls.items():
                bursts[process].append(
                    await measured_burst(
                        process,
                        call,
                        requests[start:],
                        calls=_MANY,
                        in_flight=ADD_IN_FLIGHT,
                        limit_s=bench.sizes.add_seconds,
                    )
                )
    return _lines(bursts[server], bursts[bare], into, bar)


def _requests(namespaces: Sequence[str], number: int) -> list[bytes]:
    """Return Adds whose items have no id and no vector, so that a request can be sent more than once."""
    return [
        memory_pb2.AddRequest(
            namespace=namespaces[index % len(namespaces)], item=item(index, with_id=False)
        ).SerializeToString()
        for index in range(number)
    ]


def _lines(server: list[Burst], bare: list[Burst], into: str, bar: Bar | None) -> list[Measurement]:
    turns = list(zip(server, bare, strict=True))
    added, bare_call = middle(turns, lambda turn: turn[0].load.rate / turn[1].load.rate)
    costly, bare_costly = middle(turns, lambda turn: turn[0].cpu_per_call / turn[1].cpu_per_call)
    return [
        Measurement(
            row="add",
            what=f"durable Adds/s, {ADD_IN_FLIGHT} in flight, {into}",
            measured=added.load.rate,
            unit="/s",
            reference=bare_call.load.rate,
            reference_name="bare server",
            bar=bar,
            details={
                "p50 ms": added.load.percentile(0.5) * 1e3,
                "p99 ms": added.load.percentile(0.99) * 1e3,
            },
        ),
        Measurement(
            row="add",
            what=f"server CPU per Add, {into}",
            measured=costly.cpu_per_call * 1e6,
            unit="us",
            reference=bare_costly.cpu_per_call * 1e6,
            reference_name="bare server",
        ),
    ]
