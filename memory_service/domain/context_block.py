"""States as a block for a prompt, within limits.

The block is a heading and a JSON object. A value cannot end the object or imitate the heading: strings escape
every character that could be taken for either, without changing the values.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from memory_service.data_model import StateEntry
from memory_service.domain.marks import holds
from memory_service.tokens import estimate_tokens

_HEADING = "[Relevant Memory]\n"
_HEADING_BEGINS = "[relevantmemory"
# In this layout, brackets outside of strings end a line or are empty.
_BRACKET_OF_STRING = re.compile(r"\[(?![\n\]])")
# Characters that end a line, or turn into JSON punctuation when a text is normalized.
_AMBIGUOUS = re.compile(
    "[\x7f-\x9f\u2028\u2029\ufe37\ufe38\ufe47\ufe48\ufe5b\ufe5c\ufe68\uff02\uff3b\uff3c\uff3d\uff5b\uff5d]"
)


class ContextBlock:
    """Collects entries as long as there is room.

    `tokens_max` limits the estimated tokens of the entries in the block; -1: no limit. `bytes_max` limits the
    block and the entries in an answer, as counted by `entry_bytes`, together.
    """

    def __init__(self, tokens_max: int, bytes_max: int, entry_bytes: Callable[[StateEntry], int]) -> None:
        self._tokens_left = tokens_max if tokens_max >= 0 else bytes_max
        self._bytes_left = bytes_max
        self._entry_bytes = entry_bytes
        self._values: dict[str, msgspec.Raw] = {}

    def add(self, entry: StateEntry) -> str:
        """Add an entry and return ""; or leave it out and return why."""
        # As it will appear in the block, without the outer braces.
        piece = _formatted({entry.key: msgspec.Raw(entry.value_json)})[2:-1]
        tokens = estimate_tokens(piece)
        nbytes = self._entry_bytes(entry) + len(piece.encode())
        if tokens > self._tokens_left:
            return f"its value of about {tokens} tokens does not fit into max_tokens"
        if nbytes > self._bytes_left:
            return f"its value of {entry.size_bytes} bytes does not fit into a response"
        self._tokens_left -= tokens
        self._bytes_left -= nbytes
        self._values[entry.key] = msgspec.Raw(entry.value_json)
        return ""

    @property
    def text(self) -> str:
        """Return the heading and a JSON object from key to value; empty without entries."""
        return _HEADING + _formatted(self._values) if self._values else ""


def _formatted(values: dict[str, msgspec.Raw]) -> str:
    text = msgspec.json.format(msgspec.json.encode(values), indent=2).decode()
    text = _AMBIGUOUS.sub(lambda char: _escaped(char[0]), text)
    if not holds(text, _HEADING_BEGINS):
        return text
    return _BRACKET_OF_STRING.sub(lambda char: _escaped(char[0]), text)


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}"
