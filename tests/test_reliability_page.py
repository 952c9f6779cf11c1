"""docs/reliability.md: each promise names existing tests, and how often they do what it says."""

from __future__ import annotations

import re

from tables_of_docs import named_tests, rows
from toolchain import ROOT

TEXT = (ROOT / "docs" / "reliability.md").read_text()
ROUNDS = re.compile(r"\brounds\(([\d_]+), ([\d_]+)\)")
COUNTS = re.compile(r"([\d,]+) / ([\d,]+)")


def counts_in(names: list[str]) -> set[tuple[int, int]]:
    """Return how often files do something in a normal run and in a soak run, as pairs."""
    sources = ((ROOT / "tests" / name).read_text() for name in names)
    return {(int(fast), int(soak)) for source in sources for fast, soak in ROUNDS.findall(source)}


def test_every_promise_names_tests_and_how_often_they_do_it() -> None:
    promises = rows(TEXT, "Promises")
    assert len(promises) >= 25
    for promise, done, shown_by, how_often in promises:
        names = named_tests(shown_by)
        assert names and done, promise
        told = {
            (int(fast.replace(",", "")), int(soak.replace(",", "")))
            for fast, soak in COUNTS.findall(how_often)
        }
        assert told <= counts_in(names), promise


def test_every_file_of_fault_tests_is_named() -> None:
    named = {name for row in rows(TEXT, "Promises") for name in named_tests(row[2])}
    there = {f"faults/{path.name}" for path in (ROOT / "tests" / "faults").glob("test_*.py")}
    of_the_tests_themselves = {"faults/test_scale.py", "faults/test_simulated_disk.py"}
    assert there - named == of_the_tests_themselves


def test_every_fault_names_the_test_that_finds_it() -> None:
    found = rows(TEXT, "What they have found")
    assert len(found) >= 15
    for fault, found_by in found:
        assert named_tests(found_by), fault
