"""docs/limits.md and the code have the same limits with the same values."""

from __future__ import annotations

import dataclasses
import importlib
import math
import re
import types

import click
import pytest

from memory_service.cli.serve import serve
from memory_service.config import Config
from memory_service.limits import Limits
from memory_service.server.server import _options
from toolchain import ROOT

PACKAGE = ROOT / "memory_service"
ROW = re.compile(r"^\| `([^`]+)` \| (-?[\d.]+)(?: \([^)]+\))? \| [^|]+ \|[^|]+\|$", re.MULTILINE)
# The most and the least of something, also with its unit behind; times; numbers of tries.
CONSTANT = re.compile(r"[A-Z_]*(_(MAX|MIN)(_[A-Z]+)?|_(S|MS|HOURS|DAYS|TRIES|RETRIES))")
ELSEWHERE = ("v1", "cli", "importing")  # generated, and what runs at the caller's


def options() -> dict[str, float]:
    """Every option of `serve` that takes a number, with its default."""
    numbers = (click.types.IntParamType, click.types.FloatParamType)
    of_callers = dataclasses.asdict(Limits())
    return {
        each.opts[0]: each.default
        for each in serve.params
        if isinstance(each.type, numbers) and each.name not in of_callers
    }


def constants(module: types.ModuleType) -> dict[str, float]:
    """The limits that a module sets, not those that it imports."""
    assert module.__file__ is not None
    source = (PACKAGE.parent / module.__file__).read_text()
    own = {
        name for name in vars(module) if re.search(rf"^[A-Z_, ]*\b{name}\b[^=\n]* = ", source, re.MULTILINE)
    }
    return {
        name: value
        for name in own
        if CONSTANT.fullmatch(name)
        and isinstance(value := vars(module)[name], int | float)
        and math.isfinite(value)
    }


def in_code() -> dict[str, float]:
    """Every limit by the name that its row has."""
    found: dict[str, float] = dict(dataclasses.asdict(Limits()))
    found |= options() | dict(_options(Config()))
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] not in ELSEWHERE and parts[-1] != "__main__":
            module = importlib.import_module(".".join(("memory_service", *parts)).removesuffix(".__init__"))
            found |= {f"{'/'.join(parts)}.{name}": value for name, value in constants(module).items()}
    return found


def test_the_table_has_every_limit_of_the_code_with_its_value_and_no_other() -> None:
    text = (ROOT / "docs" / "limits.md").read_text()
    rows = {name: float(value) for name, value in ROW.findall(text)}
    assert len(rows) == len(ROW.findall(text)) > 200
    code = {name: float(value) for name, value in in_code().items()}
    assert {name: code[name] for name in code if name not in rows} == {}  # rows to be written
    assert [name for name in rows if name not in code] == []
    assert {name: rows[name] for name in rows if rows[name] != code[name]} == {}
    assert len([line for line in text.splitlines() if line.startswith("| `")]) == len(rows)


@pytest.mark.parametrize(
    "name",
    [
        "--history-days",
        "--llm-retries",
        "server/access/tokens._SKEW_S",
        "server/memory_servicer._HEARTBEAT_MIN_S",
        "records/sqlite/kept_copy.KEPT_DAYS",
        "records/sqlite/connection._BUSY_MS",
        "domain/items._UPDATE_TRIES",
        "deciders/base.REASONING_CHARS_MIN",
        "server/access/key_sets._KEPT_S",
    ],
)
def test_each_kind_of_limit_is_looked_for(name: str) -> None:
    assert name in in_code()


def test_a_limit_of_what_callers_send_has_its_unit_in_its_name() -> None:
    unit = re.compile(
        r"_(bytes|chars|items|values|parts|labels|depth|terms|fields|fragments|documents|commands|ids"
        r"|messages|calls|streams|backups|writes|searches)_max|labels_max|parts_max|calls_per_s_max|.*_hours"
    )
    assert [name for name in dataclasses.asdict(Limits()) if not unit.search(name)] == []
