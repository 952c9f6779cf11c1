"""Converts events and memories of Google ADK to items and back: verbatim JSON and a readable message."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from google.adk.events import Event
from google.genai import types

from memory_client._verbatim import attached, bounded, clean, name_of, shortened, verbatim_json, verbatim_of
from memory_client.messages import BinaryPart, ChatMessage, Part, Role, ToolCall, ToolCallResult
from memory_client.models import MemoryItem

EVENT_KEY = "google_adk_event"
"""Metadata key of the JSON of an event, or of a memory."""
ID_LABEL = "google_adk_id"
"""The label with the id of the event, or of the memory."""
FILES_TYPE = "application/vnd.google-adk+json"
"""MIME type of files with it, if it is larger than 15 KiB."""


def item_of(
    value: Any,
    content: types.Content | None,
    author: str | None,
    *,
    scope: str,
    id: str,
    timestamp: float | None,
    index: str | None = None,
) -> MemoryItem:
    """Return the item that keeps a value, the JSON of an event or of a memory.

    Args:
        value: The JSON value.
        content: The content that people and searches see.
        author: "user", or an agent's name.
        scope: Of its id and its `session_id`.
        id: The id within the scope.
        timestamp: When it was said, in seconds since the epoch.
        index: The text to find it by. None: the content, tool calls included.
    """
    message, metadata = attached(
        readable(content, author), verbatim_json(value, "event"), EVENT_KEY, FILES_TYPE
    )
    return MemoryItem(
        content=message,
        id=id_of(scope, id),
        session_id=scope,
        create_time=None if timestamp is None else datetime.fromtimestamp(timestamp, UTC),
        metadata=metadata,
        index=index if index is not None or message.text else "",
    )


def id_of(scope: str, id: str) -> str:
    """Return the id of the item of an event, or of a memory."""
    return f"adk-{sha256(f'{scope}/{id}'.encode(errors='replace')).hexdigest()[:40]}"


def value_of(item: MemoryItem) -> Any:
    """Return the value that an item keeps."""
    return verbatim_of(item, EVENT_KEY, FILES_TYPE)


def event_json(event: Event) -> Any:
    """Return an event as JSON."""
    return event.model_dump(mode="json", exclude_none=True)


def text_of(content: types.Content | None) -> str:
    """Return the text of a content, without tool calls."""
    parts = (content.parts or []) if content else []
    return "\n".join(clean(part.text) for part in parts if part.text)


def readable(content: types.Content | None, author: str | None) -> ChatMessage:
    """Return a content for people, searches and clients in other languages."""
    parts = tuple(_parts(content))
    role = Role.USER if author == "user" else Role.ASSISTANT
    if parts and all(isinstance(part, ToolCallResult) for part in parts):
        role = Role.TOOL
    return bounded(ChatMessage(role, parts, name=name_of(author) or None))


def _parts(content: types.Content | None) -> Iterator[Part]:
    for part in (content.parts or []) if content else []:
        if part.text:
            yield clean(part.text)
        elif part.function_call:
            call = part.function_call
            yield ToolCall(name_of(call.name), shortened(call.args or {}), name_of(call.id))
        elif part.function_response:
            result = part.function_response
            yield ToolCallResult(name_of(result.name), shortened(result.response), name_of(result.id))
        elif part.inline_data or part.file_data:
            data = part.inline_data or part.file_data
            yield BinaryPart(mime_type=name_of(data.mime_type), content_length=-1)
