"""The tables of the docs: reading them, replacing their rows, and the tests that rows name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from toolchain import ROOT


def rows(text: str, heading: str) -> list[list[str]]:
    """Return the cells of each row of the table below a heading, without the table's header."""
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines[2:]]


def with_rows(page: str, tables: Mapping[str, Sequence[str]]) -> str:
    """Return a page in which the table below each heading has the given rows."""
    for heading, lines in tables.items():
        pattern = rf"(^## {heading}\n(?:(?!## ).*\n)*?\|[-|]+\|\n)(?:\|.*\n)*"
        found = re.search(pattern, page, re.MULTILINE)
        assert found, heading
        page = page[: found.end(1)] + "\n".join(lines) + "\n" + page[found.end() :]
    return page


def named_tests(cell: str) -> list[str]:
    """Return the files below `tests/` that a cell names, and check that they exist."""
    names = re.findall(r"`([\w/]+\.py)`", cell)
    assert [name for name in names if not (ROOT / "tests" / name).is_file()] == [], cell
    return names
