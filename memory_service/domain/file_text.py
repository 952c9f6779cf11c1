"""The lines of a file."""

from __future__ import annotations

import hashlib

import numpy as np

_BREAK = 0x0A


class FileText:
    """A text with its lines, which end with "\\n"; the last one need not. Lines count from 1."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode()
        self._breaks = np.flatnonzero(np.frombuffer(self.data, np.uint8) == _BREAK)

    @property
    def sha256(self) -> str:
        """The digest of the text in UTF-8, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def line_count(self) -> int:
        """The number of lines."""
        return len(self._breaks) + bool(self.data and self.data[-1] != _BREAK)

    def lines(self, first: int, last: int) -> str:
        """Return the lines from `first` to `last` with their line breaks; `last` may be before `first`."""
        return self.data[self._end(first - 1) : self._end(last)].decode()

    def _end(self, line: int) -> int:
        """Return where the line after this one begins, in bytes."""
        if line < 1:
            return 0
        return int(self._breaks[line - 1]) + 1 if line <= len(self._breaks) else len(self.data)


def line_at(text: str, at: int) -> int:
    """Return the line of a place in a text, from 1; both in code points."""
    return text.count("\n", 0, at) + 1
