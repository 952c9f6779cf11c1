"""Fault tests: what happens when processes, disks, networks and clocks misbehave."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from faults.scale import SEED, SOAK


def _again() -> str:
    """Return how to repeat the run: a seed is useless without its code and settings."""
    git = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        revision = subprocess.run(
            git, cwd=Path(__file__).parent, check=True, capture_output=True, text=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        revision = "unknown"
    return f"SEED={SEED}{' SOAK=1' if SOAK else ''} at revision {revision}"


_SOAK_TIMEOUT_S = 1800


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of a soak run as long as their many rounds take; else run fault tests again if they fail.

    They race against kills and clocks, so a machine that stalls can make one fail. A fault of the code fails
    twice, and the summary lists what ran again. In a soak every failure counts.
    """
    here = Path(__file__).parent
    for item in items:
        if SOAK and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_SOAK_TIMEOUT_S))
        elif not SOAK and item.path.is_relative_to(here):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_report_header() -> str:
    """Print how to repeat the run."""
    return f"fault tests: {_again()}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Repeat it next to a failure, because the header is far away."""
    if report.failed and "tests/faults" in report.nodeid:
        report.sections.append(("to run it again", _again()))
