"""Renders memories: as rows, as JSON with every field, as Markdown."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memory_service.cli import output
from memory_service.cli.rendering import moment, one_line, to_json

if TYPE_CHECKING:
    from memory_client import ExtractedMemory, SavedMemory, UserMemory

_HEADINGS = {
    "identity": "Identity",
    "preference": "Preferences",
    "relationship": "Relationships",
    "project": "Projects",
    "context": "Context",
    "unspecified": "Other",
}
_MARKS = re.compile(r"([\\`*_\[\]<>#|~&])")


def outcome_rows(found: SavedMemory | ExtractedMemory) -> str:
    """Return the outcome for a fact, and a line for each memory that it ended."""
    shown = found.memory
    if shown is None or (not shown.id and found.existing is not None):
        shown = found.existing
    row = f"{found.outcome:13}"
    rows = [f"{row}  {_named(shown)}" if shown else row.rstrip()]
    rows += [f"{'ended':13}  {_named(ended)}" for ended in found.superseded]
    return "\n".join(rows)


def _named(memory: UserMemory) -> str:
    return f"{one_line(memory.id):36}  {one_line(memory.content)}"


def memory_row(memory: UserMemory, before: str = "") -> str:
    """Return a memory as one line: id, valid from, valid until, category, importance, content."""
    times = f"{moment(memory.valid_from_time)}  {moment(memory.valid_until_time)}"
    what = f"{memory.category:12}  {memory.importance.current_score:5.2f}"
    return f"{before}{one_line(memory.id):36}  {times}  {what}  {one_line(memory.content)}"


def as_json(memories: Sequence[UserMemory]) -> str:
    """Return a JSON list of objects with every field; unset ones are null, empty or 0."""
    return output.json_text([_whole(memory) for memory in memories], indent=2) + "\n"


def _whole(value: Any) -> Any:
    """Return a value as JSON values, with all fields."""
    if dataclasses.is_dataclass(value):
        return {field.name: _whole(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _whole(each) for key, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, (list, tuple)) else to_json(value)


def as_markdown(namespace: str, memories: Sequence[UserMemory]) -> str:
    """Return the valid memories under a heading per category, and the ended ones under "History"."""
    sections = [f"# Memories of {_plain(namespace)}"]
    for category, heading in _HEADINGS.items():
        holding = [each for each in memories if each.status == "active" and each.category == category]
        if holding:
            sections.append(f"## {heading}\n\n" + "\n".join(_bullet(memory) for memory in holding))
    ended = [memory for memory in memories if memory.status != "active"]
    if ended:
        contents = {memory.id: memory.content for memory in memories}
        sections.append("## History\n\n" + "\n".join(_ended_bullet(memory, contents) for memory in ended))
    return "\n\n".join(sections) + "\n"


def _bullet(memory: UserMemory) -> str:
    return f"- {_plain(memory.content)} ({_importance(memory)}; since {_day(memory.valid_from_time)})"


def _ended_bullet(memory: UserMemory, contents: Mapping[str, str]) -> str:
    times = f"{_day(memory.valid_from_time)} to {_day(memory.valid_until_time)}"
    what = f"{memory.category}; {_importance(memory)}; {times}; {memory.status}"
    later = contents.get(memory.superseded_by)
    return f"- {_plain(memory.content)} ({what}{f' by: {_plain(later)}' if later else ''})"


def _importance(memory: UserMemory) -> str:
    return f"importance {memory.importance.current_score:.3g}"


def _day(time: datetime | None) -> str:
    return moment(time) if time else "?"


def _plain(text: str) -> str:
    """Return a text as one line with Markdown escaped."""
    return _MARKS.sub(r"\\\1", " ".join(one_line(text).split()))
