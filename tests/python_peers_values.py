"""Conversion between proto messages and values of the Python client, by the names of their fields.

Nearly all names are the same, so one walk over a message's fields handles all types. A field that the client
does not have raises `Inexpressible`; none is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from memory_client import (
    UNSET,
    BinaryPart,
    ChatMessage,
    MemoryItem,
    MemorySource,
    Model,
    OriginalMessage,
    Provenance,
    Role,
    ScoreWeights,
    StateEntry,
    ToolCall,
    ToolCallResult,
)

_PACKAGE = "memory_service.v1."


class Inexpressible(Exception):
    """The client has no place for a field; the text names it, as in "ListRequest.page_token"."""


def is_repeated(field: FieldDescriptor) -> bool:
    """Return whether a field is a list or a map."""
    return bool(field.is_repeated)


def is_map(field: FieldDescriptor) -> bool:
    """Return whether a field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


# From messages to values.


def value_of(message: Message, field: FieldDescriptor) -> Any:
    """Return the value of a field as the client's methods take it."""
    value = getattr(message, field.name)
    if is_map(field):
        return dict(value)
    if is_repeated(field):
        return [_single(field, each) for each in value]
    return _single(field, value)


def _single(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is not None:
        return enum_name(field.enum_type, value, f"{field.containing_type.name}.{field.name}")
    if field.message_type is None:
        return value
    name = field.message_type.full_name
    if name not in _READERS:
        raise Inexpressible(f"{field.containing_type.name}.{field.name}")
    return _READERS[name](value)


def enum_name(kind: EnumDescriptor, number: int, where: str) -> str:
    """Return the client's name of an enum value: the proto's, in lower case and without its prefix."""
    found = kind.values_by_number.get(number)
    if found is None:
        raise Inexpressible(f"{where}: {number}")
    if found.name == "ITEM_KIND_UNSPECIFIED":
        return "plain"
    return found.name.removeprefix(_prefix(kind)).lower()


def _prefix(kind: EnumDescriptor) -> str:
    return kind.values_by_number[0].name.removesuffix("UNSPECIFIED")


def given(message: Message, allowed: Iterable[str]) -> dict[str, Any]:
    """Return the values of the set fields; fields that are not allowed are inexpressible."""
    found = {field.name: field for field, _ in message.ListFields()}
    if unknown := found.keys() - set(allowed):
        raise Inexpressible(f"{message.DESCRIPTOR.name}.{min(unknown)}")
    return {name: value_of(message, field) for name, field in found.items()}


def _time(timestamp: Any) -> datetime:
    if timestamp.nanos % 1000:
        raise Inexpressible("a time to the nanosecond")
    moment: datetime = timestamp.ToDatetime(tzinfo=UTC)
    return moment


def _duration(duration: Any) -> timedelta:
    if duration.nanos % 1000:
        raise Inexpressible("a duration to the nanosecond")
    length: timedelta = duration.ToTimedelta()
    return length


def _struct(struct: Any) -> dict[str, Any]:
    return {key: _json(value) for key, value in struct.fields.items()}


def _json(value: Any) -> Any:
    """Return a JSON value; numbers stay doubles, as on the wire."""
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _struct(value.struct_value)
    if kind == "list_value":
        return [_json(element) for element in value.list_value.values]
    return None if kind in (None, "null_value") else getattr(value, kind)


def content_of(item: Any) -> Any:
    """Return the content of an item, or None."""
    kind = item.WhichOneof("content")
    return None if kind is None else value_of(item, item.DESCRIPTOR.fields_by_name[kind])


ITEM_FIELDS = {
    *("id", "session_id", "create_time", "expire_time", "ttl"),
    *("labels", "metadata", "embedding", "importance", "index", "provenance"),
}
"""Return what a writer sets of an item besides its content."""
CONTENT_FIELDS = {"text", "data", "chat_message", "tool_call_result"}


def item_of(item: Any, extra: Iterable[str] = ()) -> MemoryItem:
    """Return an item to write; `extra` fields are those of an import."""
    values = given(item, {*ITEM_FIELDS, *CONTENT_FIELDS, *extra})
    kept = {name: value for name, value in values.items() if name not in CONTENT_FIELDS}
    return MemoryItem(content=content_of(item), **kept)


def entry_of(entry: Any) -> StateEntry:
    """Return a state entry to import."""
    if not entry.HasField("value"):
        raise Inexpressible("StateEntry.value: unset")
    return StateEntry(**{"key": "", **given(entry, {"key", "value", "description", "expire_time"})})


def _message(message: Any) -> ChatMessage:
    values = given(message, message.DESCRIPTOR.fields_by_name)
    return ChatMessage(**{"role": Role.UNSPECIFIED, **values})


def _part(part: Any) -> Any:
    kind = part.WhichOneof("part")
    if kind is None:
        raise Inexpressible("Part.part: unset")
    return value_of(part, part.DESCRIPTOR.fields_by_name[kind])


def _plain(kind: Callable[..., Any], *names: str, **defaults: Any) -> Callable[[Any], Any]:
    """Return a function that reads a message whose fields are those of a value."""
    return lambda message: kind(**{**defaults, **given(message, names or message.DESCRIPTOR.fields_by_name)})


_READERS: dict[str, Callable[[Any], Any]] = {
    "google.protobuf.Timestamp": _time,
    "google.protobuf.Duration": _duration,
    "google.protobuf.Struct": _struct,
    "google.protobuf.Value": _json,
    _PACKAGE + "Embedding": lambda embedding: list(embedding.values),
    _PACKAGE + "MemoryItem": item_of,
    _PACKAGE + "StateEntry": entry_of,
    _PACKAGE + "ChatMessage": _message,
    _PACKAGE + "Part": _part,
    _PACKAGE + "Model": _plain(Model),
    _PACKAGE + "BinaryPart": _plain(BinaryPart),
    _PACKAGE + "ToolCall": _plain(ToolCall, name=""),
    _PACKAGE + "ToolCallResult": _plain(ToolCallResult),
    _PACKAGE + "MemorySource": _plain(MemorySource, "session_id", "item_ids", "quote", "actor"),
    _PACKAGE + "OriginalMessage": _plain(OriginalMessage, "content", "sender", "create_time", content=""),
    _PACKAGE + "ScoreWeights": _plain(ScoreWeights),
    _PACKAGE + "Provenance": _plain(Provenance),
}


# From values to messages.


def fill(message: Any, values: Mapping[str, Any]) -> None:
    """Set the fields of a message to values of the client; None and empty values stay unset."""
    for name, value in values.items():
        field = message.DESCRIPTOR.fields_by_name[name]
        is_json = field.message_type is not None and field.message_type.full_name == "google.protobuf.Value"
        if value is None or value is UNSET or (value in ("", (), {}, []) and not is_json):
            continue
        if is_map(field):
            getattr(message, name).update(value)
        elif is_repeated(field):
            for each in value:
                _append(getattr(message, name), field, each)
        elif field.message_type is not None:
            getattr(message, name).SetInParent()
            _set_message(getattr(message, name), value)
        else:
            setattr(message, name, _scalar(field, value))


def _append(target: Any, field: FieldDescriptor, value: Any) -> None:
    if field.message_type is None:
        target.append(_scalar(field, value))
    else:
        _set_message(target.add(), value)


def _scalar(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is None:
        return value
    name = "UNSPECIFIED" if value == "plain" else str(value).upper()
    return field.enum_type.values_by_name[_prefix(field.enum_type) + name].number


def _set_message(message: Any, value: Any) -> None:
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        message.FromDatetime(value)
    elif name == "google.protobuf.Duration":
        message.FromTimedelta(value)
    elif name in ("google.protobuf.Struct", "google.protobuf.Value"):
        json_format.ParseDict(value, message)
    elif name == _PACKAGE + "Embedding":
        message.values.extend(value)
    elif name == _PACKAGE + "Explanation":
        fill(message, {"contributions": value})
    elif name == _PACKAGE + "Part":
        _set_part(message, value)
    else:
        _fill_from(message, value)


def _fill_from(message: Any, value: Any) -> None:
    names = [field.name for field in fields(value)]
    values = {name: getattr(value, name) for name in names if name in message.DESCRIPTOR.fields_by_name}
    fill(message, values)
    for name, found in values.items():
        field = message.DESCRIPTOR.fields_by_name[name]
        if found == "" and field.has_presence and field.message_type is None:
            setattr(message, name, "")  # An empty text is not the same as no text.
    if isinstance(value, MemoryItem) and value.content is not None:
        _set_content(message, value.content)
    if isinstance(value, ToolCallResult) and value.result is None:
        message.result.null_value = 0
    if isinstance(value, ToolCall) and value.arguments == {}:
        message.arguments.SetInParent()


def _set_content(item: Any, content: Any) -> None:
    if isinstance(content, ChatMessage):
        _fill_from(item.chat_message, content)
        item.chat_message.SetInParent()
    else:
        _set_part(item, content)


def _set_part(message: Any, value: Any) -> None:
    """Set the field of a oneof that takes a value; parts and items use the same field names."""
    if isinstance(value, str):
        message.text = value
    elif isinstance(value, Mapping):
        message.data.SetInParent()
        json_format.ParseDict(value, message.data)
    else:
        names = {BinaryPart: "binary", ToolCall: "tool_call", ToolCallResult: "tool_call_result"}
        target = getattr(message, names[type(value)])
        target.SetInParent()
        _fill_from(target, value)
