"""The results as a table for people and as JSON for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import Literal

Better = Literal["lower", "higher"]

_HEADER = ("what", "measured", "reference", "ratio", "bar", "ok?")


@dataclass(frozen=True)
class Bar:
    """A value that a measurement has to reach."""

    value: float
    better: Better
    of: Literal["ratio", "measured"] = "ratio"

    def reached_by(self, value: float) -> bool:
        """Return whether the value is on the right side of the bar."""
        return value <= self.value if self.better == "lower" else value >= self.value


@dataclass(frozen=True)
class Measurement:
    """One line of the table."""

    row: str
    what: str
    measured: float
    unit: str
    reference: float | None = None
    reference_name: str = ""
    bar: Bar | None = None
    details: dict[str, float | str] = field(default_factory=dict)
    """An explanation of the figure; printed under the line."""

    @property
    def ratio(self) -> float | None:
        """The measured value as a multiple of the reference."""
        return self.measured / self.reference if self.reference else None

    @property
    def ok(self) -> bool | None:
        """Whether the bar was reached. None: there is no bar."""
        if self.bar is None:
            return None
        value = self.ratio if self.bar.of == "ratio" else self.measured
        return value is not None and self.bar.reached_by(value)

    def as_json(self) -> dict[str, object]:
        """Return the line with all derived values."""
        return {**asdict(self), "ratio": self.ratio, "ok": self.ok}


def quantity(value: float, unit: str) -> str:
    """Format a value with its unit, with three or four significant digits."""
    if not unit:
        return f"{value:.4f}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".replace(",", " ")


def count(number: int) -> str:
    """Format a count: 100000 as "100 k"."""
    return f"{number // 1000} k" if number >= 1000 and number % 1000 == 0 else str(number)


def _cells(line: Measurement) -> tuple[str, ...]:
    reference = "" if line.reference is None else quantity(line.reference, line.unit)
    bar = ""
    if line.bar is not None:
        sign = "<=" if line.bar.better == "lower" else ">="
        bar = f"{sign} {line.bar.value:g} {'x' if line.bar.of == 'ratio' else line.unit}".rstrip()
    return (
        line.what,
        quantity(line.measured, line.unit),
        f"{reference} {line.reference_name}".strip(),
        "" if line.ratio is None else f"{line.ratio:.2f} x",
        bar,
        "" if line.ok is None else "ok" if line.ok else "NO",
    )


def _detail(line: Measurement) -> str:
    return ", ".join(
        f"{name} {value if isinstance(value, str) else _short(value)}" for name, value in line.details.items()
    )


def _short(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def render(lines: Sequence[Measurement], notes: Iterable[str]) -> str:
    """Return the table as text: one section per row group, details under their line, notes at the end."""
    cells = [_HEADER, *map(_cells, lines)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADER))]
    rule = "-" * (sum(widths) + 3 * (len(widths) - 1))
    out = [_join(_HEADER, widths), rule]
    group = ""
    for line, row in zip(lines, cells[1:], strict=True):
        if line.row != group:
            group = line.row
            out.append(f"[{group}]")
        out.append(_join(row, widths))
        if line.details:
            out.append(f"    {_detail(line)}")
    out.append(rule)
    out.extend(f"note: {note}" for note in notes)
    return "\n".join(out)


def _join(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def environment() -> dict[str, str | int]:
    """Return what the figures depend on besides the code."""
    packages = ("grpcio", "protobuf", "uvloop", "numpy", "hnswlib", "apsw-sqlite3mc", "wordllama")
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpus": os.cpu_count() or 1,
        **{name: metadata.version(name) for name in packages},
    }
