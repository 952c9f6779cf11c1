"""Asks a language model for a fact in the third person, and checks its wording."""

from __future__ import annotations

import re

import msgspec

from memory_service.deciders.base import CONTENT_CHARS_MIN, REPHRASED_CHARS_MAX
from memory_service.deciders.rules.comparison import hard_difference
from memory_service.deciders.rules.comparison_reading import Reader

_FIRST_PERSON = re.compile(r"\b(?:I|I'm|I've|I'd|I'll|my|me|mine|myself)\b")
INSTRUCTIONS = (
    'Rephrase the statement as a fact about the user in the third person, beginning with "User" where '
    "that is natural. Keep every name, number, date and negation. Add nothing. Keep quotations. Leave out "
    'phrases that only ask to remember it. Examples: "I am a software engineer" becomes "User is a software '
    'engineer"; "My wife is Jane" becomes "User\'s wife is named Jane".'
)


class Rephrased(msgspec.Struct):
    """The model's wording."""

    content: str


def problem(said: str, worded: str, by_rules: str) -> str:
    """Return what is wrong with a wording; empty if nothing is found."""
    if not CONTENT_CHARS_MIN <= len(worded) <= REPHRASED_CHARS_MAX:
        return f"has {len(worded)} characters"
    if _FIRST_PERSON.search(worded) and '"' not in said:
        return "is not in the third person"
    if difference := hard_difference(worded, by_rules):
        return f"says something else: {difference}"
    return ""


def invented(content: str, said: str, near: str, reader: Reader | None = None) -> str:
    """Return a name or number in the model's wording that does not occur in its source; empty if nothing is
    found.

    Names may come from anywhere in `said`, numbers only from `near`: `said` has too many of them.
    """
    reader = reader or Reader()
    worded, read = reader.pair(content, said)
    if names := sorted(worded.names.difference(read.tokens)):
        return f"has a name that was not mentioned: {names[0][:40]!r}"
    worded, read = reader.pair(content, near)
    known = set(read.numbers)
    if numbers := [number for number in worded.numbers if number not in known]:
        return f"has a number that was not mentioned: {numbers[0][:40]}"
    return ""
