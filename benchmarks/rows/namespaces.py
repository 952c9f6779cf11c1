"""Row `namespaces`: one namespace with many items against many namespaces with few."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.bench import Bench, progress
from benchmarks.client import Client, Load, ask_all, drive
from benchmarks.items import item, retrieve_requests
from benchmarks.processes import memory_server, stop
from benchmarks.settings import FILL_TIMEOUT_S
from benchmarks.table import Measurement, count
from benchmarks.vectors import Dataset
from memory_service.v1 import memory_pb2

_FILL_IN_FLIGHT = 8
_FILL_STEP = 200
_VARIANTS = 20


class _Side:
    """What was seen on one of the two sides."""

    def __init__(self) -> None:
        self.idle_bytes = 0
        self.used_bytes = 0
        self.first = Load()
        self.again = Load()


async def run(bench: Bench) -> list[Measurement]:
    """Latency of single calls, and memory."""
    size = bench.sizes.stored[-1]
    sample = bench.sizes.namespace_sample
    progress(f"namespaces: one of {count(size)} items")
    queries = [bench.requests(size)[row % bench.sizes.queries] for row in range(sample)]
    one = await _observe((await bench.filled(size)).data_dir, queries)

    folder = bench.new_folder()
    data = bench.dataset(size)
    filled = await _fill(bench, folder, data)
    chosen = np.random.default_rng(3).permutation(filled)[:sample]
    progress(f"namespaces: {len(chosen)} out of {filled}")
    many = await _observe(folder, _requests([_name(int(number)) for number in chosen], data))
    bench.discard(folder)
    return _lines(one, f"in 1 of {count(size)}", many, f"{count(filled)} of {bench.sizes.namespace_items}")


async def _observe(data_dir: Path, requests: Sequence[bytes]) -> _Side:
    """Starts a server, sends the requests one at a time, and once more."""
    side = _Side()
    with memory_server(data_dir) as server:
        side.idle_bytes = server.resident_bytes()
        async with Client(server.address) as client:
            side.first = await drive(client.retrieve, requests, calls=len(requests), in_flight=1)
            side.used_bytes = server.resident_bytes()
            side.again = await drive(client.retrieve, requests, calls=len(requests), in_flight=1)
        stop(server)
    return side


async def _fill(bench: Bench, folder: Path, data: Dataset) -> int:
    """Adds small namespaces, as many as there shall be or as the time allows; returns how many."""
    sizes = bench.sizes
    bodies = _bodies(data, sizes.namespace_items)
    progress(f"namespaces: filling {count(sizes.namespaces)} of {sizes.namespace_items} items")
    deadline = time.perf_counter() + FILL_TIMEOUT_S
    filled = 0
    with memory_server(folder) as server:
        async with Client(server.address) as client:
            while filled < sizes.namespaces and time.perf_counter() < deadline:
                numbers = range(filled, min(filled + _FILL_STEP, sizes.namespaces))
                requests = [_head(_name(number)) + bodies[number % len(bodies)] for number in numbers]
                await ask_all(client.batch_add, requests, _FILL_IN_FLIGHT)
                filled += len(numbers)
        stop(server)
    return filled


def _bodies(data: Dataset, each: int) -> list[bytes]:
    """The items of some namespaces. A message is its fields one after the other, in any grouping."""
    variants = min(_VARIANTS, len(data.stored) // each)
    return [
        memory_pb2.BatchAddRequest(
            items=[item(row, vector=data.stored[row].tolist()) for row in range(n * each, (n + 1) * each)]
        ).SerializeToString()
        for n in range(variants)
    ]


def _head(namespace: str) -> bytes:
    return memory_pb2.BatchAddRequest(namespace=namespace).SerializeToString()


def _name(number: int) -> str:
    return f"small-{number:06d}"


def _requests(names: Sequence[str], data: Dataset) -> list[bytes]:
    queries = len(data.queries)
    return [
        retrieve_requests(name, data.queries[row % queries : row % queries + 1])[0]
        for row, name in enumerate(names)
    ]


def _lines(one: _Side, reference_name: str, many: _Side, what: str) -> list[Measurement]:
    lines = []
    for when, load, other in (
        ("used again", many.again, one.again),
        ("first use of each", many.first, one.again),
    ):
        for share in (0.5, 0.99):
            lines.append(
                Measurement(
                    row="namespaces",
                    what=f"Retrieve p{share * 100:.0f}, {what}, {when}",
                    measured=load.percentile(share) * 1e3,
                    unit="ms",
                    reference=other.percentile(share) * 1e3,
                    reference_name=reference_name,
                )
            )
    for when, mine, theirs in (
        ("after start", many.idle_bytes, one.idle_bytes),
        (f"{many.first.calls} in use", many.used_bytes, one.used_bytes),
    ):
        lines.append(
            Measurement(
                row="namespaces",
                what=f"resident memory, {what}, {when}",
                measured=mine / 2**20,
                unit="MiB",
                reference=theirs / 2**20,
                reference_name=reference_name,
            )
        )
    return lines
