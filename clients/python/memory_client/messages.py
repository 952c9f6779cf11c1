"""Contents of items: chat messages, their parts, tool calls and tool results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from memory_client.unset import UNSET


class Role(StrEnum):
    """The author of a message. A plain string such as "user" also works wherever a role is expected."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    UNSPECIFIED = "unspecified"
    """A role that this client does not know; the server rejects messages with it."""


@dataclass(frozen=True, slots=True)
class Model:
    """The language model that wrote a message."""

    provider: str = ""
    """Provider of the model, such as "openai". Empty: not given."""
    id: str = ""
    """Id of the model at its provider, such as "gpt-5". Empty: not given."""


@dataclass(frozen=True, slots=True)
class BinaryPart:
    """A file, such as an image or audio, or a reference to one."""

    content: bytes = b""
    """The bytes, at most 1 MiB. Empty: an empty file, or not loaded."""
    mime_type: str = ""
    """Such as "image/png". Empty: not given."""
    name: str | None = None
    """Name of the file. None: not given."""
    url: str | None = None
    """URL of the file, which the server never opens. None: not given."""
    content_length: int | None = None
    """Length in bytes. Negative: the content is not loaded. None: not given."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A request to call a tool."""

    name: str
    """Name of the tool."""
    arguments: Mapping[str, Any] | None = None
    """Arguments, JSON values by name. None: not given."""
    tool_call_id: str = ""
    """Links the call to its result. Empty: none."""


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """The result of a tool call."""

    name: str = ""
    """Name of the tool."""
    result: Any = UNSET
    """Any JSON value. None: null. UNSET: not given."""
    tool_call_id: str = ""
    """Id of the call that it answers. Empty: none."""
    is_error: bool = False
    """Whether the tool failed; then the result describes the failure."""


Part: TypeAlias = str | Mapping[str, Any] | BinaryPart | ToolCall | ToolCallResult
"""One piece of a message: text, data (a mapping of JSON values), a file, a tool call or its result."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a conversation with all its parts."""

    role: Role
    """Role of the author."""
    parts: Sequence[Part] = ()
    """The pieces, in order, at most 256."""
    name: str | None = None
    """Name of the author, such as "Ada". None: not given."""
    message_id: str = ""
    """The writer's id for the message. Empty: none."""
    model: Model | None = None
    """Model that wrote the message. None: none, or unknown."""
    create_time: datetime | None = None
    """The message's own time. None: none."""

    @property
    def text(self) -> str:
        """The readable text of all parts, each on its own lines."""
        return "\n".join(filter(None, map(readable_text, self.parts)))


Content: TypeAlias = str | Mapping[str, Any] | ChatMessage | ToolCallResult
"""The content of an item: text, data (a mapping of JSON values), a message or a tool's result.

When an item is written, a mapping with "role" and "content" or "tool_calls" becomes a message.
"""


def chat_message(
    role: Role | str,
    *parts: Part,
    name: str | None = None,
    message_id: str = "",
    model: Model | None = None,
    create_time: datetime | None = None,
) -> ChatMessage:
    """Build a chat message, as in `chat_message("user", "I like tea", name="Ada")`.

    Raises:
        ValueError: The role is not one of `Role`.
    """
    return ChatMessage(Role(role), parts, name, message_id, model, create_time)


def tool_call_result(
    name: str, result: Any, *, tool_call_id: str = "", is_error: bool = False
) -> ToolCallResult:
    """Build the result of the tool `name`; `result` is any JSON value."""
    return ToolCallResult(name, result, tool_call_id, is_error)


def readable_text(content: Content | Part | None) -> str:
    """Return an item's content or a message's part as readable text.

    Text stays as it is, data becomes compact JSON, a tool call looks like `search({"q": "tea"})`, a
    file like `[image/png cat.png]`.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, ChatMessage):
        return content.text
    if isinstance(content, ToolCall):
        return f"{content.name}({_json(content.arguments) if content.arguments else ''})"
    if isinstance(content, ToolCallResult):
        if content.result is UNSET:
            return content.name
        shown = content.result if isinstance(content.result, str) else _json(content.result)
        return f"{content.name}: {shown}" if content.name else shown
    if isinstance(content, BinaryPart):
        return f"[{' '.join(filter(None, (content.mime_type or 'file', content.name, content.url)))}]"
    return _json(content)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
