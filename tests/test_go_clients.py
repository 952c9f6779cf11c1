"""The Go clients with Go's own tools: format, vet, staticcheck, tests under the race detector."""

from __future__ import annotations

import pytest

from toolchain import ROOT, run, tool

GO = ROOT / "clients" / "go"
MODULES = {"client": GO, "agentgo": GO / "agentgo"}


@pytest.fixture(params=MODULES)
def module(request: pytest.FixtureRequest) -> str:
    """Each Go module in turn."""
    return str(request.param)


def test_it_is_formatted_and_clean(module: str) -> None:
    folder = MODULES[module]
    assert run([tool("gofmt"), "-l", "."], folder, timeout_s=60) == ""
    run([tool("go"), "vet", "./..."], folder, timeout_s=240)
    run([tool("staticcheck"), "./..."], folder, timeout_s=240)


def test_its_tests_pass_under_the_race_detector(module: str) -> None:
    printed = run([tool("go"), "test", "-race", "-count=1", "./..."], MODULES[module], timeout_s=540)
    assert "ok" in printed
