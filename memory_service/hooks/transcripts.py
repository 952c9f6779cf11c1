"""Messages at the end of a transcript of Claude Code or Codex."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TAIL_BYTES_MAX = 2 * 1024 * 1024
"""Read from the end of a transcript. Twice as much takes tens of milliseconds longer to parse; half as much
may begin after the prompt of a turn with many tool results."""
_LINE_BYTES_MAX = 256 * 1024
"""Longer lines hold results of tools or images."""
_MESSAGES_MAX = 100
_TEXT_CHARACTERS_MAX = 16_000
_SKIPPED = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
# Texts that the agent writes in the user's name.
_NOT_TYPED = ("<", "# AGENTS.md", "[Request interrupted", "Caveat: The messages below")


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the user or the agent."""

    role: str
    """ "user" or "assistant"."""
    text: str
    key: str
    """Identifies the message within its transcript."""
    time: str = ""
    """RFC 3339. Empty: unknown."""

    def id_in(self, session_id: str) -> str:
        """Return the item id, the same for every hook that reads the message."""
        return hashlib.sha256(json.dumps([session_id, self.role, self.key]).encode()).hexdigest()[:32]

    def same(self, role: str, text: str) -> bool:
        """Return whether the message has this role and text."""
        return (self.role, self.text) == (role, text)


def shortened(text: str) -> str:
    """Return a text as it is recorded: at most 16,000 characters."""
    return text.strip()[:_TEXT_CHARACTERS_MAX]


def last_messages(path: str) -> list[Message]:
    """Return up to 100 messages in the last 2 MiB of a transcript, in order; none if it is not a file.

    Raises:
        OSError: The file cannot be read.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        return []
    with open(path, "rb") as file:
        start = max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES_MAX)
        file.seek(start)
        lines = file.read(TAIL_BYTES_MAX).split(b"\n")
    if start:
        del lines[0]
    return [message for line in lines for message in _message(line)][-_MESSAGES_MAX:]


def _message(line: bytes) -> Iterator[Message]:
    if len(line) > _LINE_BYTES_MAX or not (b'"user"' in line or b'"assistant"' in line):
        return
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        # Also the last line, if the agent is just writing it.
        return
    if not isinstance(entry, dict) or any(entry.get(mark) for mark in _SKIPPED):
        return
    message = entry.get("payload") if entry.get("type") == "response_item" else entry.get("message")
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        return
    role = str(message["role"])
    text = shortened(_text(message.get("content")))
    if text and not (role == "user" and text.startswith(_NOT_TYPED)):
        time = str(entry.get("timestamp") or "")
        yield Message(role, text, str(entry.get("uuid") or f"{time} {text}"), time)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = [block for block in content if isinstance(block, dict)]
    kinds = ("text", "input_text", "output_text")
    return "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") in kinds)
