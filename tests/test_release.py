"""A release has the same version everywhere, and a readable changelog."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from packaging.requirements import Requirement

import memory_client
import memory_service
from toolchain import ROOT

VERSION = memory_service.__version__
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def found(path: str, pattern: str) -> set[str]:
    """Return the group of a pattern's match in a file."""
    return set(re.findall(pattern, (ROOT / path).read_text(), re.MULTILINE))


def test_the_python_packages_take_their_version_from_their_code() -> None:
    assert memory_client.__version__ == VERSION
    for path in ("pyproject.toml", "clients/python/pyproject.toml"):
        project = tomllib.loads((ROOT / path).read_text())["project"]
        assert "version" not in project
        assert project["dynamic"] == ["version"]


def test_the_server_accepts_the_client_of_its_own_version() -> None:
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (client,) = [r for r in map(Requirement, dependencies) if r.name == "memory-client"]
    assert client.specifier.contains(memory_client.__version__)


def test_the_typescript_package_has_the_version() -> None:
    folder = ROOT / "clients" / "typescript"
    package, lock = (
        json.loads((folder / name).read_text()) for name in ("package.json", "package-lock.json")
    )
    assert {package["version"], lock["version"], lock["packages"][""]["version"]} == {VERSION}


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("clients/typescript/README.md", r"memory-service-client-([\w.]+)\.tgz"),
        ("clients/go/agentgo/go.mod", r"^\tgithub\.com/memory-service/memory-service/clients/go v(\S+)$"),
        ("clients/go/agentgo/readme_test.go", r"@v([\w.]+)\""),
    ],
)
def test_a_file_that_names_the_version_names_this_one(path: str, pattern: str) -> None:
    assert found(path, pattern) == {VERSION}


def test_the_readme_names_no_other_version() -> None:
    assert found("README.md", r"\b[Vv]ersion v?(\d+\.\d+\.\d+)") <= {VERSION}


def test_the_change_log_has_a_section_for_the_version_below_unreleased() -> None:
    sections = re.findall(r"^## \[(\S+)\]", CHANGELOG, re.MULTILINE)
    assert sections[:2] == ["Unreleased", VERSION]


def test_a_released_section_of_the_change_log_is_at_most_sixty_lines() -> None:
    sections = re.split(r"^(?=## \[)", CHANGELOG, flags=re.MULTILINE)[2:]
    assert sections
    assert [section.splitlines()[0] for section in sections if len(section.strip().splitlines()) > 60] == []
