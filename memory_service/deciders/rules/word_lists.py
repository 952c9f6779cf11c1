"""Lists of words and patterns of phrases, written as text."""

from __future__ import annotations

import re


def words(text: str) -> frozenset[str]:
    """Return the words of a text, separated by white space."""
    return frozenset(text.split())


def phrases(text: str) -> re.Pattern[str]:
    """Compile a case-insensitive pattern, in which a space matches any white space and line breaks are
    ignored.
    """
    joined = re.sub(r"\s*\n\s*", "", text)
    return re.compile(re.sub(" +", r"\\s+", joined), re.IGNORECASE)
