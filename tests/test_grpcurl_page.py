"""The page about grpcurl: its commands run in order and print what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from grpc_api import SERVICES
from server_process import ServerProcess
from toolchain import ROOT, tool

PAGE = (ROOT / "docs" / "grpcurl.md").read_text()
ADDRESS = "127.0.0.1:50051"
SECOND_ADDRESS = "127.0.0.1:50052"
ELLIPSIS = "…"


@dataclass(frozen=True)
class Step:
    """A command of the page and its output on the page."""

    command: str
    output: str


def is_complete(command: str) -> bool:
    """Return whether a shell would run this rather than ask for another line."""
    if command.endswith("\\\n"):
        return False
    parsed = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True, check=False)
    # Bash only warns of a here-document without its end.
    return parsed.returncode == 0 and not parsed.stderr


def steps() -> list[Step]:
    """Return the commands of the page in order."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = example.splitlines(keepends=True)
            ends = (n for n in range(1, len(lines) + 1) if is_complete("".join(lines[:n])))
            end = next(ends, len(lines))
            found.append(Step("".join(lines[:end]), "".join(lines[end:])))
    return found


STEPS = steps()


def pattern(shown: str) -> str:
    """Return the page's output as a pattern: "…" is any text of a line, and alone on a line any lines."""
    parts = []
    for line in shown.splitlines():
        if line.strip() == ELLIPSIS:
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(r"[^\n]*?".join(re.escape(text) for text in line.split(ELLIPSIS)) + "\n")
    return "".join(parts)


def tidy(printed: str) -> str:
    """Return an output as a terminal shows it: tabs as columns, no trailing spaces, a last newline."""
    return "".join(line.expandtabs().rstrip() + "\n" for line in printed.rstrip("\n").splitlines())


def is_as_shown(shown: str, printed: str) -> bool:
    return re.fullmatch(pattern(tidy(shown)), tidy(printed)) is not None


def second_server() -> ServerProcess:
    """Return the server that the page starts beside the first one, with the page's settings."""
    (line,) = re.findall(rf"^(.*memory-service serve .*) --address {SECOND_ADDRESS}$", PAGE, re.MULTILINE)
    settings, _, flags = line.partition(".venv/bin/memory-service serve ")
    env = dict(setting.split("=", 1) for setting in shlex.split(settings))
    return ServerProcess(env=env, flags=shlex.split(flags))


def script(address: str, second_address: str) -> str:
    """Return all commands as one script; a NUL that keeps `$?` follows each."""
    separator = "{ code=$?; printf '\\0'; (exit $code); }\n"
    commands = "".join(step.command + separator for step in STEPS)
    return commands.replace(ADDRESS, address).replace(SECOND_ADDRESS, second_address)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Run all commands in one shell against new servers; return the output of each."""
    grpcurl = Path(tool("grpcurl")).parent
    clone = tmp_path_factory.mktemp("clone")
    (clone / "memory_service").symlink_to(ROOT / "memory_service")
    with ServerProcess(clone / "data") as first, second_server() as second:
        ended = subprocess.run(
            ["bash", "-c", script(first.address, second.address)],
            cwd=clone,
            env={**os.environ, "PATH": f"{grpcurl}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=150,
            check=False,
        )
        outputs = ended.stdout.replace(first.address, ADDRESS).replace(second.address, SECOND_ADDRESS)
        yield outputs.split("\0")[:-1]


def test_a_shown_output_is_compared_but_for_its_ellipses() -> None:
    assert is_as_shown('{\n  "id": "…"\n}\n', '{\n  "id": "42"\n}\n')
    assert is_as_shown("{\n  …\n}\n", "{\n  1\n  2\n}\n")
    assert is_as_shown("  1)    {\n", "  1)\t{")
    assert not is_as_shown('{\n  "id": "…"\n}\n', '{\n  "id": "42",\n  "a": 1\n}\n')
    assert not is_as_shown('{"id": "…"}\n', '{"name": "42"}\n')
    assert not is_as_shown("{\n  …\n}\n", "{\n  1\n")


def test_the_page_installs_the_version_that_it_is_tested_with() -> None:
    (version,) = re.findall(r"^go install github\.com/fullstorydev/grpcurl/cmd/grpcurl@(\S+)$", PAGE, re.M)
    pinned = (ROOT / "clients" / "go" / "tools" / "go.mod").read_text()
    assert f"github.com/fullstorydev/grpcurl {version} " in pinned


def test_every_service_is_called() -> None:
    called = {
        f"{service}.{rpc}" for service, rpc in re.findall(r"(memory_service\.v1\.\w+)/(\w+)$", PAGE, re.M)
    }
    for service in SERVICES:
        assert {method.full_name for method in service.methods} & called, service.full_name


def test_every_command_was_run(printed: list[str]) -> None:
    assert len(printed) == len(STEPS) >= 40


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_a_command_of_the_page_prints_what_it_shows(printed: list[str], number: int) -> None:
    step = STEPS[number]
    assert is_as_shown(step.output, printed[number]), f"$ {step.command}{tidy(printed[number])}"
