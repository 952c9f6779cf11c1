"""Row `hybrid`: server CPU per query by text, against a bare call."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.bench import NAMESPACE, Bench, Settled, progress, settle
from benchmarks.chat_texts import Chat, import_messages, make_chat, retrieve_requests
from benchmarks.client import Burst, Call, Client, ask_all, measured_burst
from benchmarks.processes import ServerProcess, bare_server, memory_server
from benchmarks.settings import LIMIT, RETRIEVE_IN_FLIGHT
from benchmarks.table import Bar, Measurement, count
from benchmarks.turns import middle
from memory_service.embedders.local import LocalEmbedder
from memory_service.v1 import memory_pb2

_BAR = Bar(3.0, "lower")
_BURST_S = 1.2
"""Time limit of a burst: there are four in a round."""
_HYBRID = "hybrid"
_MODES = {
    _HYBRID: memory_pb2.RETRIEVE_MODE_UNSPECIFIED,
    "LEXICAL": memory_pb2.RETRIEVE_MODE_LEXICAL,
    "VECTOR": memory_pb2.RETRIEVE_MODE_VECTOR,
}


async def run(bench: Bench) -> list[Measurement]:
    """Measure one line for each mode, and one for embedding the query."""
    chat = make_chat(bench.sizes.hybrid_items, bench.locomo)
    requests = {how: retrieve_requests(NAMESPACE, chat.questions, mode) for how, mode in _MODES.items()}
    folder = bench.new_folder()
    with memory_server(folder) as server, bare_server() as bare:
        async with Client(server.address) as client, Client(bare.address) as bare_client:
            progress(f"hybrid: importing {count(len(chat.turns))} {chat.source}")
            imported = await client.import_all(import_messages(NAMESPACE, chat.turns))
            if imported.imported_count != len(chat.turns):
                raise RuntimeError(f"imported {imported.imported_count} turns of {len(chat.turns)}")
            for each in requests.values():
                await ask_all(client.retrieve, each, RETRIEVE_IN_FLIGHT)
            settled = await settle(client, server)
            progress(f"hybrid: {settled.kind} index, {len(chat.questions)} questions")
            rounds = _Rounds(bench.sizes.calls, chat, requests)
            for _ in range(bench.sizes.rounds):
                await rounds.take(server, client.retrieve, bare, bare_client.retrieve)
    bench.discard(folder)
    return rounds.results(settled)


@dataclass
class _Rounds:
    """The measurements and their reference, in turns."""

    calls: int
    chat: Chat
    requests: dict[str, list[bytes]]
    by_mode: dict[str, list[Burst]] = field(default_factory=lambda: {how: [] for how in _MODES})
    bare: list[Burst] = field(default_factory=list)
    embedding: list[float] = field(default_factory=list)
    embedder: LocalEmbedder = field(default_factory=LocalEmbedder)

    async def take(
        self, server: ServerProcess, retrieve: Call, bare: ServerProcess, bare_retrieve: Call
    ) -> None:
        """Measure each once."""
        for how, requests in self.requests.items():
            self.by_mode[how].append(await self._burst(server, retrieve, requests))
        self.bare.append(await self._burst(bare, bare_retrieve, self.requests[_HYBRID]))
        self.embedding.append(await self._cpu_per_embedding())

    async def _burst(self, server: ServerProcess, call: Call, requests: Sequence[bytes]) -> Burst:
        return await measured_burst(
            server, call, requests, calls=self.calls, in_flight=RETRIEVE_IN_FLIGHT, limit_s=_BURST_S
        )

    async def _cpu_per_embedding(self) -> float:
        """Return the CPU seconds that the server's embedder takes for a question, in this process."""
        began = time.process_time()
        for question in self.chat.questions:
            await self.embedder.embed([question])
        return (time.process_time() - began) / len(self.chat.questions)

    def results(self, settled: Settled) -> list[Measurement]:
        """Return one line for each mode, from its median turn, and one for the embedding."""
        where = f"{count(len(self.chat.turns))} {self.chat.source} ({settled.kind})"
        lines = []
        for how, bursts in self.by_mode.items():
            turns = list(zip(bursts, self.bare, strict=True))
            burst, bare = middle(turns, lambda turn: turn[0].cpu_per_call / turn[1].cpu_per_call)
            lines.append(_line(f"{how} Retrieve by text, {where}", burst, bare))
        embeddings = list(zip(self.embedding, self.bare, strict=True))
        embedding_s, bare = middle(embeddings, lambda turn: turn[0] / turn[1].cpu_per_call)
        embedding = Measurement(
            row="hybrid",
            what="CPU of the embedding of the query alone, in this process",
            measured=embedding_s * 1e6,
            unit="us",
            reference=bare.cpu_per_call * 1e6,
            reference_name="= bare call",
        )
        return [*lines, embedding]


def _line(what: str, burst: Burst, bare: Burst) -> Measurement:
    return Measurement(
        row="hybrid",
        what=f"server CPU per {what}, k = {LIMIT}",
        measured=burst.cpu_per_call * 1e6,
        unit="us",
        reference=bare.cpu_per_call * 1e6,
        reference_name="= bare call",
        bar=_BAR if what.startswith(_HYBRID) else None,
        details={
            "calls/s": burst.load.rate,
            "bare calls/s": bare.load.rate,
            "p50 ms": burst.load.percentile(0.5) * 1e3,
            "p99 ms": burst.load.percentile(0.99) * 1e3,
            "in flight": float(RETRIEVE_IN_FLIGHT),
        },
    )
