"""docs/limits.md and the code have the same limits with the same values."""

from __future__ import annotations

import dataclasses
import importlib
import re
import types

from memory_service.config import Config
from memory_service.indexes.settings import IndexSettings
from memory_service.limits import Limits
from memory_service.server.server import _options
from toolchain import ROOT

PACKAGE = ROOT / "memory_service"
ROW = re.compile(r"^\| `([^`]+)` \| (-?[\d.]+)(?: \([^)]+\))? \| [^|]+ \| [^|]+ \|$", re.MULTILINE)
CONSTANT = re.compile(r"[A-Z_]*_MAX")
ELSEWHERE = ("v1", "cli", "importing")  # generated, and what runs at the caller's


def option_of(name: str) -> str:
    """The option of `serve` that sets a field: seconds and days have no unit in theirs."""
    return "--" + re.sub(r"_(s|days)$", "", name).replace("_", "-")


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
        if CONSTANT.fullmatch(name) and isinstance(value := vars(module)[name], int | float)
    }


def in_code() -> dict[str, float]:
    """Every limit by the name that its row has."""
    found: dict[str, float] = dict(dataclasses.asdict(Limits()))
    for settings in (Config(), IndexSettings()):
        for field in dataclasses.fields(settings):
            if field.name.endswith(("_max", "_min", "_bytes", "_s")):
                found[option_of(field.name)] = getattr(settings, field.name)
    found |= dict(_options(Config()))
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] not in ELSEWHERE and parts[-1] != "__main__":
            module = importlib.import_module(".".join(("memory_service", *parts)).removesuffix(".__init__"))
            found |= {f"{'/'.join(parts)}.{name}": value for name, value in constants(module).items()}
    return found


def test_the_table_has_every_limit_of_the_code_with_its_value_and_no_other() -> None:
    text = (ROOT / "docs" / "limits.md").read_text()
    rows = {name: float(value) for name, value in ROW.findall(text)}
    assert len(rows) == len(ROW.findall(text)) > 100
    code = {name: float(value) for name, value in in_code().items()}
    assert {name: code[name] for name in code if name not in rows} == {}  # rows to be written
    assert [name for name in rows if name not in code] == []
    assert {name: rows[name] for name in rows if rows[name] != code[name]} == {}
    assert len([line for line in text.splitlines() if line.startswith("| `")]) == len(rows)


def test_a_limit_of_what_callers_send_has_its_unit_in_its_name() -> None:
    unit = re.compile(
        r"_(bytes|chars|items|values|parts|labels|depth|terms|fields|fragments|documents|commands|ids"
        r"|messages|calls|streams|backups|writes|searches)_max|labels_max|parts_max|.*_hours"
    )
    assert [name for name in dataclasses.asdict(Limits()) if not unit.search(name)] == []
