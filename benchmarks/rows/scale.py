"""Row `scale`: one server over PostgreSQL and one over its own files, by turns."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.bench import NAMESPACE, Bench, progress
from benchmarks.client import Burst, Client, drive, measured_burst
from benchmarks.items import import_messages, item, text
from benchmarks.postgres import Postgres, postgres
from benchmarks.processes import ServerProcess, memory_server, stop
from benchmarks.settings import ADD_IN_FLIGHT, ADD_NAMESPACES, LIMIT
from benchmarks.table import Bar, Measurement, count
from benchmarks.turns import middle
from memory_service.v1 import memory_pb2

_BARS = {"Add": Bar(0.6, "higher"), "Retrieve": Bar(0.9, "higher")}
_CPU_BARS = {"Add": Bar(100, "lower", "measured"), "Retrieve": Bar(20, "lower", "measured")}
_COLD_BAR = Bar(1.5, "lower")
_ITEMS = 100
_MANY = 10**9
_REQUESTS = 5_000
_COLD_TURNS = 3


@dataclass
class _Turns:
    """Bursts of calls of one kind, alternating between the two stores."""

    files: list[Burst] = field(default_factory=list)
    database: list[Burst] = field(default_factory=list)
    database_cpu: list[float] = field(default_factory=list)
    """CPU of PostgreSQL alone, per call."""


async def run(bench: Bench) -> list[Measurement]:
    """Measure Adds and Retrieves over many namespaces, and the first use of a large one."""
    with postgres() as database:
        flags = ("--store", "postgres", "--postgres-dsn", database.dsn)
        with (
            memory_server(bench.new_folder()) as files,
            memory_server(bench.new_folder(), flags=flags) as shared,
        ):
            lines = await _compare(bench, files, shared, database)
        return [*lines, await _cold(bench, flags)]


async def _compare(
    bench: Bench, files: ServerProcess, shared: ServerProcess, database: Postgres
) -> list[Measurement]:
    turns = {"Retrieve": _Turns(), "Add": _Turns()}
    seconds = bench.sizes.add_seconds
    async with Client(files.address) as client, Client(shared.address) as other:
        for each in (client, other):
            await fill(each)
        requests = {"Add": adds(), "Retrieve": retrieves()}
        progress("scale: Add and Retrieve by turns")
        # Reads first: the database's cleanup after writes is part of the cost of writes.
        for name, seen in turns.items():
            for _ in range(bench.sizes.rounds):
                for server, each in ((files, client), (shared, other)):
                    call = each.add if name == "Add" else each.retrieve
                    before = database.cpu_seconds()
                    burst = await measured_burst(
                        server, call, requests[name], calls=_MANY, in_flight=ADD_IN_FLIGHT, limit_s=seconds
                    )
                    if server is files:
                        seen.files.append(burst)
                    else:
                        seen.database.append(burst)
                        seen.database_cpu.append((database.cpu_seconds() - before) / burst.load.calls)
    return [line for name, seen in turns.items() for line in _lines(name, seen)]


def _lines(name: str, seen: _Turns) -> list[Measurement]:
    by_rate = middle(
        list(zip(seen.files, seen.database, strict=True)), lambda turn: turn[1].load.rate / turn[0].load.rate
    )
    files, database = by_rate
    where = f"{ADD_NAMESPACES} namespaces of {_ITEMS} or more"
    return [
        Measurement(
            row="scale",
            what=f"{name}/s over PostgreSQL, {ADD_IN_FLIGHT} in flight, {where}",
            measured=database.load.rate,
            unit="/s",
            reference=files.load.rate,
            reference_name="--store hnsw",
            bar=_BARS[name],
            details={
                "p50 ms": database.load.percentile(0.5) * 1e3,
                "p50 ms hnsw": files.load.percentile(0.5) * 1e3,
                "server CPU us": database.cpu_per_call * 1e6,
                "server CPU us hnsw": files.cpu_per_call * 1e6,
            },
        ),
        Measurement(
            row="scale",
            what=f"CPU of PostgreSQL per {name}",
            measured=middle(seen.database_cpu, lambda each: each) * 1e6,
            unit="us",
            bar=_CPU_BARS[name],
        ),
    ]


async def fill(client: Client) -> None:
    """Fill the namespaces, and find each item once before measuring."""
    for number in range(ADD_NAMESPACES):
        await client.import_all(list(import_messages(name_of(number), _ITEMS, None)))
    await drive(client.retrieve, retrieves(), calls=_REQUESTS, in_flight=ADD_IN_FLIGHT)


def name_of(number: int) -> str:
    """Return the name of a namespace."""
    return f"user-{number}"


def adds() -> list[bytes]:
    """Return requests that add to each namespace in turn."""
    return [
        memory_pb2.AddRequest(
            namespace=name_of(n % ADD_NAMESPACES), item=item(n, with_id=False)
        ).SerializeToString()
        for n in range(_REQUESTS)
    ]


def retrieves() -> list[bytes]:
    """Return requests that query each namespace in turn."""
    return [
        memory_pb2.RetrieveRequest(
            namespace=name_of(n % ADD_NAMESPACES),
            options=memory_pb2.RetrieveOptions(query_text=text(n), limit=LIMIT),
        ).SerializeToString()
        for n in range(_REQUESTS)
    ]


async def _cold(bench: Bench, flags: Sequence[str]) -> Measurement:
    """Measure the first Retrieve of a large namespace after a start without graph files."""
    size = bench.sizes.stored[-1]
    progress(f"scale: filling {count(size)}")
    folders = {store: bench.new_folder() for store in ("hnsw", "postgres")}
    took: dict[str, list[float]] = {store: [] for store in folders}
    messages = list(import_messages(NAMESPACE, size, bench.dataset(size).stored))
    asked = bench.requests(size)[0]

    async def with_server(store: str, use: Callable[[Client], Awaitable[object]]) -> float:
        own = flags if store == "postgres" else ()
        with memory_server(folders[store], flags=(*own, "--exact-vectors-max", str(2 * size))) as server:
            async with Client(server.address) as client:
                began = time.perf_counter()
                await use(client)
                seconds = time.perf_counter() - began
            stop(server)
        return seconds

    for store in folders:
        await with_server(store, lambda client: client.import_all(messages))
    for _ in range(_COLD_TURNS):
        for store, seen in took.items():
            seen.append(await with_server(store, lambda client: client.retrieve(asked)))
    for folder in folders.values():
        bench.discard(folder)
    files, database = middle(
        list(zip(took["hnsw"], took["postgres"], strict=True)), lambda turn: turn[1] / turn[0]
    )
    return Measurement(
        row="scale",
        what=f"first Retrieve of {count(size)} items, without a graph",
        measured=database * 1e3,
        unit="ms",
        reference=files * 1e3,
        reference_name="--store hnsw",
        bar=_COLD_BAR,
    )
