"""Renders records: as JSON values, or as aligned text."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

from memory_service.cli import output

if TYPE_CHECKING:
    from memory_client import Change, MemoryItem, Result, StateEntry

_TIME_WIDTH = len("2026-01-31 12:00:00Z")
_TEXT_WIDTH_MIN = 20
_NAMESPACE_WIDTH = 24
"""As of state keys; a longer name moves the rest of its row to the right."""
_NO_SCORE = " " * 9


def to_json(record: Any) -> Any:
    """Return a value of the client as JSON values; items and state entries in protobuf's JSON mapping.

    Fields that are None are omitted.
    """
    from memory_client import MemoryItem, StateEntry
    from memory_client.protojson import entry_to_json, item_to_json

    if isinstance(record, MemoryItem):
        return item_to_json(record)
    if isinstance(record, StateEntry):
        return entry_to_json(record)
    if dataclasses.is_dataclass(record):
        values = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
        return {name: to_json(value) for name, value in values.items() if value is not None}
    if isinstance(record, datetime):
        return record.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(record, timedelta):
        return f"{record.total_seconds():g}s"
    if isinstance(record, Enum):
        return record.value
    if isinstance(record, Mapping):
        return {key: to_json(value) for key, value in record.items()}
    return [to_json(value) for value in record] if isinstance(record, (list, tuple)) else record


def one_line(text: str) -> str:
    """Return a text with characters that could break the line replaced by spaces."""
    return "".join(c if c.isprintable() else " " for c in text)


def moment(time: datetime | None) -> str:
    """Return a time to the second, in UTC, with a fixed width."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}" if time else " " * _TIME_WIDTH


def item_row(item: MemoryItem, *, before: str = "") -> str:
    """Return an item as one line: id, time, speaker, text, cut to the width of the terminal."""
    speaker = one_line(item.speaker)[:12]
    row = f"{before}{one_line(item.id):36}  {moment(item.create_time)}  {speaker:12}  "
    return (row + _shortened(one_line(item.text), len(row))).rstrip()


def _shortened(text: str, indent: int) -> str:
    columns = output.columns()
    if columns is None:
        return text
    width = max(_TEXT_WIDTH_MIN, columns - indent)
    return text if len(text) <= width else text[: width - 1] + "…"


def result_rows(result: Result, *, with_namespace: bool = False) -> str:
    """Return a result as a line that begins with its score, and a line for each part of the score.

    Neighbours come before and after it, on lines without a score. `with_namespace`: each item after its
    namespace.
    """
    where = f"{one_line(result.namespace):{_NAMESPACE_WIDTH}}  " if with_namespace else ""
    rows = [item_row(item, before=_NO_SCORE + where) for item in result.before]
    rows.append(item_row(result.item, before=f"{result.score:7.4f}  {where}"))
    rows += [
        f"{share.contribution:7.4f}    {share.channel}: {share.raw_score:.4f}"
        f" / {share.scale:.4f} * {share.weight:g}"
        for share in result.explanation
    ]
    rows += [item_row(item, before=_NO_SCORE + where) for item in result.after]
    return "\n".join(rows)


def state_row(entry: StateEntry) -> str:
    """Return a state entry as one line: time, version, size, key, and its value or a preview of it."""
    shown = one_line(entry.preview or ("" if entry.value is None else json.dumps(entry.value)))
    row = f"{moment(entry.update_time)}  v{entry.version:<5} {entry.size_bytes:>8} B"
    row += f"  {one_line(entry.key):24}  "
    return (row + _shortened(shown, len(row))).rstrip()


def change_row(change: Change) -> str:
    """Return a change as one line: revision, type, and what changed."""
    what = change.item_id or change.state_key
    shown = change.item.text if change.item else ""
    if change.state:
        shown = json.dumps(change.state.value, ensure_ascii=False)
    row = f"{change.revision:8}  {change.type:14}  {one_line(what):36}  "
    return (row + _shortened(one_line(shown), len(row))).rstrip()


def fields(record: Any) -> str:
    """Return a value as one "name  value" line per field; nested names are "name.field".

    Further lines of a value are indented, so that none looks like a field.
    """
    flat = {one_line(name): str(value) for name, value in _flat(to_json(record)).items()}
    width = max((len(name) for name in flat), default=0)
    below = "\n" + " " * (width + 2)
    return "\n".join(f"{name:{width}}  {below.join(value.split(chr(10)))}" for name, value in flat.items())


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        else:
            found[before + name] = value
    return found
