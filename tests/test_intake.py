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


def test_as_many_calls_come_in_as_are_let_in_and_a_server_stops_while_others_wait() -> None:
    assert _printed_by("calls_let_in.py") == [0, 3, 8, 8]


def test_the_loop_reads_all_wake_ups_at_once() -> None:
    """Where each costs a turn of the loop, gRPC's thread has to wait, and health with it."""
    (read_at_once,) = _printed_by("unread_wake_ups.py")
    # With gRPC's own reader, one.
    assert read_at_once > 10


@pytest.mark.parametrize("characters", [1, 127, 128])
def test_whose_a_call_is_is_told_to_those_who_give_way(characters: int) -> None:
    """An import rests for the calls of others, and not for those of its own namespace."""
    assert _printed_by("owners_of_calls.py", "n" * characters) == [0, 1]


def test_nothing_is_left_of_a_call_that_ended_with_an_error() -> None:
    """It would wait for the garbage collector, which after a flood of refused calls stops everything."""
    made, held = _printed_by("aborted_calls.py")
    assert made == 20
    # Something that is made but once, at the first error, keeps that.
    assert held <= 1
