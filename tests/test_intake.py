"""How calls come in from gRPC, and that nothing is left of them. Each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def outcome(script: str) -> int:
    """Run a script; return the number that it prints."""
    command = (sys.executable, str(Path(__file__).with_name(script)))
    return int(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)


def test_calls_that_wait_come_in_many_at_a_time() -> None:
    # gRPC's own server takes in one after the other, whatever waits.
    assert outcome("waiting_calls.py") > 10


def test_nothing_is_left_of_a_call_that_was_refused() -> None:
    # An error knows where it was raised, and there the call is known. gRPC counts calls that are not freed:
    # with too many of them it refuses new ones. One in many goes through gRPC's own loop.
    assert outcome("refused_calls.py") <= 1
