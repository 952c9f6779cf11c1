"""Converts items of an agent's session to records and back: verbatim JSON and a readable message."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memory_client.errors import invalid
from memory_client.messages import BinaryPart, ChatMessage, Part, Role, ToolCall, ToolCallResult
from memory_client.models import MemoryItem
from memory_client.values import INTEGER_MAX

SESSION_LABEL = "openai_agents_session"
"""The label of every item of a session; its value is the session's id."""
VERBATIM_KEY = "openai_agents_items"
"""Metadata key of the JSON. An item too large for metadata has it in files."""
VERBATIM_TYPE = "application/vnd.openai-agents.items+json"
"""MIME type of those files; joined, they are the JSON, in UTF-8."""

_RECORDS_MAX = 1000
_METADATA_BYTES = 15 * 1024
_FILE_BYTES = 1024 * 1024
_READABLE_BYTES = 48 * 1024
_PARTS_MAX = 200
_DEPTH_MAX = 16
_NAME_BYTES = 1024
_URL_CHARS = 2000
_ROLES = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "tool": Role.TOOL,
}
_OPAQUE = re.compile(r"(?:data:[^,]{0,200},)?[A-Za-z0-9+/=_-]{200,}\s*")
"""Text not worth reading or searching, such as an image in base64."""
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
    verbatim = _verbatim(items)
    message = _readable(items)
    metadata: dict[str, Any] = {}
    if len(json.dumps(verbatim, ensure_ascii=False).encode()) <= _METADATA_BYTES:
        metadata[VERBATIM_KEY] = verbatim
    else:
        message = ChatMessage(
            message.role, (*message.parts, *_files(verbatim)), message_id=message.message_id
        )
    labels = {SESSION_LABEL: session_id}
    return MemoryItem(content=message, session_id=session_id, labels=labels, metadata=metadata)


def items_of(record: MemoryItem) -> list[Any]:
    """Return the items of a record, as given. Empty: it is not a record of a session."""
    verbatim: Any = record.metadata.get(VERBATIM_KEY)
    if verbatim is None and isinstance(record.content, ChatMessage):
        files = [part for part in record.content.parts if isinstance(part, BinaryPart)]
        verbatim = b"".join(file.content for file in files if file.mime_type == VERBATIM_TYPE)
    try:
        items = json.loads(verbatim)
    except (TypeError, ValueError):
        return []
    return items if isinstance(items, list) else []


def _verbatim(items: Sequence[Any]) -> str:
    try:
        text = json.dumps(list(items), ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise invalid("items", f"an item is not JSON: {error}") from None
    try:
        text.encode()
    except UnicodeEncodeError:  # Half of a surrogate pair, which can only be sent escaped.
        text = json.dumps(list(items), separators=(",", ":"))
    return text


def _files(verbatim: str) -> Iterator[BinaryPart]:
    packed = verbatim.encode()
    for at in range(0, len(packed), _FILE_BYTES):
        yield BinaryPart(packed[at : at + _FILE_BYTES], VERBATIM_TYPE)


# The readable message: for people, searches and clients in other languages.


def _readable(items: Sequence[Any]) -> ChatMessage:
    messages = [_message(item) for item in items]
    message = messages[0]
    if len(messages) > 1:
        message = ChatMessage(message.role, [f"{each.role}: {each.text}" for each in messages])
    text = message.text.encode()
    if len(text) <= _READABLE_BYTES and len(message.parts) <= _PARTS_MAX:
        return message
    shown = text[:_READABLE_BYTES].decode(errors="ignore")
    return ChatMessage(message.role, (f"{shown} ...",), message_id=message.message_id)


def _message(item: Any) -> ChatMessage:
    if not isinstance(item, dict):
        return ChatMessage(Role.USER, ({"item": _shortened(item)},))
    kind = item.get("type", "message" if "role" in item else "")
    if kind == "message":
        role = _ROLES.get(item.get("role", ""), Role.USER)
        return ChatMessage(role, tuple(_said(item.get("content"))), message_id=_name(item.get("id")))
    if kind == "reasoning":
        thoughts = (*_said(item.get("summary")), *_said(item.get("content")))
        return ChatMessage(Role.ASSISTANT, thoughts, message_id=_name(item.get("id")))
    if kind == "function_call":
        call = ToolCall(
            _name(item.get("name")), _arguments(item.get("arguments")), _name(item.get("call_id"))
        )
        return ChatMessage(Role.ASSISTANT, (call,), message_id=_name(item.get("id")))
    if kind == "function_call_output":
        result = ToolCallResult("", _shortened(item.get("output")), _name(item.get("call_id")))
        return ChatMessage(Role.TOOL, (result,), message_id=_name(item.get("id")))
    role = Role.TOOL if isinstance(kind, str) and kind.endswith("_output") else Role.ASSISTANT
    return ChatMessage(role, (_shortened(item),), message_id=_name(item.get("id")))


def _said(content: Any) -> Iterator[Part]:
    if isinstance(content, str):
        yield _clean(content)
    elif isinstance(content, list):
        for part in content:
            yield _piece(part)


def _piece(part: Any) -> Part:
    if not isinstance(part, dict):
        return _clean(str(part))
    for field in ("text", "refusal", "transcript"):
        if isinstance(part.get(field), str):
            return _clean(part[field])
    data = next((part[key] for key in ("image_url", "file_data", "file_url") if key in part), None)
    if not isinstance(data, str):
        return f"[{_clean(str(part.get('type', 'part')))}]"
    found = _MIME_TYPE.match(data)
    is_link = len(data) <= _URL_CHARS and not data.startswith("data:") and part.get("file_data") != data
    return BinaryPart(
        mime_type=found[1] if found else "",
        name=_name(part.get("filename")) or None,
        url=_clean(data) if is_link else None,
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
    shown = _shortened(found)
    return shown if isinstance(shown, dict) else {"_raw": shown}


def _shortened(value: Any, depth: int = 0) -> Any:
    """Return a JSON value that the server takes, with text for values it cannot keep and for opaque text."""
    if isinstance(value, str):
        return f"[{len(value)} characters]" if _OPAQUE.fullmatch(value) else _clean(value)
    if isinstance(value, (dict, list, tuple)) and depth >= _DEPTH_MAX:
        return "..."
    if isinstance(value, dict):
        return {_clean(str(key)): _shortened(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shortened(inner, depth + 1) for inner in value]
    if isinstance(value, bool) or value is None:
        return value
    is_number = isinstance(value, (int, float)) and abs(value) <= INTEGER_MAX
    return value if is_number else str(value)


def _clean(text: str) -> str:
    """Return a text that can be sent, without halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()


def _name(value: Any) -> str:
    """Return an id or a name, or "" if the server would reject it."""
    is_name = isinstance(value, str) and value.isprintable() and len(value.encode()) <= _NAME_BYTES
    return value if is_name else ""
