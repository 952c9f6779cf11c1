"""Recognizes commands in texts."""

from __future__ import annotations

import re
from collections.abc import Sequence


def recognised(text: str, commands: Sequence[str]) -> str:
    """Return the first of the commands that a text equals or contains; see `Decider.command`."""
    text = " ".join(text.split())
    folded = text.casefold()
    for command in commands:
        wanted = " ".join(command.split())
        if " " in wanted:
            found = _stands_in(folded, wanted.casefold())
        else:
            found = folded == wanted.casefold() or _stands_in(text, wanted.upper())
        if found:
            return command
    return ""


def _stands_in(text: str, words: str) -> bool:
    """Return whether a text contains the words. Scripts without spaces between words have no word
    boundaries.
    """
    for match in re.finditer(re.escape(words), text):
        before, after = text[max(match.start() - 1, 0) : match.start()], text[match.end() : match.end() + 1]
        if not (_joins(before, words[0]) or _joins(words[-1], after)):
            return True
    return False


def _joins(left: str, right: str) -> bool:
    """Return whether two adjacent characters belong to one word."""
    return all(c and (c == "_" or c.isdigit() or c.islower() or c.isupper()) for c in (left, right))
