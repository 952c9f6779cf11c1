"""Row `servers`: four servers over one PostgreSQL against one, each limited to a fifth of a core.

Only with such a limit can two cores show what more servers add. It needs a cgroup that limits CPU, which root
may create.
"""

from __future__ import annotations

import asyncio
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.bench import Bench, progress
from benchmarks.client import Client, Load, drive
from benchmarks.postgres import postgres
from benchmarks.processes import ServerProcess, memory_server
from benchmarks.rows.scale import adds, fill, name_of, retrieves
from benchmarks.settings import ADD_NAMESPACES
from benchmarks.table import Bar, Measurement
from benchmarks.turns import middle

_SERVERS = 4
_IN_FLIGHT = 16
_ADDS = 5
"""One of this many calls is an Add."""
_PERIOD_US, _QUOTA_US = 20_000, 4_000
_V1, _V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
_BAR = Bar(3.2, "higher")


async def run(bench: Bench) -> list[Measurement]:
    """Measure with four Retrieves in five calls, each namespace being served by one server."""
    with ExitStack() as stack:
        database = stack.enter_context(postgres())
        flags = ("--store", "postgres", "--postgres-dsn", database.dsn)
        servers = [
            stack.enter_context(memory_server(bench.new_folder(), flags=flags)) for _ in range(_SERVERS)
        ]
        clients = [Client(server.address) for server in servers]
        async with clients[0], clients[1], clients[2], clients[3]:
            await fill(clients[0])
            for client in clients:
                await drive(client.retrieve, retrieves(), calls=2 * ADD_NAMESPACES, in_flight=_IN_FLIGHT)
            for server in servers:
                stack.enter_context(_held(server))
            rates = []
            for turn in range(bench.sizes.rounds):
                progress(f"servers: turn {turn + 1}")
                one = await _rate(clients[:1], bench.sizes.add_seconds)
                rates.append((one, await _rate(clients, bench.sizes.add_seconds)))
    one, several = middle(rates, lambda turn: turn[1] / turn[0])
    return [
        Measurement(
            row="servers",
            what=f"calls/s of {_SERVERS} servers of a fifth of a core, 80 % Retrieve, over PostgreSQL",
            measured=several,
            unit="/s",
            reference=one,
            reference_name="one",
            bar=_BAR,
        )
    ]


async def _rate(clients: Sequence[Client], seconds: float) -> float:
    loads = await asyncio.gather(
        *(_mixed(client, at, len(clients), seconds) for at, client in enumerate(clients))
    )
    return sum(load.rate for load in loads)


async def _mixed(client: Client, at: int, count: int, seconds: float) -> Load:
    """Return the calls for the namespaces that belong to one of that many servers."""
    mine = [
        number
        for number in range(len(adds()))
        if zlib.crc32(name_of(number % ADD_NAMESPACES).encode()) % count == at
    ]
    added, read = adds(), retrieves()
    # Interleaved rather than drawn, so that each turn makes the same calls.
    requests = [added[n] if i % _ADDS == 0 else read[n] for i, n in enumerate(mine)]
    kinds = set(added)

    async def call(request: bytes) -> bytes:
        return await (client.add(request) if request in kinds else client.retrieve(request))

    return await drive(call, requests, calls=10**9, in_flight=_IN_FLIGHT, limit_s=seconds)


@contextmanager
def _held(server: ServerProcess) -> Iterator[None]:
    """Limit a server to its share of a core."""
    v1 = (_V1 / "cpu.cfs_quota_us").exists()
    group = (_V1 if v1 else _V2) / f"memory-bench-{os.getpid()}-{server.process.pid}"
    group.mkdir()
    try:
        if v1:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(_QUOTA_US))
        else:
            (group / "cpu.max").write_text(f"{_QUOTA_US} {_PERIOD_US}")
        (group / "cgroup.procs").write_text(str(server.process.pid))
        yield
    finally:
        (group.parent / "cgroup.procs").write_text(str(server.process.pid))
        group.rmdir()
