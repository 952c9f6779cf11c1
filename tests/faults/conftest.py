"""Fault tests: what happens when processes, disks, networks and clocks misbehave."""

from __future__ import annotations

import pytest

from faults.scale import SEED, SOAK


def pytest_report_header() -> str:
    """Print what gives the same run again."""
    return f"fault tests: SEED={SEED}{' SOAK=1' if SOAK else ''}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Say the seed beside a failure: the header is far away."""
    if report.failed and "tests/faults" in report.nodeid:
        report.sections.append(("seed", f"SEED={SEED}"))
