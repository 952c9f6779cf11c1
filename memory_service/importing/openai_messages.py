"""Messages and conversations in OpenAI's format, as items."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from memory_client import ChatMessage, MemoryItem, Model, Part, Role, ToolCallResult
from memory_service.importing.identity import derived_id
from memory_service.importing.openai_parts import PartReader

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
_TIME_FIELDS = ("created_at", "create_time", "created", "timestamp")
_SESSION_FIELDS = ("session_id", "conversation_id")
_METADATA_BYTES_MAX = 64 * 1024
_METADATA_DEPTH_MAX = 32
_ID_BYTES_MAX = 128
_MILLISECONDS_FROM = 1e11
"""Unix times from here on are milliseconds: in seconds, this is the year 5138."""


@dataclass(slots=True)
class _Fields:
    """The unread fields of a message, and those to store in addition to the message."""

    left: dict[str, Any]
    extra: dict[str, Any] = field(default_factory=dict)

    def take(self, key: str, kind: type) -> Any:
        """Take a field if it has this type; leave it otherwise, to be stored unchanged."""
        return self.left.pop(key) if isinstance(self.left.get(key), kind) else None


class MessageReader:
    """Turns messages into items of one file's sessions."""

    def __init__(self, session_id: str, *, omit_large_files: bool = False) -> None:
        """Begin a file; its messages belong to `session_id` unless they name a session."""
        self.session_id = session_id
        self._omit_large_files = omit_large_files

    def conversation(self, data: dict[str, Any], number: int, *, is_only: bool) -> Iterator[MemoryItem]:
        """Yield the items of {"messages": [...]}.

        The other fields of the conversation, such as its tools, become a separate first item. The session is
        the id of the conversation, or else that of the reader, with the number of the conversation appended
        unless it is the only one of its file.

        Raises:
            ValueError: A message is malformed; the text names it.
        """
        fields = dict(data)
        messages = fields.pop("messages")
        if not isinstance(messages, list):
            raise ValueError('"messages" is not a list')
        session_id = _take_session(fields, *_SESSION_FIELDS, "id")
        if not session_id:
            session_id = self.session_id if is_only else f"{self.session_id}-{number}"
        rest = {key: value for key, value in fields.items() if value is not None}
        if rest:
            yield MemoryItem(
                content={"openai": {"conversation": rest}},
                id=derived_id(session_id, -1, rest),
                session_id=session_id,
            )
        for index, message in enumerate(messages):
            try:
                yield self._item(message, session_id, index)
            except ValueError as error:
                raise ValueError(f"messages[{index}]: {error}") from None

    def message(self, data: dict[str, Any], number: int) -> MemoryItem:
        """Return the item of a single message; `number` counts the documents of the file.

        Raises:
            ValueError: The message is malformed.
        """
        return self._item(data, self.session_id, number)

    def _item(self, message: Any, session_id: str, position: int) -> MemoryItem:
        if not isinstance(message, dict):
            raise ValueError(f"a message is not an object: {json.dumps(message)[:40]}")
        fields = _Fields(dict(message))
        session_id = _take_session(fields.left, *_SESSION_FIELDS) or session_id
        role = _take_role(fields)
        own_id = _take_text(fields.left, "id")
        create_time = _take_time(fields.left)
        model = fields.take("model", str)
        name = fields.take("name", str)
        parts = self._parts(fields, role, name)
        chat = ChatMessage(
            role=role,
            parts=parts,
            name=name,
            message_id=own_id,
            model=Model(id=model) if model else None,
            create_time=create_time,
        )
        return MemoryItem(
            content=chat,
            id=_item_id(own_id, session_id) or derived_id(session_id, position, message),
            session_id=session_id,
            create_time=create_time,
            metadata=_metadata(fields),
        )

    def _parts(self, fields: _Fields, role: Role, name: str | None) -> tuple[Part, ...]:
        reader = PartReader(omit_large_files=self._omit_large_files)
        content = fields.left.pop("content", None)
        if role is Role.TOOL:
            self._add_tool_result(reader, fields, content, name)
        else:
            _add_content(reader, content)
        if refusal := fields.take("refusal", str):
            reader.parts.append({"type": "refusal", "refusal": refusal})
        for call in fields.take("tool_calls", list) or ():
            reader.add_tool_call(call)
        if isinstance(fields.left.get("function_call"), dict):
            reader.add_tool_call({"function": fields.left.pop("function_call")})
        if reader.leftover:
            fields.extra["parts"] = reader.leftover
        return tuple(reader.parts)

    def _add_tool_result(self, reader: PartReader, fields: _Fields, content: Any, name: str | None) -> None:
        """Convert the content to one tool call result, followed by its non-text parts."""
        result = content
        if isinstance(content, list):
            others = PartReader(omit_large_files=self._omit_large_files)
            for part in content:
                others.add(part)
            result = "\n".join(part for part in others.parts if isinstance(part, str))
            for index, part in enumerate(others.parts):
                if not isinstance(part, str):
                    if str(index) in others.leftover:
                        reader.leftover[str(len(reader.parts) + 1)] = others.leftover[str(index)]
                    reader.parts.append(part)
        call_id = _take_text(fields.left, "tool_call_id")
        reader.parts.insert(0, ToolCallResult(name or "", result, call_id))


def _add_content(reader: PartReader, content: Any) -> None:
    if isinstance(content, list):
        for part in content:
            reader.add(part)
    elif isinstance(content, (str, dict)):
        reader.add(content)
    elif content is not None:
        raise ValueError(f"the content is neither text nor a list: {json.dumps(content)[:40]}")


def _take_role(fields: _Fields) -> Role:
    role = fields.left.pop("role", None)
    if not isinstance(role, str) or role not in _ROLES:
        raise ValueError(f'"role" is one of {", ".join(_ROLES)}, not {json.dumps(role)}')
    if role in ("developer", "function"):
        fields.extra["role"] = role
    return _ROLES[role]


def _take_text(fields: dict[str, Any], key: str) -> str:
    """Take a text or integer field, as text; return an empty text if it is missing or of another type."""
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return ""
    return str(fields.pop(key))


def _take_session(fields: dict[str, Any], *keys: str) -> str:
    return next(filter(None, (_take_text(fields, key) for key in keys)), "")


def _take_time(fields: dict[str, Any]) -> datetime | None:
    """Take the first field with a time: Unix seconds or milliseconds, or ISO 8601."""
    for key in _TIME_FIELDS:
        time = _time(fields.get(key))
        if time is not None:
            del fields[key]
            return time
    return None


def _time(value: Any) -> datetime | None:
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            seconds = value / 1000 if abs(value) >= _MILLISECONDS_FROM else value
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _item_id(own_id: str, session_id: str) -> str:
    """Return the item id for the id of a message; empty if that is unsuitable.

    Numeric ids count the messages of one conversation, so they are prefixed with the session.
    """
    item_id = f"{session_id}:{own_id}" if own_id.isdecimal() and session_id else own_id
    return item_id if len(item_id.encode()) <= _ID_BYTES_MAX and item_id.isprintable() else ""


def _metadata(fields: _Fields) -> dict[str, Any]:
    """Return the fields without a place in the message, under "openai"."""
    unknown = {key: value for key, value in fields.left.items() if value is not None}
    extra = fields.extra | unknown
    if not extra:
        return {}
    kept = {
        # "openai" and the name of the field take two levels.
        key: value if _depth(value) <= _METADATA_DEPTH_MAX - 2 else json.dumps(value)
        for key, value in extra.items()
    }
    size = len(json.dumps({"openai": kept}, ensure_ascii=False, separators=(",", ":")).encode())
    if size > _METADATA_BYTES_MAX:
        names = ", ".join(sorted(kept))
        raise ValueError(f"the fields {names} take {size} bytes; metadata holds {_METADATA_BYTES_MAX}")
    return {"openai": kept}


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0
