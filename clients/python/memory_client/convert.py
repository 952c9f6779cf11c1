"""Conversions of items, messages and state entries to their protobuf messages and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from memory_client._arguments import converting
from memory_client._gen.memory_service.v1 import memory_pb2, state_pb2
from memory_client._openai_messages import is_message, message_of
from memory_client.errors import invalid
from memory_client.messages import (
    BinaryPart,
    ChatMessage,
    Content,
    Model,
    Part,
    Role,
    ToolCall,
    ToolCallResult,
)
from memory_client.models import (
    Degradation,
    ItemKind,
    MemoryItem,
    OnDuplicate,
    Provenance,
    SourceKind,
    StateEntry,
    Vector,
)
from memory_client.unset import UNSET
from memory_client.values import (
    AROUND_ITEM_FIELD,
    duration_from,
    duration_to,
    floats_from,
    listed,
    struct_from,
    struct_to,
    timestamp_from,
    timestamp_to,
    value_from,
    value_to,
)

E = TypeVar("E", bound=StrEnum)


class _ProtoEnum(Protocol):
    def Name(self, number: Any) -> str: ...
    def Value(self, name: str) -> Any: ...


def enum_from(proto_enum: _ProtoEnum, prefix: str, value: StrEnum) -> Any:
    """Return the number of the value whose protobuf name is the prefix and the value in capitals."""
    return proto_enum.Value(prefix + value.upper())


def enum_to(proto_enum: _ProtoEnum, prefix: str, number: int, kind: type[E], unknown: E) -> E:
    """Return the value of a number, or `unknown` for a number of a newer server."""
    try:
        return kind(proto_enum.Name(number).removeprefix(prefix).lower())
    except ValueError:
        return unknown


def kind_number(kind: ItemKind | str) -> Any:
    """Return the number of a kind of item; for plain items, that of "unspecified".

    Raises:
        InvalidArgument: It is a kind that this client does not know.
        ValueError: There is no such kind.
    """
    known = ItemKind(kind)
    if known is ItemKind.UNSPECIFIED:
        raise invalid("kind", "an item of a kind that this client does not know cannot be sent")
    if known is ItemKind.PLAIN:
        return memory_pb2.ITEM_KIND_UNSPECIFIED
    return enum_from(memory_pb2.ItemKind, "ITEM_KIND_", known)


def kind_to(number: int) -> ItemKind:
    """Return the kind of an item."""
    if number == memory_pb2.ITEM_KIND_UNSPECIFIED:
        return ItemKind.PLAIN
    return enum_to(memory_pb2.ItemKind, "ITEM_KIND_", number, ItemKind, ItemKind.UNSPECIFIED)


def time_to(message: Any, field: str) -> datetime | None:
    """Return the time in a field of a message. None: unset."""
    if not message.HasField(field):
        return None
    timestamp: Timestamp = getattr(message, field)
    return timestamp_to(timestamp)


def _set_time(message: Any, field: str, time: datetime | None) -> None:
    if time is not None:
        getattr(message, field).CopyFrom(timestamp_from(time, field))


def set_content(item: memory_pb2.MemoryItem, content: Content | None) -> None:
    """Set the content of an item.

    Raises:
        InvalidArgument: An item cannot hold content of this type.
    """
    if isinstance(content, str):
        item.text = content
    elif isinstance(content, ChatMessage):
        with converting(content, type(content), "content"):
            item.chat_message.CopyFrom(message_from(content))
    elif isinstance(content, ToolCallResult):
        with converting(content, type(content), "content"):
            item.tool_call_result.CopyFrom(_tool_call_result_from(content))
    elif isinstance(content, Mapping):
        item.data.CopyFrom(struct_from(content, "content", around=AROUND_ITEM_FIELD))
    elif content is not None:
        raise invalid("content", f"an item cannot hold a {type(content).__name__}")


def set_embedding(embedding: memory_pb2.Embedding, vector: Vector | None) -> None:
    """Set a vector if one is given. An empty one is sent too, for the server to reject."""
    if vector is not None:
        embedding.SetInParent()
        embedding.values.extend(floats_from(vector))


def item_from(item: MemoryItem) -> memory_pb2.MemoryItem:
    """Convert an item with all its fields, including those that only the server sets."""
    message = memory_pb2.MemoryItem(
        id=item.id,
        session_id=item.session_id,
        labels=dict(item.labels),
        revision=item.revision,
        kind=kind_number(item.kind),
        facet_json=item.facet_json,
        importance=item.importance,
        index=item.index,
    )
    set_content(message, item.content)
    for field in ("create_time", "update_time", "expire_time"):
        _set_time(message, field, getattr(item, field))
    if item.metadata:
        message.metadata.CopyFrom(struct_from(item.metadata, "metadata", around=AROUND_ITEM_FIELD))
    set_embedding(message.embedding, item.embedding)
    if item.provenance is not None:
        with converting(item.provenance, Provenance, "provenance"):
            message.provenance.CopyFrom(_provenance_from(item.provenance))
    if item.ttl is not None:
        message.ttl.CopyFrom(duration_from(item.ttl))
    return message


def on_duplicate_number(choice: OnDuplicate | str) -> Any:
    """Return the number of what to do with a duplicate.

    Raises:
        ValueError: There is no such choice.
    """
    return enum_from(memory_pb2.OnDuplicate, "ON_DUPLICATE_", OnDuplicate(choice))


def source_number(source: SourceKind | str) -> Any:
    """Return the number of a kind of source.

    Raises:
        ValueError: There is no such kind.
    """
    return enum_from(memory_pb2.SourceKind, "SOURCE_KIND_", SourceKind(source))


def _provenance_from(provenance: Provenance) -> memory_pb2.Provenance:
    message = memory_pb2.Provenance(
        writer=provenance.writer,
        credential_id=provenance.credential_id,
        source=source_number(provenance.source),
        source_uri=provenance.source_uri,
        parent_ids=listed(provenance.parent_ids, "parent_ids"),
        model=provenance.model,
        trust=provenance.trust,
    )
    _set_time(message, "write_time", provenance.write_time)
    return message


def provenance_to(holder: Any) -> Provenance | None:
    """Convert the provenance in a message. None: unset."""
    if not holder.HasField("provenance"):
        return None
    message: memory_pb2.Provenance = holder.provenance
    return Provenance(
        source=enum_to(
            memory_pb2.SourceKind, "SOURCE_KIND_", message.source, SourceKind, SourceKind.UNSPECIFIED
        ),
        source_uri=message.source_uri,
        parent_ids=tuple(message.parent_ids),
        model=message.model,
        trust=message.trust if message.HasField("trust") else None,
        writer=message.writer,
        credential_id=message.credential_id,
        write_time=time_to(message, "write_time"),
    )


def imported_item_from(item: MemoryItem) -> memory_pb2.MemoryItem:
    """Convert an item to be imported, with its kind and its service's data."""
    message = item_from(item)
    message.ClearField("update_time")
    message.ClearField("revision")
    return message


def content_from(content: Content | None) -> Content | None:
    """Return a content to write, in which a message in OpenAI's format is a chat message.

    Raises:
        InvalidArgument: It has the form of a message, but cannot be one.
    """
    if isinstance(content, Mapping) and is_message(content):
        return message_of(content, "content")
    return content


def new_item_from(item: MemoryItem) -> memory_pb2.MemoryItem:
    """Convert an item to be written, without the fields that only the server sets."""
    content = content_from(item.content)
    message = imported_item_from(item if content is item.content else replace(item, content=content))
    message.ClearField("kind")
    message.ClearField("facet_json")
    return message


def item_to(message: memory_pb2.MemoryItem, degraded: Iterable[memory_pb2.Degradation] = ()) -> MemoryItem:
    """Convert to an item; `degraded` is what the server could not do when writing it."""
    return MemoryItem(
        content=_content_to(message),
        id=message.id,
        session_id=message.session_id,
        create_time=time_to(message, "create_time"),
        update_time=time_to(message, "update_time"),
        expire_time=time_to(message, "expire_time"),
        ttl=duration_to(message.ttl) if message.HasField("ttl") else None,
        labels=dict(message.labels),
        metadata=struct_to(message.metadata),
        embedding=tuple(message.embedding.values) if message.HasField("embedding") else None,
        revision=message.revision,
        kind=kind_to(message.kind),
        facet_json=message.facet_json,
        importance=message.importance if message.HasField("importance") else None,
        index=message.index if message.HasField("index") else None,
        provenance=provenance_to(message),
        degraded=degraded_to(degraded),
    )


def _content_to(message: memory_pb2.MemoryItem) -> Content | None:
    kind = message.WhichOneof("content")
    if kind == "text":
        return message.text
    if kind == "chat_message":
        return message_to(message.chat_message)
    if kind == "tool_call_result":
        return _tool_call_result_to(message.tool_call_result)
    return struct_to(message.data) if kind == "data" else None


def degraded_to(degraded: Iterable[memory_pb2.Degradation]) -> tuple[Degradation, ...]:
    """Convert what the server could not do."""
    return tuple(Degradation(_degradation_reason(entry.reason), entry.message) for entry in degraded)


def _degradation_reason(number: memory_pb2.DegradationReason) -> str:
    try:
        return memory_pb2.DegradationReason.Name(number).removeprefix("DEGRADATION_REASON_")
    except ValueError:  # A reason of a newer server.
        return "UNSPECIFIED"


def message_from(message: ChatMessage) -> memory_pb2.ChatMessage:
    """Convert a chat message with all its parts."""
    proto = memory_pb2.ChatMessage(
        message_id=message.message_id,
        role=enum_from(memory_pb2.Role, "ROLE_", Role(message.role)),
        name=message.name,
        parts=[
            _part_from(part, f"parts[{index}]") for index, part in enumerate(listed(message.parts, "parts"))
        ],
    )
    if message.model is not None:
        proto.model.CopyFrom(memory_pb2.Model(provider=message.model.provider, id=message.model.id))
    _set_time(proto, "create_time", message.create_time)
    return proto


def message_to(proto: memory_pb2.ChatMessage) -> ChatMessage:
    """Convert to a chat message. Parts of a kind that only a newer server knows are omitted."""
    parts = (_part_to(part) for part in proto.parts)
    return ChatMessage(
        role=enum_to(memory_pb2.Role, "ROLE_", proto.role, Role, Role.UNSPECIFIED),
        parts=tuple(part for part in parts if part is not None),
        name=proto.name if proto.HasField("name") else None,
        message_id=proto.message_id,
        model=Model(proto.model.provider, proto.model.id) if proto.HasField("model") else None,
        create_time=time_to(proto, "create_time"),
    )


def _part_from(part: Part, where: str) -> memory_pb2.Part:
    if isinstance(part, str):
        return memory_pb2.Part(text=part)
    if isinstance(part, BinaryPart):
        return memory_pb2.Part(binary=_binary_from(part))
    if isinstance(part, ToolCall):
        return memory_pb2.Part(tool_call=_tool_call_from(part, where))
    if isinstance(part, ToolCallResult):
        return memory_pb2.Part(tool_call_result=_tool_call_result_from(part))
    if isinstance(part, Mapping):
        return memory_pb2.Part(data=struct_from(part, where))
    raise invalid(where, f"a message cannot hold a {type(part).__name__}")


def _part_to(part: memory_pb2.Part) -> Part | None:
    kind = part.WhichOneof("part")
    if kind == "text":
        return part.text
    if kind == "data":
        return struct_to(part.data)
    if kind == "binary":
        return _binary_to(part.binary)
    if kind == "tool_call":
        return _tool_call_to(part.tool_call)
    return _tool_call_result_to(part.tool_call_result) if kind == "tool_call_result" else None


def _binary_from(part: BinaryPart) -> memory_pb2.BinaryPart:
    return memory_pb2.BinaryPart(
        name=part.name,
        url=part.url,
        mime_type=part.mime_type,
        content=part.content,
        content_length=part.content_length,
    )


def _binary_to(proto: memory_pb2.BinaryPart) -> BinaryPart:
    return BinaryPart(
        content=proto.content,
        mime_type=proto.mime_type,
        name=proto.name if proto.HasField("name") else None,
        url=proto.url if proto.HasField("url") else None,
        content_length=proto.content_length if proto.HasField("content_length") else None,
    )


def _tool_call_from(call: ToolCall, where: str) -> memory_pb2.ToolCall:
    proto = memory_pb2.ToolCall(tool_call_id=call.tool_call_id, name=call.name)
    if call.arguments is not None:
        proto.arguments.CopyFrom(struct_from(call.arguments, f"{where}.arguments"))
    return proto


def _tool_call_to(proto: memory_pb2.ToolCall) -> ToolCall:
    arguments = struct_to(proto.arguments) if proto.HasField("arguments") else None
    return ToolCall(proto.name, arguments, proto.tool_call_id)


def _tool_call_result_from(result: ToolCallResult) -> memory_pb2.ToolCallResult:
    proto = memory_pb2.ToolCallResult(
        tool_call_id=result.tool_call_id, name=result.name, is_error=result.is_error
    )
    if result.result is not UNSET:
        proto.result.CopyFrom(value_from(result.result, "result"))
    return proto


def _tool_call_result_to(proto: memory_pb2.ToolCallResult) -> ToolCallResult:
    result = value_to(proto.result) if proto.HasField("result") else UNSET
    return ToolCallResult(proto.name, result, proto.tool_call_id, proto.is_error)


def entry_from(entry: StateEntry) -> state_pb2.StateEntry:
    """Convert a state entry with all its fields."""
    proto = state_pb2.StateEntry(
        key=entry.key,
        version=entry.version,
        size_bytes=entry.size_bytes,
        value=value_from(entry.value, "value"),
        description=entry.description,
        preview=entry.preview,
        revision=entry.revision,
    )
    for field in ("create_time", "update_time", "expire_time"):
        _set_time(proto, field, getattr(entry, field))
    return proto


def new_entry_from(entry: StateEntry) -> state_pb2.StateEntry:
    """Convert a state entry to be imported, without the fields that only the server sets."""
    proto = state_pb2.StateEntry(
        key=entry.key, value=value_from(entry.value, "value"), description=entry.description
    )
    _set_time(proto, "expire_time", entry.expire_time)
    return proto


def entry_to(proto: state_pb2.StateEntry) -> StateEntry:
    """Convert to a state entry; an omitted value becomes None."""
    return StateEntry(
        key=proto.key,
        value=value_to(proto.value),
        version=proto.version,
        description=proto.description,
        size_bytes=proto.size_bytes,
        preview=proto.preview,
        create_time=time_to(proto, "create_time"),
        update_time=time_to(proto, "update_time"),
        expire_time=time_to(proto, "expire_time"),
        revision=proto.revision,
    )
