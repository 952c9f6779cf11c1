"""How calls come in from gRPC."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_calls_that_wait_come_in_many_at_a_time() -> None:
    command = (sys.executable, str(Path(__file__).with_name("waiting_calls.py")))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    # gRPC's own server takes in one after the other, whatever waits.
    assert int(done.stdout) > 10
