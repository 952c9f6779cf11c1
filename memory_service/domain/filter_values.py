"""The values in a filter: as written, and what they mean."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_service.predicates import Pattern, Structure, canonical


class Misfit(Exception):
    """A mistake in a filter; `at` is the index of its character."""

    def __init__(self, at: int, problem: str) -> None:
        super().__init__(problem)
        self.at = at
        self.problem = problem


@dataclass(frozen=True)
class Json:
    """A value inside a list or an object, or one of these, and its place."""

    value: Any
    at: int


@dataclass(frozen=True)
class Literal:
    """A value as written, without its quotes; escaped asterisks do not count as wildcards."""

    text: str
    at: int
    quoted: bool
    any_before: bool
    any_after: bool
    structure: Structure | None = None
    """Set if it is a list or an object."""

    @classmethod
    def nested(cls, found: Json) -> Literal:
        """Return a list or an object."""
        structure = Structure(canonical(found.value))
        return cls(structure.text, found.at, True, False, False, structure)

    @classmethod
    def bare(cls, text: str, at: int) -> Literal:
        """Return a word without quotes."""
        return cls(text, at, False, text.startswith("*"), text.endswith("*"))

    @classmethod
    def in_quotes(cls, written: str, at: int) -> Literal:
        """Return a quoted text. Raises Misfit at an unknown escape."""
        text, starred = _unescaped(written[1:-1], at + 1)
        return cls(text, at, True, 0 in starred, bool(text) and len(text) - 1 in starred)

    @property
    def is_any(self) -> bool:
        """Return whether it is a bare asterisk."""
        return self.text == "*" and not self.quoted

    def as_text(self, *, wildcards: bool = True) -> str | Pattern:
        """Return the value where a text is expected."""
        if not wildcards or not (self.any_before or self.any_after):
            return self.text
        if self.text == "*":
            return Pattern("", True, True)
        return Pattern(
            self.text[self.any_before : len(self.text) - self.any_after], self.any_before, self.any_after
        )

    def as_json(self, *, wildcards: bool = True) -> str | float | bool | Pattern | Structure | None:
        """Return the value where any type is allowed. Unquoted numbers, true, false and null are no text."""
        if self.structure is not None:
            return self.structure
        if self.quoted:
            return self.as_text(wildcards=wildcards)
        if self.text in _WORDS:
            return _WORDS[self.text]
        if _NUMBER.fullmatch(self.text):
            number = float(self.text)
            if not math.isfinite(number):
                raise Misfit(self.at, "the number is out of range")
            return number
        return self.as_text(wildcards=wildcards)

    def as_number(self) -> float:
        """Return the value where a number is expected."""
        number = self.as_json(wildcards=False)
        if isinstance(number, float):
            return number
        raise Misfit(self.at, "expected a number")

    def as_time_us(self) -> int:
        """Return the value where a time is expected, in microseconds."""
        if _TIME.fullmatch(self.text):
            try:
                time = datetime.fromisoformat(self.text.upper())
            except ValueError:
                raise Misfit(self.at, "there is no such time") from None
            return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
        raise Misfit(self.at, 'expected a time, such as 2023-05-01 or "2023-05-01T08:30:00Z"')


_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII | re.IGNORECASE
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

# The two halves of a surrogate pair are one character.
_ESCAPE = re.compile(r"((?:\\u[0-9A-Fa-f]{4})+)|\\(.)", re.DOTALL)
_ESCAPED = {
    '"': '"', "'": "'", "\\": "\\", "/": "/", "*": "*", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip


def unquoted(written: str, at: int) -> str:
    """Return a text without its quotes and escapes. Raises Misfit."""
    return _unescaped(written[1:-1], at + 1)[0]


def _unescaped(written: str, at: int) -> tuple[str, set[int]]:
    """Return a text without its escapes, and the places of its unescaped asterisks."""
    text, starred, end = "", set[int](), 0
    for escape in _ESCAPE.finditer(written):
        text, end = _with_plain(text, written[end : escape.start()], starred), escape.end()
        codes, character = escape.groups()
        if codes is None and character not in _ESCAPED:
            raise Misfit(at + escape.start(), 'expected one of " \' \\ / * b f n r t uXXXX after "\\"')
        text += _ESCAPED[character] if codes is None else _of_codes(codes, at + escape.start())
    text = _with_plain(text, written[end:], starred)
    return text, starred


def _with_plain(text: str, plain: str, starred: set[int]) -> str:
    starred.update(len(text) + n for n, character in enumerate(plain) if character == "*")
    return text + plain


def _of_codes(codes: str, at: int) -> str:
    try:
        return bytes.fromhex(codes.replace("\\u", "")).decode("utf-16-be")
    except UnicodeDecodeError:
        raise Misfit(at, "half of a surrogate pair is no character") from None
