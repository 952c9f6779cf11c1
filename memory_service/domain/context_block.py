"""State as a block for a prompt, within bounds."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from memory_service.domain.tokens import estimate_tokens
from memory_service.records import StateEntry

_HEADING = "[Relevant Memory]\n"


class ContextBlock:
    """Takes entries in as long as there is room.

    `tokens_max` bounds what the entries take in the block, estimated; -1 does not. `bytes_max` bounds
    the entries in an answer, as `entry_bytes` counts them, and the block together.
    """

    def __init__(self, tokens_max: int, bytes_max: int, entry_bytes: Callable[[StateEntry], int]) -> None:
        self._tokens_left = tokens_max if tokens_max >= 0 else bytes_max
        self._bytes_left = bytes_max
        self._entry_bytes = entry_bytes
        self._values: dict[str, msgspec.Raw] = {}

    def add(self, entry: StateEntry) -> str:
        """Take an entry in and return ""; or leave it out and return why."""
        # As it will stand in the block, without the braces around all.
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
        """The heading, then a JSON object from key to value; empty without entries."""
        return _HEADING + _formatted(self._values) if self._values else ""


def _formatted(values: dict[str, msgspec.Raw]) -> str:
    return msgspec.json.format(msgspec.json.encode(values), indent=2).decode()
