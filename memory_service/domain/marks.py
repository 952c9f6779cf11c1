"""Marks that delimit a block in a prompt, and what keeps them out of the texts in it.

A reader of a prompt does not compare bytes: a model looks through capitals, widths, accents and characters
that are not seen, and a parser may normalise before it looks. So a text is searched for a mark as the most
lenient reader would.
"""

from __future__ import annotations

import unicodedata

# Whatever looks like "<" or ">", or becomes one where a text is normalised. As escapes, for most look alike.
_LOOKALIKES = (
    "\ufe64\ufe65\uff1c\uff1e\u02c2\u02c3\u1433\u1438\u2039\u203a\u2329\u232a\u276c\u276d\u276e\u276f\u2770\u2771"
    "\u27e8\u27e9\u2991\u2992\u29fc\u29fd\u3008\u3009\ufe3f\ufe40"
)
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_ANGLES = str.maketrans(
    {"<": "&lt;", ">": "&gt;", "\u226e": "&nlt;", "\u226f": "&ngt;"}
    | {angle: f"&#x{ord(angle):X};" for angle in _LOOKALIKES}
)


def without_angles(text: str) -> str:
    """Return a text in which no character is taken for an angle bracket: they are written as in HTML."""
    return text.translate(_ANGLES)


def holds(text: str, mark: str) -> bool:
    """Whether a reader may take something in a text for a mark of lower-case ASCII letters and signs.

    Only the letters of the text and the signs of the mark are looked at, so it is found also where it is
    capitalised, wide, accented, or has something in between.
    """
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    passed_over = bytes(set(range(128)) - set(_LETTERS) - set(mark.encode()))
    return mark.encode() in plain.encode("ascii", "ignore").translate(None, passed_over)
