"""The examples of docs/integrations.md run as printed, and are short."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from repositories import ROOT

PAGE = (ROOT / "docs" / "integrations.md").read_text()
EXAMPLE = re.compile(
    r"^## ([^\n]+)$|^```python\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)


def examples() -> list[tuple[str, str, str]]:
    """Return heading, code and output of each example."""
    found, heading = [], ""
    for match in EXAMPLE.finditer(PAGE):
        heading = match[1] or heading
        if match[2]:
            found.append((heading, match[2], match[3] or ""))
    return found


@pytest.mark.parametrize(("heading", "code", "output"), examples(), ids=[each[0] for each in examples()])
def test_an_example_prints_what_the_page_says(
    heading: str, code: str, output: str, address: str, namespace: str, tmp_path: Path
) -> None:
    assert len(code.splitlines()) <= 25
    assert "127.0.0.1:50051" in code
    assert '"ada"' in code
    code = code.replace("127.0.0.1:50051", address).replace('"ada"', repr(namespace))
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == output
