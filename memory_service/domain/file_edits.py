"""Edits of a part of a file."""

from __future__ import annotations

from dataclasses import dataclass

from memory_service.domain.file_text import FileText, line_at
from memory_service.errors import FailedPrecondition, InvalidArgument

_LINES_MAX = 20
"""Lines listed for a text that occurs more than once."""


@dataclass(frozen=True, slots=True)
class ReplaceText:
    """Replace a text that occurs exactly once."""

    old_text: str
    new_text: str


@dataclass(frozen=True, slots=True)
class InsertText:
    """Insert lines after a line."""

    after_line: int
    text: str


@dataclass(frozen=True, slots=True)
class AppendText:
    """Add a text to the end."""

    text: str


Edit = ReplaceText | InsertText | AppendText


def check_edit(edit: Edit, prefix: str = "") -> None:
    """Check an edit without its file. Raises InvalidArgument for a field, named after `prefix`."""
    match edit:
        case ReplaceText(old_text):
            if not old_text:
                raise InvalidArgument(f"{prefix}replace.old_text", "is required")
        case InsertText(after_line, text):
            if after_line < 0:
                raise InvalidArgument(f"{prefix}insert.after_line", "must not be negative")
            if not text:
                raise InvalidArgument(f"{prefix}insert.text", "is required")
        case AppendText(text):
            if not text:
                raise InvalidArgument(f"{prefix}append.text", "is required")


def changed_field(edit: Edit) -> str:
    """Return the name of the field with the new text."""
    match edit:
        case ReplaceText():
            return "replace.new_text"
        case InsertText():
            return "insert.text"
    return "append.text"


def edited(path: str, text: str, edit: Edit, prefix: str = "") -> tuple[str, int]:
    """Return the text after an edit, and the line in which the change begins.

    Raises InvalidArgument for a line that does not exist, and FailedPrecondition for a text that does not
    occur exactly once.
    """
    match edit:
        case ReplaceText(old_text, new_text):
            at = _only_place(path, text, old_text)
            return text[:at] + new_text + text[at + len(old_text) :], line_at(text, at)
        case InsertText(after_line, new_text):
            return _inserted(text, after_line, new_text, f"{prefix}insert.after_line"), after_line + 1
    return text + edit.text, line_at(text, len(text))


def _only_place(path: str, text: str, wanted: str) -> int:
    """Return where a text occurs exactly once."""
    at = text.find(wanted)
    # Occurrences that overlap are as ambiguous as others.
    if at < 0 or text.find(wanted, at + 1) >= 0:
        count = 0 if at < 0 else max(text.count(wanted), 2)
        raise FailedPrecondition.occurrences(path, count, ",".join(map(str, _lines_with(text, wanted))))
    return at


def _lines_with(text: str, wanted: str) -> list[int]:
    """Return the first lines in which a text begins."""
    lines: list[int] = []
    line, counted, at = 1, 0, text.find(wanted)
    while at >= 0 and len(lines) < _LINES_MAX:
        line += text.count("\n", counted, at)
        lines.append(line)
        counted, end = at, text.find("\n", at)
        at = text.find(wanted, end + 1) if end >= 0 else -1
    return lines


def _inserted(text: str, after_line: int, new_text: str, field: str) -> str:
    lines = FileText(text)
    if after_line > lines.line_count:
        raise InvalidArgument(field, f"is {after_line}, but the file has {lines.line_count} lines")
    before, rest = lines.lines(1, after_line), lines.lines(after_line + 1, lines.line_count)
    if before and not before.endswith("\n"):
        before += "\n"
    if rest and not new_text.endswith("\n"):
        new_text += "\n"
    return before + new_text + rest
