"""Row `startup`: from process start to the first response to a vector query."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.bench import NAMESPACE, Bench, progress
from benchmarks.client import Client
from benchmarks.items import import_messages
from benchmarks.processes import memory_server, stop
from benchmarks.settings import LIMIT
from benchmarks.table import Bar, Measurement, count
from memory_service.v1 import memory_pb2

_BAR = Bar(3.0, "lower", of="measured")
_WRITTEN_MIN = 100


async def run(bench: Bench) -> list[Measurement]:
    """Measure two lines per number of items: after a clean stop, and after a crash."""
    lines = []
    for size in (0, *bench.sizes.stored):
        progress(f"startup: {count(size)} items")
        folder = await bench.copy_of_filled(size) if size else bench.new_folder()
        query = bench.requests(size or bench.sizes.stored[0])[0]
        clean = [await _first_answer(folder, query, min(size, LIMIT)) for _ in range(bench.sizes.starts)]
        lines.append(_line(size, "SIGTERM", clean))
        crashes = [await _crashed(bench, folder, size, turn) for turn in range(bench.sizes.starts)]
        lines.append(_line(size, "kill -9 after writes", crashes))
        bench.discard(folder)
    return lines


async def _crashed(bench: Bench, folder: Path, size: int, turn: int) -> float:
    """Write one item in a hundred, kill the server at once, and start it again."""
    shape = size or bench.sizes.stored[0]
    written = max(size // 100, _WRITTEN_MIN)
    messages = list(import_messages(NAMESPACE, written, bench.dataset(shape).spare, 10**6 * (turn + 1)))
    with memory_server(folder) as server:
        async with Client(server.address) as client:
            await client.import_all(messages)
        server.kill()
    return await _first_answer(folder, bench.requests(shape)[0], LIMIT)


async def _first_answer(folder: Path, query: bytes, results: int) -> float:
    """Start a server, query it, and stop it cleanly; return how long start and response took."""
    began = time.perf_counter()
    with memory_server(folder) as server:
        async with Client(server.address) as client:
            answer = memory_pb2.RetrieveResponse.FromString(await client.retrieve(query))
            took = time.perf_counter() - began
        stop(server)
    if len(answer.results) != results:
        raise RuntimeError(f"the first answer had {len(answer.results)} results, not {results}")
    return took


def _line(size: int, after: str, seconds: list[float]) -> Measurement:
    return Measurement(
        row="startup",
        what=f"start to first answer, {count(size)} items, after {after}",
        measured=min(seconds),
        unit="s",
        bar=_BAR if after == "SIGTERM" else None,
        details={"slowest": max(seconds), "starts": float(len(seconds))},
    )
