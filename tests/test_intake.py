"""How calls come in from gRPC."""

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
    # gRPC's own server takes in one after the other, whatever waits.
    assert came_in_at_once > 10


def test_the_loop_reads_all_wake_ups_at_once() -> None:
    """Where each costs a turn of the loop, gRPC's thread has to wait, and health with it."""
    (read_at_once,) = _printed_by("unread_wake_ups.py")
    # With gRPC's own reader, one.
    assert read_at_once > 10


def test_nothing_is_left_of_a_call_that_ended_with_an_error() -> None:
    """It would wait for the garbage collector, which after a flood of refused calls stops everything."""
    made, held = _printed_by("aborted_calls.py")
    assert made == 20
    # Something that is made but once, at the first error, keeps that.
    assert held <= 1


@pytest.mark.parametrize("missing", ["_handle_rpc", "_schedule_rpc_coro"])
def test_without_a_private_function_of_grpc_the_server_is_grpc_s_own(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """A release of grpcio may do without it: calls come in one by one then, and are answered."""
    monkeypatch.setenv("WITHOUT", missing)
    (came_in_at_once,) = _printed_by("waiting_calls.py")
    assert 1 <= came_in_at_once < 10


def test_what_grpc_does_not_read_from_a_socket_is_read_as_ever() -> None:
    """The loop knows gRPC's reader by its name, and does no harm to one that it does not know."""
    (read,) = _printed_by("other_readers.py")
    assert read == 3
