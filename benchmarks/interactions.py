"""Does the time of RetrieveLastInteractions(5) depend on how much is stored?

python -m benchmarks.interactions [--stored 100000]

One server with its default store holds three namespaces: one with 100 interactions, one with as many as
`--stored` says, and one with that many plain items written after 100 interactions. Every second interaction
is the response to the message before it. Calls to the three take turns, one at a time, and the median of each
is compared with that of the first. The server has no embedder, because this call uses no vectors and writing
is faster without one.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import uvloop

from benchmarks.bench import progress
from benchmarks.processes import ServerProcess, stop
from benchmarks.table import count
from memory_service.v1 import interaction_pb2 as pb
from memory_service.v1 import interaction_pb2_grpc, memory_pb2, memory_pb2_grpc

FEW = 100
RATIO_MAX = 3.0
LIMIT = 5
ROUNDS = 400
WARM_UP = 20
WRITES_IN_FLIGHT = 64
IMPORT_BATCH = 500

_BASE, _MANY, _BURIED = "few", "many", "buried"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.interactions", description=__doc__)
    parser.add_argument("--stored", type=int, default=100_000, metavar="N", help="default: %(default)s")
    return parser.parse_args()


async def _talk(channel: grpc.aio.Channel, namespace: str, stored: int) -> None:
    """Store that many interactions, alternating messages and responses."""
    stub: Any = interaction_pb2_grpc.InteractionServiceStub(channel)
    numbers = iter(range(stored // 2))

    async def write() -> None:
        for number in numbers:
            await stub.StoreInteraction(
                pb.StoreInteractionRequest(
                    namespace=namespace,
                    id=f"m{number}",
                    sender=f"user{number % 100}",
                    content=f"Question {number}: how does artificial intelligence work?",
                )
            )
            await stub.StoreResponse(
                pb.StoreResponseRequest(
                    namespace=namespace,
                    in_response_to=f"m{number}",
                    content=f"Answer {number}: by algorithms and statistical models.",
                )
            )

    await asyncio.gather(*(write() for _ in range(min(WRITES_IN_FLIGHT, stored // 2))))


async def _bury(channel: grpc.aio.Channel, namespace: str, items: int) -> None:
    """Write that many plain items after the existing ones."""
    stub: Any = memory_pb2_grpc.MemoryServiceStub(channel)

    async def batches() -> AsyncIterator[memory_pb2.ImportRequest]:
        for first in range(0, items, IMPORT_BATCH):
            texts = (f"Note {n} about something else" for n in range(first, min(first + IMPORT_BATCH, items)))
            plain = [memory_pb2.MemoryItem(text=text) for text in texts]
            yield memory_pb2.ImportRequest(namespace=namespace, items=plain)

    await stub.Import(batches())


async def _measure(channel: grpc.aio.Channel, namespaces: list[str]) -> dict[str, float]:
    """Return the median time of a call for each namespace, in seconds."""
    stub: Any = interaction_pb2_grpc.InteractionServiceStub(channel)
    took: dict[str, list[float]] = {namespace: [] for namespace in namespaces}
    for turn in range(WARM_UP + ROUNDS):
        for namespace in namespaces:
            request = pb.RetrieveLastInteractionsRequest(namespace=namespace, limit=LIMIT)
            began = time.perf_counter()
            response = await stub.RetrieveLastInteractions(request)
            if turn >= WARM_UP:
                took[namespace].append(time.perf_counter() - began)
            if [pair.response_count for pair in response.interactions] != [1] * LIMIT:
                raise RuntimeError(f"{namespace}: not the interactions that were stored")
    return {namespace: statistics.median(times) for namespace, times in took.items()}


async def _run(data_dir: Path, stored: int) -> dict[str, float]:
    with ServerProcess(data_dir, flags=["--embedder", "none"]) as server:
        async with grpc.aio.insecure_channel(server.address) as channel:
            for namespace, size in ((_BASE, FEW), (_BURIED, FEW), (_MANY, stored)):
                progress(f"storing {count(size)} interactions")
                await _talk(channel, namespace, size)
            progress(f"importing {count(stored)} plain items")
            await _bury(channel, _BURIED, stored)
            progress("measuring")
            medians = await _measure(channel, [_BASE, _MANY, _BURIED])
        stop(server)
    return medians


def main() -> int:
    """Measure and print. A missed bar is only shown."""
    stored = _arguments().stored
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="memory-bench-") as folder:
        medians = uvloop.run(_run(Path(folder), stored))
    base = medians[_BASE]
    print(f"RetrieveLastInteractions({LIMIT}), median of {ROUNDS} calls")
    print(f"{'namespace':<48}{'median':>10}{'ratio':>8}  bar")
    print(f"{f'{count(FEW)} interactions':<48}{base * 1e3:>7.2f} ms{1:>8.2f}")
    for label, namespace in (
        (f"{count(stored)} interactions", _MANY),
        (f"{count(FEW)} interactions, then {count(stored)} items", _BURIED),
    ):
        ratio = medians[namespace] / base
        met = "met" if ratio <= RATIO_MAX else "NO"
        print(f"{label:<48}{medians[namespace] * 1e3:>7.2f} ms{ratio:>8.2f}  <= {RATIO_MAX:g} {met}")
    print(f"took {time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
