"""Converts items of an agent's session to records and back: verbatim JSON and a readable message."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memory_client._verbatim import attached, bounded, clean, name_of, shortened, verbatim_json, verbatim_of
from memory_client.messages import BinaryPart, ChatMessage, Part, Role, ToolCall, ToolCallResult
from memory_client.models import MemoryItem

SESSION_LABEL = "openai_agents_session"
"""The label of every item of a session; its value is the session's id."""
VERBATIM_KEY = "openai_agents_items"
"""Metadata key of the JSON. An item too large for metadata has it in files."""
VERBATIM_TYPE = "application/vnd.openai-agents.items+json"
"""MIME type of those files; joined, they are the JSON, in UTF-8."""

_RECORDS_MAX = 1000
_URL_CHARS = 2000
_ROLES = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "tool": Role.TOOL,
}
_MIME_TYPE = re.compile(r"data:([\w.+-]+/[\w.+-]+)")


def records_of(items: Sequence[Any], session_id: str) -> list[MemoryItem]:
    """Return the records of items: one for each, or for several if there are more than 1000.

    Raises:
        InvalidArgument: An item is not JSON.
    """
    size = math.ceil(len(items) / _RECORDS_MAX)
    return [record_of(items[at : at + size], session_id) for at in range(0, len(items), size or 1)]


def record_of(items: Sequence[Any], session_id: str) -> MemoryItem:
    """Return the record of some items, at least one."""
    verbatim = verbatim_json(list(items), "items")
    message, metadata = attached(_readable(items), verbatim, VERBATIM_KEY, VERBATIM_TYPE)
    labels = {SESSION_LABEL: session_id}
    return MemoryItem(content=message, session_id=session_id, labels=labels, metadata=metadata)


def items_of(record: MemoryItem) -> list[Any]:
    """Return the items of a record, as given. Empty: it is not a record of a session."""
    items = verbatim_of(record, VERBATIM_KEY, VERBATIM_TYPE)
    return items if isinstance(items, list) else []


# The readable message: for people, searches and clients in other languages.


def _readable(items: Sequence[Any]) -> ChatMessage:
    messages = [_message(item) for item in items]
    message = messages[0]
    if len(messages) > 1:
        message = ChatMessage(message.role, [f"{each.role}: {each.text}" for each in messages])
    return bounded(message)


def _message(item: Any) -> ChatMessage:
    if not isinstance(item, dict):
        return ChatMessage(Role.USER, ({"item": shortened(item)},))
    kind = item.get("type", "message" if "role" in item else "")
    if kind == "message":
        role = _ROLES.get(item.get("role", ""), Role.USER)
        return ChatMessage(role, tuple(_said(item.get("content"))), message_id=name_of(item.get("id")))
    if kind == "reasoning":
        thoughts = (*_said(item.get("summary")), *_said(item.get("content")))
        return ChatMessage(Role.ASSISTANT, thoughts, message_id=name_of(item.get("id")))
    if kind == "function_call":
        call = ToolCall(
            name_of(item.get("name")), _arguments(item.get("arguments")), name_of(item.get("call_id"))
        )
        return ChatMessage(Role.ASSISTANT, (call,), message_id=name_of(item.get("id")))
    if kind == "function_call_output":
        result = ToolCallResult("", shortened(item.get("output")), name_of(item.get("call_id")))
        return ChatMessage(Role.TOOL, (result,), message_id=name_of(item.get("id")))
    role = Role.TOOL if isinstance(kind, str) and kind.endswith("_output") else Role.ASSISTANT
    return ChatMessage(role, (shortened(item),), message_id=name_of(item.get("id")))


def _said(content: Any) -> Iterator[Part]:
    if isinstance(content, str):
        yield clean(content)
    elif isinstance(content, list):
        for part in content:
            yield _piece(part)


def _piece(part: Any) -> Part:
    if not isinstance(part, dict):
        return clean(str(part))
    for field in ("text", "refusal", "transcript"):
        if isinstance(part.get(field), str):
            return clean(part[field])
    data = next((part[key] for key in ("image_url", "file_data", "file_url") if key in part), None)
    if not isinstance(data, str):
        return f"[{clean(str(part.get('type', 'part')))}]"
    found = _MIME_TYPE.match(data)
    is_link = len(data) <= _URL_CHARS and not data.startswith("data:") and part.get("file_data") != data
    return BinaryPart(
        mime_type=found[1] if found else "",
        name=name_of(part.get("filename")) or None,
        url=clean(data) if is_link else None,
        content_length=-1,
    )


def _arguments(arguments: Any) -> Mapping[str, Any] | None:
    """Return the arguments of a call, given as JSON; anything but an object goes under "_raw"."""
    try:
        found = json.loads(arguments)
    except (TypeError, ValueError, RecursionError):
        found = arguments
    if found is None or found == "":
        return None
    shown = shortened(found)
    return shown if isinstance(shown, dict) else {"_raw": shown}
