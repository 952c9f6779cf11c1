"""The synchronous client is what the generator makes of the asynchronous one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CLIENT = Path("clients/python")


def generate(root: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(root / CLIENT / "generate_sync.py"), *flags]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def test_no_generated_file_was_edited_or_forgotten() -> None:
    checked = generate(ROOT, "--check")
    assert checked.returncode == 0, checked.stderr
    package = ROOT / CLIENT / "memory_client"
    assert {path.name for path in (package / "_sync").glob("*.py")} == {
        path.name for path in (package / "_aio").glob("*.py")
    }


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A checkout with everything the generator needs."""
    shutil.copytree(ROOT / CLIENT, tmp_path / CLIENT, ignore=shutil.ignore_patterns("*.egg-info", "_gen"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_an_edited_file_is_noticed_and_made_anew(copy: Path) -> None:
    edited = copy / CLIENT / "memory_client" / "_sync" / "state.py"
    text = edited.read_text()
    edited.write_text(text.replace("def load_state", "def read_state"))
    checked = generate(copy, "--check")
    assert (checked.returncode, "state.py" in checked.stderr) == (1, True)
    assert generate(copy).returncode == 0
    assert edited.read_text() == text


def test_a_change_of_the_source_is_noticed(copy: Path) -> None:
    source = copy / CLIENT / "memory_client" / "_aio" / "state.py"
    source.write_text(source.read_text() + "\n\nasync def more() -> None:\n    await nothing()\n")
    assert generate(copy, "--check").returncode == 1
    assert generate(copy).returncode == 0
    made = (copy / CLIENT / "memory_client" / "_sync" / "state.py").read_text()
    assert made.endswith("\n\ndef more() -> None:\n    nothing()\n")


def test_what_no_rule_knows_is_refused(copy: Path) -> None:
    source = copy / CLIENT / "memory_client" / "_aio" / "state.py"
    source.write_text(source.read_text() + "\n\nfrom asyncio import sleep\n")
    refused = generate(copy)
    assert refused.returncode != 0
    assert "no rule for 'asyncio'" in refused.stderr
