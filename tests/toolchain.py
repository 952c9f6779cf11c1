"""Tools of other languages: their paths, or the reason for skipping tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "build" / "bin"
MEMORY_SERVICE = Path(sys.executable).parent / "memory-service"
"""Return the command with which the tests of the other clients start their servers."""


def tool(name: str) -> str:
    """Return the path of a program, on PATH or where the Makefile installs it.

    Without it the test is skipped with a message; with CI=true it fails.
    """
    found = shutil.which(name, path=str(BUILT)) or shutil.which(name)
    if not found:
        leave_out(f"{name} is neither in build/bin nor on PATH")
    assert found
    return found


def leave_out(reason: str) -> None:
    """Skip the test with a message; with CI=true fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def run(
    command: Sequence[str], folder: Path, *, timeout_s: float, env: Mapping[str, str] | None = None
) -> str:
    """Run a program to its end and return its output; on failure its output is the message."""
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "MEMORY_SERVICE_COMMAND": str(MEMORY_SERVICE), **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if ended.returncode:
        pytest.fail(
            f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout[-20_000:]}", pytrace=False
        )
    return ended.stdout
