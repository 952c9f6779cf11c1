"""Converts entries of a Claude transcript to items and back: verbatim JSON and a readable message."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from memory_client._verbatim import (
    bounded,
    bytes_of,
    clean,
    files_of,
    fits_metadata,
    name_of,
    shortened,
    verbatim_json,
)
from memory_client.messages import ChatMessage, Part, Role, ToolCall, ToolCallResult
from memory_client.models import MemoryItem

ENTRY_KEY = "claude_agent_sdk_entry"
"""Metadata key of the JSON of an entry."""
FILES_KEY = "claude_agent_sdk_files"
"""Metadata key, in place of it, of the number of items that have the JSON in files: this one and the next."""
FILES_TYPE = "application/vnd.claude-agent-sdk.entry+json"
"""MIME type of these files; joined, they are the JSON, in UTF-8."""

_MESSAGES = ("user", "assistant", "system")


def items_of(entry: Mapping[str, Any], transcript: str) -> list[MemoryItem]:
    """Return the item of an entry, or several if its JSON is larger than 1 MiB.

    Their ids follow from the transcript and the entry's `uuid`; without one, the server makes them.

    Raises:
        InvalidArgument: The entry is not JSON.
    """
    verbatim = verbatim_json(entry, "entries")
    message = _readable(entry)
    item = MemoryItem(
        content=message or ChatMessage(Role.SYSTEM, ({"type": clean(str(entry.get("type")))},)),
        id=_id(transcript, entry.get("uuid")),
        create_time=_time(entry.get("timestamp")),
        metadata={ENTRY_KEY: verbatim},
        index=None if message and message.text else "",
    )
    return [item] if fits_metadata(verbatim) else list(_large(item, verbatim))


def _large(item: MemoryItem, verbatim: str) -> Iterator[MemoryItem]:
    message = item.content
    assert isinstance(message, ChatMessage)
    files = list(files_of(verbatim, FILES_TYPE))
    first = ChatMessage(message.role, (*message.parts, files[0]), message_id=message.message_id)
    yield replace(item, content=first, metadata={FILES_KEY: len(files)})
    for number, file in enumerate(files[1:], 1):
        yield replace(
            item,
            content=ChatMessage(message.role, (file,)),
            id=item.id and f"{item.id}-{number}",
            metadata={},
            index="",
        )


def entries_of(items: Iterable[MemoryItem]) -> Iterator[Any]:
    """Yield the entries of items, as they were appended."""
    rest = iter(items)
    for item in rest:
        verbatim: Any = item.metadata.get(ENTRY_KEY)
        if verbatim is None:
            count = int(item.metadata.get(FILES_KEY, 0))
            verbatim = bytes_of(item, FILES_TYPE)
            for _ in range(count - 1):
                verbatim += bytes_of(next(rest), FILES_TYPE)
        if verbatim:
            yield json.loads(verbatim)


def _id(transcript: str, uuid: Any) -> str:
    if not uuid:
        return ""
    return f"claude-{sha256(f'{transcript}/{uuid}'.encode(errors='replace')).hexdigest()[:40]}"


def _time(timestamp: Any) -> datetime | None:
    try:
        time = datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _readable(entry: Mapping[str, Any]) -> ChatMessage | None:
    """Return the message of an entry for people and searches. None: it is none, such as a title."""
    message, kind = entry.get("message"), entry.get("type")
    if kind not in _MESSAGES or not isinstance(message, dict):
        return None
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    parts = tuple(part for part in map(_part, blocks) if part is not None)
    role = Role.ASSISTANT if kind == "assistant" else Role.USER
    if kind == "system" or entry.get("isMeta") is True or entry.get("isCompactSummary") is True:
        role = Role.SYSTEM  # Not said by the user: no facts are extracted from it.
    elif parts and all(isinstance(part, ToolCallResult) for part in parts):
        role = Role.TOOL
    return bounded(ChatMessage(role, parts, message_id=name_of(entry.get("uuid"))))


def _part(block: Any) -> Part | None:
    if isinstance(block, str):
        return clean(block)
    if not isinstance(block, dict):
        return None
    kind = block.get("type")
    if kind == "tool_use":
        given = shortened(block.get("input"))
        arguments = given if isinstance(given, dict) else None
        return ToolCall(name_of(block.get("name")), arguments, name_of(block.get("id")))
    if kind == "tool_result":
        is_error = block.get("is_error") is True
        return ToolCallResult(
            "", shortened(block.get("content")), name_of(block.get("tool_use_id")), is_error
        )
    text = block.get("text", block.get("thinking"))
    return clean(text) if isinstance(text, str) else f"[{clean(str(kind))}]"
