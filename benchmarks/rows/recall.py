"""Row `recall`: recall@10 of the server's answers against an exact search, also after changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench import NAMESPACE, Bench, progress, settle
from benchmarks.client import Client, ask_all
from benchmarks.items import item_id, number_of
from benchmarks.processes import memory_server
from benchmarks.settings import ADD_IN_FLIGHT, LIMIT, RECALL_MIN, RETRIEVE_IN_FLIGHT
from benchmarks.table import Bar, Measurement, count
from benchmarks.vectors import Vectors, recall
from memory_service.v1 import memory_pb2

_BAR = Bar(RECALL_MIN, "higher", of="measured")


async def run(bench: Bench) -> list[Measurement]:
    """Measure three lines per size: as imported, just after the changes, and after they have settled."""
    return [line for size in bench.sizes.stored for line in await _measure(bench, size)]


@dataclass
class _State:
    """What the namespace should hold: a vector per row, and which rows are live."""

    vectors: Vectors
    live: NDArray[np.bool_]

    def recall(self, queries: Vectors, answers: Sequence[bytes]) -> float:
        """Return the recall of these responses to these queries."""
        found = [
            [number_of(result.item.id) for result in memory_pb2.RetrieveResponse.FromString(answer).results]
            for answer in answers
        ]
        return recall(self.vectors, self.live, queries, found)


async def _measure(bench: Bench, size: int) -> list[Measurement]:
    folder = await bench.copy_of_filled(size)
    data, requests = bench.dataset(size), bench.requests(size)
    state = _State(data.stored.copy(), np.ones(size, dtype=np.bool_))
    lines = []

    progress(f"recall: {count(size)} items")
    with memory_server(folder) as server:
        async with Client(server.address) as client:

            async def line(when: str) -> None:
                answers = await ask_all(client.retrieve, requests, RETRIEVE_IN_FLIGHT)
                index = (await client.stats(NAMESPACE)).index
                lines.append(_line(size, f"{when} ({index.kind})", state.recall(data.queries, answers)))

            await line("as imported")
            await _change(client, state, data.spare)
            await line("10 % deleted, 10 % updated")
            await settle(client, server)
            await line("the same, settled")
    bench.discard(folder)
    return lines


async def _change(client: Client, state: _State, spare: Vectors) -> None:
    """Delete a tenth of the items and give another tenth a new vector."""
    tenth = len(state.live) // 10
    chosen = np.random.default_rng(2).permutation(len(state.live))[: 2 * tenth]
    deleted, updated = chosen[:tenth], chosen[tenth:]
    deletes = [
        memory_pb2.DeleteRequest(namespace=NAMESPACE, id=item_id(int(row))).SerializeToString()
        for row in deleted
    ]
    updates = [_update(int(row), vector) for row, vector in zip(updated, spare, strict=False)]
    await ask_all(client.delete, deletes, ADD_IN_FLIGHT)
    await ask_all(client.update, updates, ADD_IN_FLIGHT)
    state.live[deleted] = False
    state.vectors[updated] = spare[:tenth]


def _update(row: int, vector: Vectors) -> bytes:
    item = memory_pb2.MemoryItem(id=item_id(row), embedding=memory_pb2.Embedding(values=vector.tolist()))
    return memory_pb2.UpdateRequest(namespace=NAMESPACE, item=item).SerializeToString()


def _line(size: int, when: str, measured: float) -> Measurement:
    return Measurement(
        row="recall",
        what=f"recall@{LIMIT}, {count(size)} items, {when}",
        measured=measured,
        unit="",
        reference=1.0,
        reference_name="exact search",
        bar=_BAR,
    )
