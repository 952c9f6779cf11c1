"""The documents: their examples run as printed, and they name what there is."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from grpc_api import SERVICES
from memory_service.limits import Limits
from memory_service.v1 import error_reason_pb2
from server_process import ServerProcess
from toolchain import ROOT

README = (ROOT / "README.md").read_text()
API = (ROOT / "docs" / "api.md").read_text()
LIMITS = (ROOT / "docs" / "limits.md").read_text()
ADDRESS = "127.0.0.1:50051"
CLIENTS = tuple(ROOT / "clients" / client for client in ("", "python", "typescript", "go", "go/agentgo"))

# What differs from run to run, and what may differ in its last digits between machines.
_VARYING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"(duration +)\S+"), r"\1<seconds>"),
    (re.compile(r"((?:size_bytes|item_count|namespace_count) +)\d+"), r"\1<number>"),
    (re.compile(r"(\d\.\d\d)\d\d\b"), r"\1"),
)


def blocks(language: str) -> list[str]:
    """The fenced blocks of the README in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def examples() -> Iterator[tuple[str, str]]:
    """Each command of the README that is shown with its output, and the output."""
    for block in blocks("console"):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command = re.match(r"(?:[^\n]*\\\n)*[^\n]*\n", example)
            assert command, example
            yield command[0], example[command.end() :]


def same(text: str) -> object:
    """A text without what may vary, ready to be compared; JSON as its value."""
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    try:
        return json.loads(text)
    except ValueError:
        return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like a clone to the README's commands."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    return folder


@pytest.fixture(scope="module")
def fresh_server(folder: Path) -> Iterator[ServerProcess]:
    """A server with nothing in it, as the README's reader has just started it."""
    with ServerProcess(folder / "data") as process:
        yield process


def run(command: list[str], folder: Path, address: str) -> str:
    """Run a command of the README against a server and return what it printed."""
    environment = {**os.environ, "MEMORY_SERVICE_ADDRESS": address}
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def run_shell(command: str, folder: Path, address: str) -> str:
    """Run a line of shell; where the address is printed, the test's takes its place."""
    return run(["bash", "-ec", command.replace(ADDRESS, address)], folder, address)


def test_the_python_examples_of_the_readme_print_what_it_says(
    fresh_server: ServerProcess, folder: Path
) -> None:
    programs, outputs = blocks("python"), blocks("text")
    assert len(programs) == len(outputs) >= 1
    for program, output in zip(programs, outputs, strict=True):
        assert ADDRESS in program
        code = program.replace(ADDRESS, fresh_server.address)
        assert run([sys.executable, "-c", code], folder, fresh_server.address) == output


def test_the_shell_examples_of_the_readme_print_what_it_says(
    fresh_server: ServerProcess, folder: Path
) -> None:
    commands = list(examples())
    assert len(commands) >= 4
    for command, output in commands:
        assert same(run_shell(command, folder, fresh_server.address)) == same(output), command


def test_a_backup_is_a_data_folder_as_the_readme_says(
    fresh_server: ServerProcess, folder: Path, tmp_path: Path
) -> None:
    list_them = ".venv/bin/memory-service namespaces"
    run_shell(".venv/bin/memory-service add --namespace kept kept", folder, fresh_server.address)
    before = run_shell(list_them, folder, fresh_server.address)
    run_shell(".venv/bin/memory-service backup restored", folder, fresh_server.address)
    shutil.copytree(folder / "data" / "backups" / "restored", tmp_path / "data")
    with ServerProcess(tmp_path / "data") as restored:
        assert run_shell(list_them, folder, restored.address) == before
        find = ".venv/bin/memory-service retrieve --namespace kept kept"
        assert run_shell(find, folder, restored.address).rstrip().endswith("kept")


def test_every_rpc_is_in_the_api_document() -> None:
    missing = [m.full_name for s in SERVICES for m in s.methods if f"| `{m.name}` |" not in API]
    assert not missing


def test_every_reason_that_is_sent_is_in_the_api_document() -> None:
    reasons = {
        value.name.removeprefix("ERROR_REASON_") for value in error_reason_pb2.ErrorReason.DESCRIPTOR.values
    }
    sources = [
        path.read_text() for path in (ROOT / "memory_service").rglob("*.py") if path.parent.name != "v1"
    ]
    sent = {reason for reason in reasons for source in sources if f'"{reason}"' in source}
    assert len(sent) > 10
    assert not [reason for reason in sent if f"`{reason}`" not in API]


def test_every_limit_is_in_the_document_of_limits_with_its_value() -> None:
    limits = dataclasses.asdict(Limits())
    missing = [
        name
        for name, value in limits.items()
        if not re.search(rf"^\| `{name}` \| {value} ", LIMITS, re.MULTILINE)
    ]
    assert not missing


def requirements() -> Iterator[str]:
    """Every dependency that a file of this repository names."""
    for path in ("pyproject.toml", "clients/python/pyproject.toml"):
        settings = tomllib.loads((ROOT / path).read_text())
        yield from settings["build-system"]["requires"]
        yield from settings["project"]["dependencies"]
        groups = settings["project"].get("optional-dependencies", {}) | settings.get("dependency-groups", {})
        for group in groups.values():
            yield from group


@pytest.mark.parametrize("requirement", sorted(set(requirements())))
def test_every_dependency_is_documented_with_its_licence_and_reason(requirement: str) -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text()
    name = re.escape(Requirement(requirement).name)
    assert re.search(rf"^\| {name} \| [^|]+ \| [^|]+ \|", text, re.MULTILINE)


def documents() -> list[Path]:
    """All documents of this repository that are written by hand."""
    folders = (ROOT, ROOT / "docs", ROOT / "benchmarks", ROOT / "tests" / "vectors", *CLIENTS)
    return [path for folder in folders for path in sorted(folder.glob("*.md"))]


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", document.read_text()):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = document.parent / path if path else document
        assert linked.exists(), target
        headings = re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE) if anchor else []
        assert not anchor or anchor in {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}
