"""Lists of words, written as text."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the words of a text, which are between white space."""
    return frozenset(text.split())
