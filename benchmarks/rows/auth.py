"""Row `auth`: server CPU per Retrieve with an API key, against the same server without authentication."""

from __future__ import annotations

from benchmarks.bench import Bench, progress
from benchmarks.client import Burst, Client, ask_all, measured_burst
from benchmarks.processes import memory_server
from benchmarks.settings import LIMIT, RETRIEVE_IN_FLIGHT
from benchmarks.table import Bar, Measurement, count
from benchmarks.turns import middle
from memory_service.credentials.key_changes import NewKey, create
from memory_service.credentials.key_file import KeyFile

_BAR = Bar(1.1, "lower")
_TURNS_PER_ROUND = 3


async def run(bench: Bench) -> list[Measurement]:
    """Measure one line, for the smallest namespace: authentication has its largest share there."""
    size = bench.sizes.stored[0]
    open_folder, guarded_folder = await bench.copy_of_filled(size), await bench.copy_of_filled(size)
    # As many keys as on a server with many tenants.
    file = KeyFile(guarded_folder / "api-keys.json")
    token = [create(file, NewKey("tenant", ("stored",), ("read",)))[1] for _ in range(100)][-1]
    requests = bench.requests(size)
    with (
        memory_server(open_folder) as bare,
        memory_server(guarded_folder, flags=["--auth", "keys"]) as guarded,
    ):
        async with Client(bare.address) as client, Client(guarded.address, token) as guarded_client:
            await ask_all(client.retrieve, requests, RETRIEVE_IN_FLIGHT)
            await ask_all(guarded_client.retrieve, requests, RETRIEVE_IN_FLIGHT)
            progress(f"auth: {count(size)} items")
            without: list[Burst] = []
            with_key: list[Burst] = []
            for _ in range(_TURNS_PER_ROUND * bench.sizes.rounds):
                for server, call, bursts in (
                    (bare, client.retrieve, without),
                    (guarded, guarded_client.retrieve, with_key),
                ):
                    calls = bench.sizes.calls
                    burst = await measured_burst(
                        server, call, requests, calls=calls, in_flight=RETRIEVE_IN_FLIGHT
                    )
                    bursts.append(burst)
    for folder in (open_folder, guarded_folder):
        bench.discard(folder)
    turns = list(zip(with_key, without, strict=True))
    return [_line(size, *middle(turns, lambda turn: turn[0].cpu_per_call / turn[1].cpu_per_call))]


def _line(size: int, with_key: Burst, without: Burst) -> Measurement:
    return Measurement(
        row="auth",
        what=f"server CPU per Retrieve with an API key, k = {LIMIT}, {count(size)} items",
        measured=with_key.cpu_per_call * 1e6,
        unit="us",
        reference=without.cpu_per_call * 1e6,
        reference_name="= the same without",
        bar=_BAR,
        details={
            "calls/s": with_key.load.rate,
            "calls/s without": without.load.rate,
            "p50 ms": with_key.load.percentile(0.5) * 1e3,
            "p50 ms without": without.load.percentile(0.5) * 1e3,
            "in flight": float(RETRIEVE_IN_FLIGHT),
        },
    )
