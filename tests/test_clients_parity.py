"""The page of all clients: its tables name what each client has, no more and no less."""

from __future__ import annotations

import re

import pytest

from grpc_api import SERVICES
from memory_client import AsyncMemoryClient, MemoryClient
from memory_client.errors import ERROR_OF_CODE
from toolchain import ROOT

CLIENTS = ROOT / "clients"
PAGE = (CLIENTS / "README.md").read_text()
LANGUAGES = ("Python", "TypeScript", "Go")
Row = tuple[str, dict[str, list[str]]]


def rows(heading: str) -> list[Row]:
    """The table with these columns: the first cell of each row, and the names in the other cells."""
    header = re.escape(f"| {heading} | {' | '.join(LANGUAGES)} |")
    table = re.search(rf"^{header}\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert table, heading
    found = []
    for line in table[1].splitlines():
        first, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        names = {
            language: re.findall(r"`([^`]+)`", cell) for language, cell in zip(LANGUAGES, cells, strict=True)
        }
        found.append((first.strip("`"), names))
    return found


RPCS = rows("RPC")
OTHERS = rows("other methods")
ERRORS = rows("code")


def named(language: str) -> set[str]:
    """Every method of a language that the tables name."""
    return {name for _, names in [*RPCS, *OTHERS] for name in names[language]}


def python_methods(client: type) -> set[str]:
    return {name for name in dir(client) if not name.startswith("_")}


def typescript_methods() -> set[str]:
    """The public methods of the classes that the client is put together of."""
    found: set[str] = set()
    for path in (CLIENTS / "typescript" / "src").glob("*.ts"):
        for body in re.findall(
            r"^export (?:abstract )?class \w+ extends Bound \{\n(.*?)^\}", path.read_text(), re.M | re.S
        ):
            found |= set(re.findall(r"^  (?:async )?(?:get )?\*?(\w+)(?:<[^(]*>)?\(", body, re.M))
    return found - {"constructor"}


def go_methods() -> set[str]:
    """The exported methods of Client, in files that are not tests."""
    paths = [path for path in (CLIENTS / "go").glob("*.go") if not path.name.endswith("_test.go")]
    return {
        name
        for path in paths
        for name in re.findall(r"^func \(\w+ \*?Client\) ([A-Z]\w*)\(", path.read_text(), re.M)
    }


def camel(name: str) -> str:
    """A Python name as TypeScript spells it."""
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def test_every_rpc_has_a_row() -> None:
    rpcs = [f"{service.name}/{method.name}" for service in SERVICES for method in service.methods]
    assert sorted(rpc for rpc, _ in RPCS) == sorted([*rpcs, "grpc.health.v1.Health/Check"])


@pytest.mark.parametrize("client", [MemoryClient, AsyncMemoryClient])
def test_python_has_what_the_table_names_and_nothing_else(client: type) -> None:
    assert named("Python") == python_methods(client)


def test_typescript_has_what_the_table_names_and_nothing_else() -> None:
    assert named("TypeScript") == typescript_methods()


def test_go_has_what_the_table_names_and_nothing_else() -> None:
    assert named("Go") == go_methods()


def test_names_correspond_over_the_languages() -> None:
    for first, names in [*RPCS, *OTHERS]:
        (python,) = names["Python"]
        assert names["TypeScript"] == [camel(python)], first
        title = camel(python)[0].upper() + camel(python)[1:]
        # Where an interface gives Go a method of this name, the page says how the whole one is called.
        assert title in names["Go"], first


def test_every_kind_of_error_is_in_each_language() -> None:
    errors = (CLIENTS / "typescript" / "src" / "errors.ts").read_text()
    typescript = set(re.findall(r"^export class (\w+) extends MemoryServiceError", errors, re.M))
    go = dict(re.findall(r'^\t"([A-Z_]+)": +(Err\w+),$', (CLIENTS / "go" / "errors.go").read_text(), re.M))
    assert {code: names["Python"] for code, names in ERRORS} == {
        code: [error.__name__] for code, error in ERROR_OF_CODE.items()
    }
    assert {name for _, names in ERRORS for name in names["TypeScript"]} == typescript
    assert {code: names["Go"] for code, names in ERRORS} == {code: [name] for code, name in go.items()}
