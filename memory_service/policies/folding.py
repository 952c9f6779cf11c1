"""Folds texts for comparison: look-alike and invisible characters make no difference.

Like NFKC_Casefold of Unicode, it folds compatibility forms and case and removes invisible characters. It also
removes controls, all format characters, and blank symbols.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

# Default_Ignorable_Code_Point of DerivedCoreProperties.txt in the Unicode Character Database, with code
# points reserved for future characters. `unicodedata` does not have this property.
_DEFAULT_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# General categories Cc, except White_Space, and Cf, except those above.
_CONTROLS = "\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
_FORMAT = "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
# Blank symbols: an empty Braille cell, the Khitan filler, a null notehead.
_BLANKS = "\u2800\U00016fe4\U0001d159"
_UNSEEN = re.compile(f"[{_DEFAULT_IGNORABLE}{_CONTROLS}{_FORMAT}{_BLANKS}]+")
_ASCII_CONTROLS = re.compile("[\0-\x08\x0e-\x1f\x7f]")
_MARK = "\0"
_MARKED_SPACE = re.compile(r"\0*(?: \0*)+")


def without_unseen(text: str) -> str:
    """Return a text in compatibility forms (NFKC), without invisible characters and with its case."""
    if _is_plain(text):
        return text
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", text))


@dataclass(frozen=True, slots=True)
class Folded:
    """A text folded for comparison.

    `marked` has a NUL for each run of invisible characters, which may stand for a space or for nothing; None
    if there are none.
    """

    text: str
    marked: str | None


def folded(text: str) -> Folded:
    """Return a text in the form in which phrases are searched for."""
    if _is_plain(text):
        return Folded(_spaced(text.casefold()), None)
    marked = _UNSEEN.sub(_MARK, text)
    whole = _spaced(_folded_case(marked.replace(_MARK, "")))
    if _MARK not in marked:
        return Folded(whole, None)
    return Folded(whole, _MARKED_SPACE.sub(" ", _spaced(_folded_case(marked))))


class Phrase:
    """Words to search for."""

    def __init__(self, words: str) -> None:
        self.text = folded(words).text
        # It has no repetitions, so matching takes linear time.
        self._marked = re.compile(
            "\0?".join("[ \0]" if char == " " else re.escape(char) for char in self.text)
        )

    def is_in(self, said: Folded) -> bool:
        """Whether a text contains the words, with any invisible characters between and in them."""
        return self.text in said.text or (
            said.marked is not None and self._marked.search(said.marked) is not None
        )


def _is_plain(text: str) -> bool:
    """Whether a text is visible ASCII, like most texts, and needs little work."""
    return text.isascii() and _ASCII_CONTROLS.search(text) is None


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _folded_case(text: str) -> str:
    # Case folding may decompose a character.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
