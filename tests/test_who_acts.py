"""The domain passes the caller to each write; no store determines it by itself."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import memory_service
from memory_service.store import Store

PACKAGE = Path(memory_service.__file__).parent
WRITES = {
    name
    for base in Store.__mro__
    for name, method in vars(base).items()
    if inspect.isfunction(method) and "by" in inspect.signature(method).parameters
}
CONVENIENT = {"add_items", "replace_item", "delete_item"}
"""Cases of `write` that the domain does not need: it calls `write` itself."""
DOMAIN = sorted((PACKAGE / "domain").rglob("*.py"))


def writes_in(module: Path) -> Iterator[tuple[str, set[str | None]]]:
    """Yield each write of a store that a module calls, or prepares, and the names of its arguments."""
    calls = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call)]
    for call in calls:
        for called in (call.func, *call.args[:1]):
            to_a_store = isinstance(called, ast.Attribute) and ast.unparse(called.value).endswith("store")
            if to_a_store and called.attr in WRITES:
                yield called.attr, {keyword.arg for keyword in call.keywords}


def test_the_domain_tells_who_acts() -> None:
    found = {(module.name, name, "by" in given) for module in DOMAIN for name, given in writes_in(module)}
    assert {entry for entry in found if not entry[2]} == set()
    assert {name for _, name, _ in found} == WRITES - CONVENIENT


@pytest.mark.parametrize("folder", ["records", "indexes"])
def test_no_store_finds_out_who_acts(folder: str) -> None:
    assert [path for path in (PACKAGE / folder).rglob("*.py") if "present_caller" in path.read_text()] == []
