"""Parameter types: durations, times, labels, weights, JSON."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


class Duration(click.ParamType[timedelta]):
    """A duration such as 30s, 15m, 12h, 7d or 1h30m."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the duration; fail if the text is invalid."""
        if isinstance(value, timedelta):
            return value
        found = _DURATION.findall(value)
        if not found or "".join(number + unit for number, unit in found) != value:
            self.fail(f"{value!r} is not a duration such as 30s, 15m, 12h, 7d or 1h30m", param, ctx)
        try:
            return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in found))
        except OverflowError:
            self.fail(f"{value!r} is too long", param, ctx)


class Moment(click.ParamType[datetime]):
    """A time such as 2026-01-31 or 2026-01-31T12:00:00Z; UTC if it has no time zone."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the time; fail if the text is invalid."""
        if isinstance(value, datetime):
            return value
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2026-01-31 or 2026-01-31T12:00:00Z", param, ctx)
        return time if time.tzinfo else time.replace(tzinfo=UTC)


class Since(click.ParamType[datetime]):
    """A time, or a duration before now, such as 2h."""

    name = "time or duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the time; fail if the text is invalid."""
        if isinstance(value, str) and _DURATION.fullmatch(value):
            return datetime.now(UTC) - Duration().convert(value, param, ctx)
        return Moment().convert(value, param, ctx)


class Label(click.ParamType[tuple[str, str]]):
    """A label such as topic=travel."""

    name = "key=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return key and value; fail without "="."""
        if isinstance(value, tuple):
            return value
        key, sign, text = value.partition("=")
        if not sign or not key:
            self.fail(f"{value!r} is not a label such as topic=travel", param, ctx)
        return key, text


class Weight(click.ParamType[tuple[str, float]]):
    """A weight such as recency=0.2."""

    name = "name=number"
    _NAMES = ("lexical", "vector", "recency", "importance", "usage")

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float]:
        """Return name and number; fail if either is invalid."""
        if isinstance(value, tuple):
            return value
        name, _, number = value.partition("=")
        if name not in self._NAMES:
            self.fail(f"{value!r} is not a weight of {', '.join(self._NAMES)}", param, ctx)
        try:
            return name, float(number)
        except ValueError:
            self.fail(f"{value!r} is not a weight such as {name}=0.2", param, ctx)


class JsonObject(click.ParamType[dict[str, Any]]):
    """A JSON object."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        """Return the object; fail if the text is not a JSON object."""
        if isinstance(value, dict):
            return value
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError) as error:
            self.fail(f"not JSON: {error}", param, ctx)
        if not isinstance(parsed, dict):
            self.fail("not a JSON object", param, ctx)
        return parsed


def json_or_text(value: str) -> Any:
    """Return the value of a JSON text, or the text itself if it is not JSON."""
    try:
        return json.loads(value, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the value is nested too deeply") from None
    except ValueError:
        return value


def _refuse(constant: str) -> Any:
    raise ValueError(constant)
