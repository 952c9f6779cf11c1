"""The TypeScript client with its own tools: the compiler, and its tests under Node's test runner."""

from __future__ import annotations

import pytest

from toolchain import ROOT, leave_out, run, tool

TYPESCRIPT = ROOT / "clients" / "typescript"


@pytest.fixture
def npm() -> str:
    """npm, with the packages that the Makefile installs."""
    found = tool("npm")
    if not (TYPESCRIPT / "node_modules").is_dir():
        leave_out("the packages of the TypeScript client are not installed: run make test")
    return found


def test_its_types_are_right(npm: str) -> None:
    run([npm, "run", "check"], TYPESCRIPT, timeout_s=240)


def test_its_tests_pass(npm: str) -> None:
    run([npm, "test"], TYPESCRIPT, timeout_s=540)
