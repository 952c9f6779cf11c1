"""Installed packages match the locks, file by file, and the audit detects differences."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolchain import ROOT

OWN = ("memory-client", "memory-service")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
CLIENT = tomllib.loads((ROOT / "clients" / "python" / "pyproject.toml").read_text())
RUNNING = [*SETTINGS["project"]["dependencies"], *CLIENT["project"]["dependencies"]]
EXTRAS = SETTINGS["project"]["optional-dependencies"]
GROUPS = SETTINGS["dependency-groups"]
ASKED = {
    "server": [*RUNNING, *EXTRAS["postgres"]],
    "reranker": [*RUNNING, *EXTRAS["postgres"], *EXTRAS["reranker"]],
    "dev": [*RUNNING, *(package for extra in EXTRAS.values() for package in extra), *GROUPS["dev"]],
    **{group: packages for group, packages in GROUPS.items() if group not in ("dev", "conformance")},
    "conformance": [
        *GROUPS["conformance"],
        *CLIENT["project"]["dependencies"],
        *(package for extra in CLIENT["project"]["optional-dependencies"].values() for package in extra),
    ],
}
"""The requirements behind each lock."""
TOGETHER = sorted(ASKED.keys() - {"protos", "conformance"})
INSTALLED = ("build", "dev")
"""The locks that `make install` installs."""
ENTRY = re.compile(
    r"^([\w.-]+)==([\w.!+-]+)(?: ; ([^\\\n]+))?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE
)


def text_of(lock: str) -> str:
    """Return the text of a lock."""
    return (ROOT / "locks" / f"{lock}.lock").read_text()


def locked(lock: str) -> dict[str, str]:
    """Return the versions of a lock by name."""
    entries = ENTRY.findall(text_of(lock))
    return {canonicalize_name(name): version for name, version, _, _ in entries}


def locked_here(lock: str) -> dict[str, str]:
    """Return the versions for this platform and this Python."""
    entries = ENTRY.findall(text_of(lock))
    return {
        canonicalize_name(name): version
        for name, version, marker, _ in entries
        if not marker or Marker(marker).evaluate()
    }


def lacking(lock: str, asked: Sequence[str]) -> list[str]:
    """Return the requirements that the lock does not meet."""
    versions = locked(lock)
    return [
        requirement
        for requirement in asked
        if (wanted := Requirement(requirement)).name not in OWN
        and not wanted.specifier.contains(versions.get(canonicalize_name(wanted.name), "0"))
    ]


def test_every_lock_is_known_here() -> None:
    assert {path.name for path in (ROOT / "locks").iterdir()} == {f"{lock}.lock" for lock in ASKED}


@pytest.mark.parametrize("lock", ASKED)
def test_every_entry_of_a_lock_has_one_version_and_its_hashes(lock: str) -> None:
    text = text_of(lock)
    code = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    entries = [line for line in code if not line.startswith(" ")]
    assert len(entries) == len(ENTRY.findall(text)) == len(locked(lock)) >= len(ASKED[lock]) - len(OWN)
    assert all(line.startswith("    --hash=sha256:") for line in code if line.startswith(" "))


@pytest.mark.parametrize("lock", ASKED)
def test_a_lock_names_no_place_where_packages_come_from(lock: str) -> None:
    places = r"https?:|--index|--find-links|--extra-index|@ |file:"
    assert re.search(places, text_of(lock)) is None


@pytest.mark.parametrize("lock", ASKED)
def test_a_lock_is_what_is_asked_for(lock: str) -> None:
    assert lacking(lock, ASKED[lock]) == []  # run: make lock


@pytest.mark.parametrize("settings", [SETTINGS, CLIENT], ids=["server", "client"])
def test_what_builds_the_packages_is_locked(settings: dict[str, dict[str, list[str]]]) -> None:
    assert lacking("build", settings["build-system"]["requires"]) == []


def test_the_locks_agree_about_every_version() -> None:
    versions: dict[str, set[str]] = {}
    for lock in TOGETHER:
        for name, version in locked(lock).items():
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("lock", ["server", "dev"])
def test_a_lock_has_all_that_is_needed_in_turn(lock: str) -> None:
    versions, needed, seen = locked(lock), [*ASKED[lock]], set[str]()
    while needed:
        requirement = Requirement(needed.pop())
        if requirement.name in OWN or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        name = canonicalize_name(requirement.name)
        assert name in versions, name
        # A version other than the installed one may need other packages.
        if name not in seen and versions[name] == importlib.metadata.version(name):
            seen.add(name)
            needed += importlib.metadata.requires(name) or []
    assert len(seen) > 20


def test_a_server_s_lock_holds_nothing_that_is_only_for_development() -> None:
    assert not {"pytest", "mypy", "ruff", "hypothesis"} & locked("server").keys()


@pytest.mark.parametrize("lock", INSTALLED)
def test_what_is_installed_here_is_what_the_lock_names(lock: str) -> None:
    wrong = {
        name: (version, found)
        for name, version in locked_here(lock).items()
        if (found := installed_version(name)) != version
    }
    assert wrong == {}  # run: make install


def installed_version(name: str) -> str | None:
    """Return the version of a package in the environment of these tests."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def write_wheel(folder: Path, name: str) -> str:
    """Write version 1 of an empty package, and return its SHA-256."""
    wheel, about = folder / f"{name}-1-py3-none-any.whl", f"{name}-1.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", f"{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_make_install_takes_no_file_whose_hash_is_not_in_its_lock(tmp_path: Path) -> None:
    good = {name: f" --hash=sha256:{write_wheel(tmp_path, name)}" for name in ("builder", "library")}
    for refused, hashed, said, installed in (
        ("builder", f" --hash=sha256:{'0' * 64}", "DO NOT MATCH THE HASHES", set[str]()),
        ("library", "", "Hashes are required", {"builder-1.dist-info"}),
    ):
        for name, its in good.items():
            (tmp_path / f"{name}.lock").write_text(f"{name}==1{hashed if name == refused else its}\n")
        # The second time the environment is there already: to make one takes long.
        ended = make_install(tmp_path)
        assert ended.returncode != 0
        assert said in ended.stderr
        assert f"{refused}==1" in ended.stderr
        found = {path.name for path in tmp_path.glob("venv/lib/*/site-packages/*-1.dist-info")}
        assert found == installed


def make_install(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `make install` with the locks and wheels in a folder, for an environment there."""
    return subprocess.run(
        [
            *("make", "install", f"PYTHON={sys.executable}", f"VENV={folder / 'venv'}"),
            *(f"BUILD_LOCK={folder / 'builder.lock'}", f"DEV_LOCK={folder / 'library.lock'}"),
        ],
        cwd=ROOT,
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


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
        [sys.executable, ROOT / ".ci" / "audit-dependencies", program, "locks/server.lock"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == code
    assert ended.stdout.startswith(said)
