"""How the server takes calls from gRPC."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def _printed_by(script: str, *arguments: str) -> list[int]:
    command = (sys.executable, str(Path(__file__).with_name(script)), *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return [int(word) for word in done.stdout.split()]


def test_calls_that_wait_come_in_many_at_a_time() -> None:
    (came_in_at_once,) = _printed_by("waiting_calls.py")
    # gRPC's own server takes calls one by one, however many wait.
    assert came_in_at_once > 10


def test_the_loop_reads_all_wake_ups_at_once() -> None:
    """If each cost a turn of the loop, gRPC's thread would have to wait, and health checks with it."""
    (read_at_once,) = _printed_by("unread_wake_ups.py")
    # With gRPC's own reader it is one.
    assert read_at_once > 10


def test_nothing_is_left_of_a_call_that_ended_with_an_error() -> None:
    """Otherwise the garbage collector, after a flood of refused calls, would stop everything."""
    made, held = _printed_by("aborted_calls.py")
    assert made == 20
    # An object that is created only once, at the first error, keeps that call.
    assert held <= 1


@pytest.mark.parametrize("missing", ["_handle_rpc", "_schedule_rpc_coro"])
def test_without_a_private_function_of_grpc_the_server_is_grpc_s_own(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """A release of grpcio may lack it: calls are then taken one by one, and answered."""
    monkeypatch.setenv("WITHOUT", missing)
    (came_in_at_once,) = _printed_by("waiting_calls.py")
    assert 1 <= came_in_at_once < 10


def test_what_grpc_does_not_read_from_a_socket_is_read_as_ever() -> None:
    """The loop recognises gRPC's reader by its name, and does no harm to readers that it does not know."""
    (read,) = _printed_by("other_readers.py")
    assert read == 3
