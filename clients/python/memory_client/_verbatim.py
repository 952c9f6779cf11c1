"""Keeps values of a framework verbatim in items, beside a readable message for people and searches."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from memory_client.errors import invalid
from memory_client.messages import BinaryPart, ChatMessage
from memory_client.models import MemoryItem
from memory_client.values import INTEGER_MAX

FILE_BYTES = 1024 * 1024
"""The largest content of a file."""

_METADATA_BYTES = 15 * 1024
_READABLE_BYTES = 48 * 1024
_PARTS_MAX = 200
_DEPTH_MAX = 16
_NAME_BYTES = 1024
_OPAQUE = re.compile(r"(?:data:[^,]{0,200},)?[A-Za-z0-9+/=_-]{200,}\s*")
"""Text not worth reading or searching, such as an image in base64."""


def verbatim_json(value: Any, field: str) -> str:
    """Return a value as JSON that can be sent.

    Raises:
        InvalidArgument: It is not JSON; the error names the field.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise invalid(field, f"an item is not JSON: {error}") from None
    try:
        text.encode()
    except UnicodeEncodeError:  # Half of a surrogate pair, which can only be sent escaped.
        text = json.dumps(value, separators=(",", ":"))
    return text


def fits_metadata(verbatim: str) -> bool:
    """Return whether the JSON is small enough for metadata; otherwise it goes to files."""
    return len(json.dumps(verbatim, ensure_ascii=False).encode()) <= _METADATA_BYTES


def files_of(verbatim: str, mime_type: str) -> Iterator[BinaryPart]:
    """Yield files that, joined, are the JSON in UTF-8."""
    packed = verbatim.encode()
    for at in range(0, len(packed), FILE_BYTES):
        yield BinaryPart(packed[at : at + FILE_BYTES], mime_type)


def attached(
    message: ChatMessage, verbatim: str, key: str, mime_type: str
) -> tuple[ChatMessage, dict[str, Any]]:
    """Return the message and the metadata that keep the JSON: in metadata, or in files of the message."""
    if fits_metadata(verbatim):
        return message, {key: verbatim}
    parts = (*message.parts, *files_of(verbatim, mime_type))
    return ChatMessage(message.role, parts, message.name, message.message_id), {}


def bytes_of(item: MemoryItem, mime_type: str) -> bytes:
    """Return the joined files of this type."""
    parts = item.content.parts if isinstance(item.content, ChatMessage) else ()
    return b"".join(p.content for p in parts if isinstance(p, BinaryPart) and p.mime_type == mime_type)


def verbatim_of(item: MemoryItem, key: str, mime_type: str) -> Any:
    """Return the value that `attached` kept. None: the item has none."""
    verbatim: Any = item.metadata.get(key)
    try:
        return json.loads(bytes_of(item, mime_type) if verbatim is None else verbatim)
    except (TypeError, ValueError):
        return None


def bounded(message: ChatMessage) -> ChatMessage:
    """Return the message, shortened to its text if it is longer than people and searches need."""
    text = message.text.encode()
    if len(text) <= _READABLE_BYTES and len(message.parts) <= _PARTS_MAX:
        return message
    shown = text[:_READABLE_BYTES].decode(errors="ignore")
    return ChatMessage(message.role, (f"{shown} ...",), message.name, message.message_id)


def shortened(value: Any, depth: int = 0) -> Any:
    """Return a JSON value that the server takes, with text for values it cannot keep and for opaque text."""
    if isinstance(value, str):
        return f"[{len(value)} characters]" if _OPAQUE.fullmatch(value) else clean(value)
    if isinstance(value, (dict, list, tuple)) and depth >= _DEPTH_MAX:
        return "..."
    if isinstance(value, dict):
        return {clean(str(key)): shortened(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [shortened(inner, depth + 1) for inner in value]
    if isinstance(value, bool) or value is None:
        return value
    is_number = isinstance(value, (int, float)) and abs(value) <= INTEGER_MAX
    return value if is_number else str(value)


def clean(text: str) -> str:
    """Return a text that can be sent, without halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()


def name_of(value: Any) -> str:
    """Return an id or a name, or "" if the server would reject it."""
    is_name = isinstance(value, str) and value.isprintable() and len(value.encode()) <= _NAME_BYTES
    return value if is_name else ""
