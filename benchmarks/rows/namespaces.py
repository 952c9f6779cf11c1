"""Row `namespaces`: reads spread over many small namespaces against reads of a single one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.bench import Bench, progress
from benchmarks.client import Client, Load, ask_all, drive
from benchmarks.items import item, retrieve_requests
from benchmarks.processes import memory_server, stop
from benchmarks.settings import FILL_TIMEOUT_S
from benchmarks.table import Bar, Measurement, count
from benchmarks.vectors import Dataset
from memory_service.v1 import memory_pb2

_FILL_IN_FLIGHT = 8
_FILL_STEP = 200
_VARIANTS = 10
_TURNS = 3
_HOT = 0
_LATENCY_BAR = Bar(1.5, "lower")
# Allocators keep some of the freed memory.
_MEMORY_BAR = Bar(1.25, "lower")
_VIEWS_BYTES, _ITEMS_BYTES = 64 << 20, 16 << 20
_SMALL = ("--views-bytes-max", str(_VIEWS_BYTES), "--items-bytes-max", str(_ITEMS_BYTES))


@dataclass
class _Seen:
    """Figures of one server."""

    idle_bytes: int = 0
    used_bytes: int = 0
    first: Load = field(default_factory=Load)
    """Each namespace once, in random order; only if all of them fit into memory."""
    hot: list[Load] = field(default_factory=list)
    """The same namespace repeatedly."""
    spread: list[Load] = field(default_factory=list)
    """Namespaces drawn uniformly from all."""


async def run(bench: Bench) -> list[Measurement]:
    """Measure the latency of single calls and memory, with the default budgets and with small ones."""
    data = bench.dataset(bench.sizes.stored[0])
    folder = bench.new_folder()
    filled = await _fill(bench, folder, data)
    reads = _Reads(filled, bench.sizes.namespace_sample, data)
    progress(f"namespaces: reading {count(filled)}")
    default = await _observe(folder, reads, (), each_once=True)
    progress("namespaces: the same with little memory")
    small = await _observe(folder, reads, _SMALL, each_once=False)
    bench.discard(folder)
    where = f"{count(filled)} of {bench.sizes.namespace_items}"
    budget = (_VIEWS_BYTES + _ITEMS_BYTES) >> 20
    return [
        *_latencies(f"{where}, drawn uniformly", default.spread, default.hot, _LATENCY_BAR),
        *_latencies(f"{where}, first use of each", [default.first], default.hot),
        *_latencies(f"{where}, drawn uniformly, budget {budget} MiB", small.spread, default.hot),
        _memory(f"{where}, {len(default.first.latencies)} used, default budget", default),
        _memory(f"{where}, budget {budget} MiB", small, _VIEWS_BYTES + _ITEMS_BYTES),
    ]


class _Reads:
    """The requests of the reads, ready to send."""

    def __init__(self, filled: int, sample: int, data: Dataset) -> None:
        self._sample = sample
        self._rng = np.random.default_rng(3)
        self._data = data
        self._filled = filled

    def hot(self) -> list[bytes]:
        """Return reads of a single namespace."""
        return _requests([_name(_HOT)] * self._sample, self._data)

    def spread(self) -> list[bytes]:
        """Return reads of newly drawn namespaces."""
        drawn = self._rng.integers(self._filled, size=self._sample)
        return _requests([_name(int(number)) for number in drawn], self._data)

    def each_once(self) -> list[bytes]:
        """Return one read of each namespace, in random order."""
        return _requests([_name(int(number)) for number in self._rng.permutation(self._filled)], self._data)


async def _observe(data_dir: Path, reads: _Reads, flags: Sequence[str], *, each_once: bool) -> _Seen:
    """Read one call at a time, with one namespace and all of them taking turns."""
    seen = _Seen()
    with memory_server(data_dir, flags=flags) as server:
        seen.idle_bytes = server.resident_bytes()
        async with Client(server.address) as client:
            if each_once:
                seen.first = await _read(client, reads.each_once())
            for _ in range(_TURNS):
                seen.hot.append(await _read(client, reads.hot()))
                seen.spread.append(await _read(client, reads.spread()))
            seen.used_bytes = server.resident_bytes()
        stop(server)
    return seen


async def _read(client: Client, requests: Sequence[bytes]) -> Load:
    calls = len(requests)
    return await drive(client.retrieve, requests, calls=calls, in_flight=1, limit_s=FILL_TIMEOUT_S)


async def _fill(bench: Bench, folder: Path, data: Dataset) -> int:
    """Add small namespaces until there are enough or time runs out; return how many there are."""
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
    """Return the items of some namespaces. The fields of a message may be concatenated in any grouping."""
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


def _latencies(
    what: str, loads: Sequence[Load], hot: Sequence[Load], bar: Bar | None = None
) -> list[Measurement]:
    """Return the median and the 99th percentile of the best turn; the bar is for the median."""
    return [
        Measurement(
            row="namespaces",
            what=f"Retrieve p{share * 100:.0f}, {what}",
            measured=min(load.percentile(share) for load in loads) * 1e3,
            unit="ms",
            reference=min(load.percentile(share) for load in hot) * 1e3,
            reference_name="one of them, hot",
            bar=bar if share == 0.5 else None,
        )
        for share in (0.5, 0.99)
    ]


def _memory(what: str, seen: _Seen, budget: int | None = None) -> Measurement:
    """Return resident memory after all reads, against that of an idle server plus the budget, if any."""
    return Measurement(
        row="namespaces",
        what=f"resident memory, {what}",
        measured=seen.used_bytes / 2**20,
        unit="MiB",
        reference=(seen.idle_bytes + (budget or 0)) / 2**20,
        reference_name="idle + budget" if budget else "idle",
        bar=_MEMORY_BAR if budget else None,
    )
