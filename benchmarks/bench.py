"""Shared by the rows: data sets, reference graphs and filled data folders, each made once."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.client import Client
from benchmarks.items import import_messages, retrieve_requests
from benchmarks.processes import ServerProcess, memory_server, stop
from benchmarks.search import ExactSearch, GraphSearch, Search, cpu_per_search
from benchmarks.settings import SETTLE_TIMEOUT_S, Sizes
from benchmarks.table import count
from benchmarks.vectors import Dataset, Kind, make_dataset
from memory_service.v1 import admin_pb2

NAMESPACE = "stored"
"""The namespace in a filled data folder."""

_POLL_S = 0.2
_QUIET_S = 1.2
_QUIET_CPU_S = 0.1


def progress(message: str) -> None:
    """Print to stderr what is being done, because a run takes minutes."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Settled:
    """How a namespace is searched once its index has stopped changing."""

    kind: str
    graph_count: int
    exact_count: int
    seconds: float
    """Time from the call of `settle` to the last change of the index."""
    quiet: bool
    """False: it was still changing when time ran out."""


async def settle(
    client: Client, server: ServerProcess, namespace: str = NAMESPACE, timeout_s: float = SETTLE_TIMEOUT_S
) -> Settled:
    """Wait until the index of a namespace stops changing and its server is idle."""
    began = changed = quiet_since = time.perf_counter()
    shape, cpu = _shape((await client.stats(namespace)).index), server.cpu_seconds()
    while True:
        await asyncio.sleep(_POLL_S)
        before, shape = shape, _shape((await client.stats(namespace)).index)
        now, used = time.perf_counter(), server.cpu_seconds()
        if shape != before:
            changed = now
        if shape != before or used - cpu > _QUIET_CPU_S:
            quiet_since, cpu = now, used
        quiet = now - quiet_since > _QUIET_S
        if quiet or now - began > timeout_s:
            return Settled(*shape, seconds=changed - began, quiet=quiet)


def _shape(index: admin_pb2.IndexStats) -> tuple[str, int, int]:
    return index.kind, index.graph_count, index.exact_count


@dataclass(frozen=True)
class Filled:
    """A data folder with one namespace of items, left by a server that was stopped with SIGTERM."""

    data_dir: Path
    import_s: float
    """Time from the first message of the Import to its response."""
    settled: Settled
    """How long the index went on changing after the response."""


class Bench:
    """One run of the benchmarks."""

    def __init__(self, sizes: Sizes, kind: Kind, work_dir: Path, locomo: Path | None) -> None:
        self.sizes = sizes
        self.locomo = locomo
        self._kind: Kind = kind
        self._work_dir = work_dir
        self._datasets: dict[int, Dataset] = {}
        self._graphs: dict[int, GraphSearch] = {}
        self._filled: dict[int, Filled] = {}
        self._folders = 0

    def dataset(self, size: int) -> Dataset:
        """Return the vectors of the namespace of that size."""
        if size not in self._datasets:
            self._datasets[size] = make_dataset(self._kind, size, self.sizes.queries)
        return self._datasets[size]

    def graph(self, size: int) -> GraphSearch:
        """Return the reference's graph over these vectors, built while nothing else runs."""
        if size not in self._graphs:
            self._graphs[size] = self.build_graph(size)
        return self._graphs[size]

    def build_graph(self, size: int) -> GraphSearch:
        """Build that graph again."""
        progress(f"building hnswlib's own graph of {count(size)} vectors")
        return GraphSearch(self.dataset(size).stored)

    def search(self, size: int) -> Search:
        """Return the cheaper bare search in CPU over as many vectors: numpy's, or a tuned graph's."""
        data, graph = self.dataset(size), self.graph(size)
        graph.tune(data)
        searches: tuple[Search, ...] = (ExactSearch(data.stored), graph)
        return min(
            searches,
            key=lambda each: cpu_per_search(each, data.queries, self.sizes.calls, limit_s=0.5),
        )

    def requests(self, size: int) -> list[bytes]:
        """Return the queries of that size, ready to send."""
        return retrieve_requests(NAMESPACE, self.dataset(size).queries)

    def new_folder(self) -> Path:
        """Return a data folder that does not exist yet."""
        self._folders += 1
        return self._work_dir / f"data-{self._folders}"

    async def filled(self, size: int) -> Filled:
        """Return a data folder with that many items; copy it before writing, it must not change."""
        if size not in self._filled:
            self._filled[size] = await self.fill(size)
        return self._filled[size]

    async def copy_of_filled(self, size: int) -> Path:
        """Return a copy of a `filled` folder, which may be changed."""
        filled = await self.filled(size)
        folder = self.new_folder()
        shutil.copytree(filled.data_dir, folder)
        return folder

    def discard(self, folder: Path) -> None:
        """Remove a data folder that is no longer needed: together they would take gigabytes."""
        shutil.rmtree(folder)

    async def fill(self, size: int) -> Filled:
        """Import that many items into a new folder."""
        progress(f"importing {count(size)} items")
        folder = self.new_folder()
        messages = list(import_messages(NAMESPACE, size, self.dataset(size).stored))
        with memory_server(folder) as server:
            async with Client(server.address) as client:
                began = time.perf_counter()
                answer = await client.import_all(messages)
                import_s = time.perf_counter() - began
                if answer.imported_count != size:
                    raise RuntimeError(f"imported {answer.imported_count} items of {size}")
                settled = await settle(client, server)
            stop(server)
        return Filled(folder, import_s, settled)
