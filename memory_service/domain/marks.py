"""Marks that delimit a block in a prompt, and how texts inside are kept from containing them.

Readers of a prompt do not compare bytes: a model ignores capitals, widths, accents and invisible characters,
and a parser may normalize first. So texts are searched for a mark as the most lenient reader would.
"""

from __future__ import annotations

import unicodedata

# Characters that look like "<" or ">", or turn into one when a text is normalized. Escaped, because most look
# alike.
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
    """Return a text with all characters that resemble angle brackets escaped as in HTML."""
    return text.translate(_ANGLES)


def holds(text: str, mark: str) -> bool:
    """Return whether a reader may see a mark of lower-case ASCII letters and signs in a text.

    Compares only the letters of the text and the signs of the mark, so it also finds marks that are
    capitalized, wide, accented, or interrupted by other characters.
    """
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    passed_over = bytes(set(range(128)) - set(_LETTERS) - set(mark.encode()))
    return mark.encode() in plain.encode("ascii", "ignore").translate(None, passed_over)
