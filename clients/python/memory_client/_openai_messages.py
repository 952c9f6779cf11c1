"""Messages in OpenAI's format, given as dictionaries, as chat messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from memory_client.errors import invalid
from memory_client.messages import BinaryPart, ChatMessage, Part, Role, ToolCall, ToolCallResult

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
_FIELDS = {"role", "content", "name", "id", "refusal", "tool_calls", "tool_call_id"}
_TEXTS = ("text", "input_text", "output_text")


def is_message(data: Mapping[str, Any]) -> bool:
    """Whether data have the form of a message: a role with a content or with tool calls."""
    return "role" in data and ("content" in data or "tool_calls" in data)


def message_of(data: Mapping[str, Any], where: str) -> ChatMessage:
    """Return the chat message of a message in OpenAI's format; `where` names it in errors.

    Raises:
        InvalidArgument: It has a role or a field for which a chat message has no place.
    """
    for field, value in data.items():
        if field not in _FIELDS and value not in (None, [], {}, ""):
            raise invalid(f"{where}.{field}", "a message has no such field; metadata can hold it")
    role = data["role"]
    if not isinstance(role, str) or role not in _ROLES:
        raise invalid(f"{where}.role", f"{role!r} is not one of {', '.join(_ROLES)}")
    name = _text(data, "name", where)
    if role == "tool":
        call_id = _text(data, "tool_call_id", where)
        parts: tuple[Part, ...] = (ToolCallResult(name, data.get("content"), call_id),)
    else:
        parts = (*_said(data.get("content"), f"{where}.content"), *_refused(data), *_calls(data, where))
    return ChatMessage(_ROLES[role], parts, name or None, _text(data, "id", where))


def _text(data: Mapping[str, Any], field: str, where: str) -> str:
    value = data.get(field)
    if value is not None and not isinstance(value, str):
        raise invalid(f"{where}.{field}", f"must be a text, not {type(value).__name__}")
    return value or ""


def _said(content: Any, where: str) -> Iterator[Part]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, (list, tuple)):
        for index, part in enumerate(content):
            yield _part(part, f"{where}[{index}]")
    elif content is not None:
        raise invalid(where, f"must be a text or a list of parts, not {type(content).__name__}")


def _part(part: Any, where: str) -> Part:
    if not isinstance(part, (str, Mapping)):
        raise invalid(where, f"must be a text or a part, not {type(part).__name__}")
    if isinstance(part, str):
        return part
    if part.get("type") in _TEXTS and isinstance(part.get("text"), str):
        text: str = part["text"]
        return text
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    is_link = isinstance(url, str) and not url.startswith("data:")
    return BinaryPart(url=url, content_length=-1) if is_link else part


def _refused(data: Mapping[str, Any]) -> Iterator[Part]:
    if data.get("refusal"):
        yield {"type": "refusal", "refusal": data["refusal"]}


def _calls(data: Mapping[str, Any], where: str) -> Iterator[ToolCall]:
    calls = data.get("tool_calls") or ()
    for index, call in enumerate(calls if isinstance(calls, (list, tuple)) else (calls,)):
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            raise invalid(f"{where}.tool_calls[{index}]", "has no function with a name")
        place = f"{where}.tool_calls[{index}]"
        name = _text(function, "name", f"{place}.function")
        yield ToolCall(name, _arguments(function.get("arguments")), _text(call, "id", place))


def _arguments(given: Any) -> Mapping[str, Any] | None:
    """Return the arguments of a call, given as JSON; anything but an object goes under "_raw"."""
    if given is None or given == "":
        return None
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        found = given
    return found if isinstance(found, Mapping) else {"_raw": given}
