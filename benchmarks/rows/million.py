"""Row `million`: one large namespace: import, restart, recall, latency, memory.

Vectors are made in parts and never all held in memory, which leaves the machine's memory to the server.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.bench import NAMESPACE, Bench, Settled, progress, settle
from benchmarks.client import Client, Load, ask_all, drive
from benchmarks.items import import_messages, number_of, retrieve_requests
from benchmarks.processes import memory_server, stop
from benchmarks.settings import LIMIT, MILLION_TIMEOUT_S, RECALL_MIN
from benchmarks.table import Bar, Measurement, count
from benchmarks.vectors import Mixture, Vectors
from memory_service.v1 import memory_pb2

_PART = 50_000
_QUERIES = 200
_TIE = 1e-6
_RECALL_BAR = Bar(RECALL_MIN, "higher", of="measured")
_RESTART_BAR = Bar(10.0, "lower", of="measured")
# A view of a million vectors exceeds the default budget for all views.
_FLAGS = ("--views-bytes-max", str(6 << 30))


class _Stored:
    """The stored vectors, regenerated when needed."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._mixture = Mixture(np.random.default_rng([1, size]), int(size**0.5))
        self.queries = self._draw(-1, _QUERIES)

    def parts(self) -> Iterator[tuple[int, Vectors]]:
        """Yield each part with the number of its first vector."""
        for first in range(0, self.size, _PART):
            yield first, self._draw(first, min(_PART, self.size - first))

    def _draw(self, first: int, count: int) -> Vectors:
        return self._mixture.draw(np.random.default_rng([2, self.size, first + 1]), count)

    def recall(self, found: Sequence[Sequence[int]]) -> float:
        """Return the recall of these row numbers, one list per query; ties count by distance."""
        best = np.full((_QUERIES, LIMIT), -np.inf, np.float32)
        reached = np.full((_QUERIES, LIMIT), -np.inf, np.float32)
        for first, part in self.parts():
            scores = self.queries @ part.T
            best = np.sort(np.concatenate([best, scores], axis=1), axis=1)[:, -LIMIT:]
            for query, rows in enumerate(found):
                for place, row in enumerate(rows[:LIMIT]):
                    if first <= row < first + len(part):
                        reached[query, place] = scores[query, row - first]
        return float((reached >= best[:, :1] - _TIE).mean())


async def run(bench: Bench) -> list[Measurement]:
    """Import once, start several times, and query after the last start."""
    size = bench.sizes.million
    stored = _Stored(size)
    folder = bench.new_folder()
    lines = await _fill(stored, folder)
    requests = retrieve_requests(NAMESPACE, stored.queries)
    starts = [await _first_answer(folder, requests[0]) for _ in range(bench.sizes.starts)]
    lines.append(
        _line(
            size,
            "start to first answer, after SIGTERM",
            min(starts),
            "s",
            bar=_RESTART_BAR,
            details={"slowest": max(starts), "starts": float(len(starts))},
        )
    )
    lines += await _ask(stored, folder, requests)
    bench.discard(folder)
    return lines


async def _fill(stored: _Stored, folder: Path) -> list[Measurement]:
    """Import in parts, wait for the index, and stop the server cleanly."""
    with memory_server(folder, flags=_FLAGS) as server:
        async with Client(server.address) as client:
            import_s = 0.0
            for first, part in stored.parts():
                messages = list(import_messages(NAMESPACE, len(part), part, first))
                began = time.perf_counter()
                answer = await client.import_all(messages)
                import_s += time.perf_counter() - began
                if answer.imported_count != len(part):
                    raise RuntimeError(f"imported {answer.imported_count} items of {len(part)}")
                progress(f"million: {count(first + len(part))} items imported")
            settled = await settle(client, server, timeout_s=MILLION_TIMEOUT_S)
            progress(f"million: settled, {settled.graph_count} vectors in the graph")
            resident = server.resident_bytes()
        began = time.perf_counter()
        stop(server, MILLION_TIMEOUT_S)
        stop_s = time.perf_counter() - began
    return _filled_lines(stored.size, import_s, settled, resident, stop_s)


def _filled_lines(
    size: int, import_s: float, settled: Settled, resident: int, stop_s: float
) -> list[Measurement]:
    return [
        _line(
            size,
            "Import until acknowledged",
            size / import_s,
            "items/s",
            details={"seconds": import_s},
        ),
        _line(
            size,
            f"index settled ({settled.kind}), after the last Import",
            settled.seconds,
            "s",
            details={
                "in the graph": float(settled.graph_count),
                "searched exactly": float(settled.exact_count),
                **({} if settled.quiet else {"warning": "the index was still changing"}),
            },
        ),
        _line(size, "resident memory, as filled", resident / 2**20, "MiB"),
        _line(size, "stop with SIGTERM, which saves the graph", stop_s, "s"),
    ]


async def _first_answer(folder: Path, query: bytes) -> float:
    """Start a server, query it, and stop it cleanly; return how long start and response took."""
    began = time.perf_counter()
    with memory_server(folder, flags=_FLAGS) as server:
        async with Client(server.address) as client:
            answer = memory_pb2.RetrieveResponse.FromString(await client.retrieve(query))
            took = time.perf_counter() - began
        stop(server, MILLION_TIMEOUT_S)
    if len(answer.results) != LIMIT:
        raise RuntimeError(f"the first answer had {len(answer.results)} results, not {LIMIT}")
    progress(f"million: first answer after {took:.1f} s")
    return took


async def _ask(stored: _Stored, folder: Path, requests: Sequence[bytes]) -> list[Measurement]:
    with memory_server(folder, flags=_FLAGS) as server:
        async with Client(server.address) as client:
            answers = await ask_all(client.retrieve, requests, in_flight=1)
            load = await drive(client.retrieve, requests, calls=5 * len(requests), in_flight=1)
            resident = server.resident_bytes()
            index = (await client.stats(NAMESPACE)).index
        stop(server, MILLION_TIMEOUT_S)
    found = [
        [number_of(result.item.id) for result in memory_pb2.RetrieveResponse.FromString(answer).results]
        for answer in answers
    ]
    progress("million: exact search")
    recall = stored.recall(found)
    kind = f"after a restart ({index.kind})"
    return [
        _line(
            stored.size,
            f"recall@{LIMIT}, {kind}",
            recall,
            "",
            bar=_RECALL_BAR,
            details={"queries": float(_QUERIES), "ef": float(index.ef_search)},
        ),
        _latency(stored.size, load, kind),
        _line(stored.size, f"resident memory, {kind}", resident / 2**20, "MiB"),
    ]


def _latency(size: int, load: Load, kind: str) -> Measurement:
    details: dict[str, float | str] = {"p99 ms": load.percentile(0.99) * 1e3, "calls": float(load.calls)}
    return _line(size, f"Retrieve p50, {kind}", load.percentile(0.5) * 1e3, "ms", details=details)


def _line(
    size: int,
    what: str,
    measured: float,
    unit: str,
    *,
    bar: Bar | None = None,
    details: dict[str, float | str] | None = None,
) -> Measurement:
    return Measurement(
        row="million",
        what=f"{count(size)} items: {what}",
        measured=measured,
        unit=unit,
        bar=bar,
        details=details or {},
    )
