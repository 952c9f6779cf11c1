"""Splits English text into sentences, and finds quotations, code and addresses in it."""

from __future__ import annotations

import bisect
import re

KEPT = re.compile(
    r"""
    ```.*?``` | `[^`\n]*`                                                  # code
    | (?<!\w)"[^"\n]*" | “[^“”\n]{0,200}” | «[^«»\n]{0,200}» | „[^„“”\n]{0,200}[“”]  # quotations
    | (?<![\w'’])'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w)){0,200}'(?!\w)           # in single marks,
    | (?<![\w'’])‘(?=\S)(?:[^‘’\n]|(?<=\w)’(?=\w)){0,200}’(?!\w)          # which may have apostrophes inside
    | \b\w+://\S+ | \bwww\.\S+                                           # addresses
    """,
    re.VERBOSE | re.DOTALL,
)
"""What stays unchanged: quotations, code and addresses. If another mark opens before one closes, the part
begins at the later mark, so that a run of opening marks is not searched from each of them to the end.
"""

_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’)\]]*\s+|\n\s*")
_ABBREVIATION = re.compile(
    r"\b(?:[A-HJ-Z]|Dr|Mr|Mrs|Ms|Prof|St|Sr|Jr|vs|etc|e\.g|i\.e|a\.m|p\.m|Inc|Ltd|Co|Corp|approx|cf)\.$"
)
_ABBREVIATION_CHARS_MAX = 8


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with the space that follows it; joined they are the text."""
    kept = [match.span() for match in KEPT.finditer(text)]
    starts = [start for start, _ in kept]
    parts: list[str] = []
    begin = 0
    for end in _END.finditer(text):
        at = bisect.bisect_left(starts, end.start()) - 1
        if at >= 0 and end.end() <= kept[at][1]:
            continue
        first = max(begin, end.start() + 1 - _ABBREVIATION_CHARS_MAX)
        if "\n" not in end.group() and not _between(
            text[first : end.start() + 1], text[end.end() : end.end() + 2]
        ):
            continue
        parts.append(text[begin : end.end()])
        begin = end.end()
    if begin < len(text):
        parts.append(text[begin:])
    return parts


def _between(before: str, after: str) -> bool:
    """Return whether a sentence ends with `before`, a full stop or the like, and another one follows."""
    if _ABBREVIATION.search(before):
        return False
    # Many sentences in chats begin with "i"; none with another small letter.
    return not after[:1].islower() or re.match(r"i\b", after) is not None


def follows_mark(text: str, at: int, marks: str) -> bool:
    """Return whether one of the marks precedes a place, with only white space in between.

    A mark may be white space itself, such as a line break.
    """
    while at:
        char = text[at - 1]
        if char in marks:
            return True
        if not char.isspace():
            return False
        at -= 1
    return False
