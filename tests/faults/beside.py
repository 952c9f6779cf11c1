"""What an attack costs others: peak memory, and how an honest caller and health checks fare meanwhile."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from faults.attacked import Attacked
from faults.scale import SOAK
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

MIB = 1 << 20
PEAK_MAX = 512 * MIB
HEALTH_S = 0.3 if SOAK else 2.0
"""Next to the other tests of a run everything takes longer, and a few seconds give few responses."""
HEALTH_SHARE = 0.99 if SOAK else 0.9
_EVERY_S = 0.02


@dataclass
class Beside:
    """Observations made during an attack."""

    idle_bytes: int
    peak_bytes: int = 0
    honest: list[grpc.StatusCode] = field(default_factory=list)
    health_s: list[float] = field(default_factory=list)

    @property
    def is_enough(self) -> bool:
        """Whether enough honest callers were answered to tell how they fare."""
        return min(len(self.honest), len(self.health_s)) > 3

    def check(self) -> None:
        """Assert that the attack cost no more than it may."""
        grown = self.peak_bytes - self.idle_bytes
        assert grown <= PEAK_MAX, f"{grown / MIB:.0f} MiB more than before"
        assert self.is_enough
        assert set(self.honest) == {grpc.StatusCode.OK}
        slowest = sorted(self.health_s)[int(HEALTH_SHARE * len(self.health_s))]
        assert slowest < HEALTH_S, f"health took {slowest:.2f} s"


def resident_bytes(process: ServerProcess) -> int:
    """Return the memory of a server and of its child processes."""
    pids, found = [process.process.pid], 0
    while pids:
        pid = pids.pop()
        try:
            found += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
            pids += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        except OSError:
            continue
    return found


@contextmanager
def beside(server: Attacked) -> Iterator[Beside]:
    """Observe the server during the attack in the block."""
    api = server.honest_api()
    request = pb.AddRequest(namespace="honest", item=pb.MemoryItem(text="a word"))
    health = health_pb2_grpc.HealthStub(api.channel)

    def add() -> None:
        try:
            api.memory.Add(request, timeout=30)
            seen.honest.append(grpc.StatusCode.OK)
        except grpc.RpcError as error:
            seen.honest.append(error.code())

    def ask_for_health() -> None:
        began = time.perf_counter()
        try:
            health.Check(health_pb2.HealthCheckRequest(), timeout=30)
            seen.health_s.append(time.perf_counter() - began)
        except grpc.RpcError:
            seen.health_s.append(math.inf)

    def weigh() -> None:
        seen.peak_bytes = max(seen.peak_bytes, resident_bytes(server.process))

    api.memory.Add(request)
    ended = threading.Event()
    seen = Beside(resident_bytes(server.process))
    watching = [threading.Thread(target=_again, args=(do, ended)) for do in (add, ask_for_health, weigh)]
    for thread in watching:
        thread.start()
    try:
        yield seen
    finally:
        ended.set()
        for thread in watching:
            thread.join()
        api.channel.close()


def _again(do: Callable[[], None], ended: threading.Event) -> None:
    while not ended.wait(_EVERY_S):
        do()
