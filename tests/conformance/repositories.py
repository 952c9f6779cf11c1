"""Suites that are only in a framework's repository: run from a checkout, never copied.

`CONFORMANCE_LANGGRAPH=PATH make conformance` runs those of LangGraph; without a path they are skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
"""The folder of this repository."""


def checkout(framework: str) -> Path:
    """Return the checkout that CONFORMANCE_<FRAMEWORK> names; skip the test if it names none."""
    variable = f"CONFORMANCE_{framework}"
    if not (path := os.environ.get(variable)):
        pytest.skip(f"{variable} does not name a checkout of the framework's repository")
    return Path(path).resolve()


def run_suite(
    files: Sequence[Path],
    plugin: str,
    folder: Path,
    *,
    env: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    path: Sequence[Path] = (),
    cwd: Path | None = None,
    timeout_s: float = 100,
) -> dict[str, str]:
    """Run test files in another process; return "passed", "failed" or "skipped" by name of the test.

    `plugin` is a module of this folder that pytest loads first; it swaps fixtures. `folder` takes the report;
    `path` goes before PYTHONPATH. `cwd` is by default the parent of the tests' folder.
    """
    report = folder / f"{plugin}.xml"
    here = Path(__file__).parent
    paths = [*map(str, path), str(here), str(here.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "pytest", "-q", "-p", plugin, "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, f"--junitxml={report}", "-o", "asyncio_mode=auto", *arguments, *map(str, files)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(env or {})},
        cwd=cwd or files[0].parent.parent,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    print(ended.stdout[-20_000:], ended.stderr[-2_000:])
    assert ended.returncode in (0, 1), "the suite could not be run"
    cases = ElementTree.parse(report).iter("testcase")
    return {
        f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}": _outcome(case)
        for case in cases
    }


def _outcome(case: ElementTree.Element) -> str:
    kinds = {part.tag for part in case}
    return "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
