"""Complete calls that are cancelled immediately: the server continues, and none stays under way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import raw_http2 as h2
from faults.altered_server import command
from faults.attacked import KINDS, Attacked, attacked
from faults.observed import tasks
from faults.scale import rounds
from grpc_api import eventually
from memory_service.v1 import memory_pb2 as pb

ADD = "/memory_service.v1.MemoryService/Add"
STREAMS = 100
WAVES = rounds(12, 300)


def storm(server: Attacked, wave: int) -> None:
    """Send complete calls, and cancel each: at once, when all are sent, or when the first is answered."""
    headers, calls, resets = server.headers(ADD), [], []
    for number in range(STREAMS):
        item = pb.MemoryItem(id=f"{wave}-{number}", text=f"whole {wave} {number}")
        request = pb.AddRequest(namespace="attacked", item=item).SerializeToString()
        calls.append(h2.call(2 * number + 1, headers, h2.message(request)))
        resets.append(h2.frame(h2.RST_STREAM, 0, 2 * number + 1, h2.CANCEL))
    connection = server.connection()
    try:
        # The server may hang up on such a client.
        with contextlib.suppress(OSError):
            if wave % 3 == 0:
                connection.send(b"".join(call + reset for call, reset in zip(calls, resets, strict=True)))
            else:
                connection.send(b"".join(calls))
                if wave % 3 == 2:
                    next((kind for kind, _, _, _ in connection.frames() if kind == h2.DATA), None)
                connection.send(b"".join(resets))
        serves(server)
    finally:
        connection.close()


def serves(server: Attacked) -> None:
    """Check that the server reports good health to a new client."""
    api = server.api()
    try:
        health = health_pb2_grpc.HealthStub(api.channel)
        answer = health.Check(health_pb2.HealthCheckRequest(), timeout=20)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    finally:
        api.channel.close()


@pytest.fixture(params=KINDS)
def stormed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Attacked]:
    """A separate server, which counts its tasks; a call that stays under way would delay its end."""
    with attacked(request.param, tmp_path, "--drain", "600", command=command("observed")) as server:
        yield server


def test_whole_calls_that_are_reset_leave_nothing(stormed: Attacked) -> None:
    """CVE-2023-44487 with calls that begin: their writes are complete, and none of them stays under way."""
    api = stormed.api()
    api.add("honest", text="before")
    before = tasks(stormed.process)
    for wave in range(WAVES):
        storm(stormed, wave)
    written = {item.id: item.text for item in api.items("attacked")}
    # Otherwise no call began.
    assert written
    assert all(text == f"whole {item_id.replace('-', ' ')}" for item_id, text in written.items())
    api.add("honest", text="after")
    assert len(api.items("honest")) == 2
    eventually(lambda: tasks(stormed.process) <= before, f"as few tasks as {before} again")
    api.channel.close()
    assert stormed.process.terminate() == 0
    assert not any("drain_timed_out" in line for line in stormed.process.log)
    print(f"{WAVES * STREAMS} whole calls reset, {len(written)} of them had been written")
