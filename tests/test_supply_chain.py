"""What a server is installed from: requirements.lock names it all, with hashes; the audit tells the truth."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolchain import ROOT

LOCK = (ROOT / "requirements.lock").read_text()
OWN = ("memory-client", "memory-service")
ENTRY = re.compile(
    r"^([\w.-]+)==([\w.!+-]+)( ; [^\\\n]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE
)


def locked() -> dict[str, str]:
    """The versions of the lock by name."""
    return {canonicalize_name(name): version for name, version, _, _ in ENTRY.findall(LOCK)}


def declared() -> Iterator[Requirement]:
    """What the server and its client ask for."""
    for path in ("pyproject.toml", "clients/python/pyproject.toml"):
        for requirement in tomllib.loads((ROOT / path).read_text())["project"]["dependencies"]:
            yield Requirement(requirement)


def test_every_entry_of_the_lock_has_one_version_and_its_hashes() -> None:
    code = [line for line in LOCK.splitlines() if line and not line.lstrip().startswith("#")]
    entries = [line for line in code if not line.startswith(" ")]
    assert len(entries) == len(ENTRY.findall(LOCK)) == len(locked()) > 20
    assert all(line.startswith("    --hash=sha256:") for line in code if line.startswith(" "))


def test_the_lock_names_no_place_where_packages_come_from() -> None:
    assert re.search(r"https?:|--index|--find-links|--extra-index|@ |file:", LOCK) is None


def test_the_lock_is_what_the_server_asks_for() -> None:
    versions = locked()
    wrong = [
        str(requirement)
        for requirement in declared()
        if requirement.name not in OWN
        and not requirement.specifier.contains(versions.get(canonicalize_name(requirement.name), "0"))
    ]
    assert wrong == []  # run: make lock


def test_the_lock_has_all_that_the_server_needs_in_turn() -> None:
    versions, needed, seen = locked(), [*map(str, declared())], set[str]()
    while needed:
        requirement = Requirement(needed.pop())
        if requirement.name in OWN or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        name = canonicalize_name(requirement.name)
        assert name in versions, name
        # Another version than the one that is installed here may need other packages.
        if name not in seen and versions[name] == importlib.metadata.version(name):
            seen.add(name)
            needed += importlib.metadata.requires(name) or []
    assert len(seen) > 20


def test_the_lock_holds_nothing_that_is_only_for_development() -> None:
    assert not {"pytest", "mypy", "ruff", "hypothesis"} & locked().keys()


CLEAN = {"dependencies": [{"name": "a", "version": "1", "vulns": []}]}
VULNERABLE = {
    "dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}]
}
SKIPPED = {"dependencies": [*CLEAN["dependencies"], {"name": "b", "skip_reason": "not found"}]}


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (json.dumps(CLEAN), 0, "AUDITED: 1 packages"),
        (json.dumps(VULNERABLE), 1, "VULNERABLE: a 1: CVE-1, fixed in 2"),
        (json.dumps(SKIPPED), 75, "NOT AUDITED: 1 of 2"),
        ("", 75, "NOT AUDITED: the database of vulnerabilities was not reached"),
    ],
)
def test_an_audit_that_did_not_happen_does_not_look_like_a_good_one(
    tmp_path: Path, answer: str, code: int, said: str
) -> None:
    program = tmp_path / "pip-audit"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
    program.chmod(0o700)
    ended = subprocess.run(
        [sys.executable, ROOT / ".ci" / "audit-dependencies", program, "requirements.lock"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == code
    assert ended.stdout.startswith(said)
