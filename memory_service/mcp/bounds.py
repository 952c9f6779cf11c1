"""Bounds of answers, in characters of JSON: a model pays for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

import msgspec

ANSWER_CHARACTERS_MAX = 20_000
"""Default bound of an answer, about 5,000 tokens. Twice as much exceeds what common hosts show without a
warning; half as much splits most files over several calls."""
TEXT_CHARACTERS_MAX = 2_000
"""Bound of one text in a list, so that no entry displaces all others."""
_ENVELOPE = 500
"""Characters for the fields around a list."""

T = TypeVar("T")


def size(value: object) -> int:
    """Return the number of characters of a value as JSON."""
    return len(msgspec.json.encode(value).decode())


def shortened(text: str, characters_max: int = TEXT_CHARACTERS_MAX) -> str:
    """Return a text of at most this many characters, with an ellipsis if it was cut."""
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"


def fitting(entries: Iterable[T], characters_max: int) -> tuple[list[T], int]:
    """Return the first entries that fit, and the number of the others."""
    every = list(entries)
    left = characters_max - _ENVELOPE
    for count, entry in enumerate(every):
        left -= size(entry) + 1
        if left < 0:
            return every[:count], len(every) - count
    return every, 0


def fitting_text(text: str, characters_max: int) -> str:
    """Return the beginning of a text that fits as a JSON string: whole lines, or a part of the first."""
    left = characters_max - _ENVELOPE
    end = 0
    for line in text.splitlines(keepends=True):
        left -= size(line) - 2
        if left < 0:
            break
        end += len(line)
    if end or not text:
        return text[:end]
    cut = text[: characters_max - _ENVELOPE]
    while size(cut) > characters_max - _ENVELOPE:
        cut = cut[: len(cut) // 2]
    return cut


async def first(entries: AsyncIterator[T], count: int) -> list[T]:
    """Return the first entries, without reading further pages."""
    found: list[T] = []
    async for entry in entries:
        found.append(entry)
        if len(found) == count:
            break
    return found
