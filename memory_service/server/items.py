"""Conversion of items from and to protobuf."""

from __future__ import annotations

import struct
from itertools import chain

import msgspec
import numpy as np

from memory_service.data_model import (
    BinaryPart,
    ChatMessage,
    Content,
    DataPart,
    Facet,
    Item,
    ItemDraft,
    ItemKind,
    Json,
    Part,
    Role,
    TextPart,
    ToolCallPart,
    ToolCallResult,
    Vector,
)
from memory_service.domain.facets import read_facet
from memory_service.domain.neighbours import Window
from memory_service.domain.retrieve_options import Page
from memory_service.errors import InvalidArgument
from memory_service.server.provenance import fill_provenance, to_said
from memory_service.server.values import (
    fill_struct,
    fill_time,
    fill_value,
    to_dict,
    to_json,
    to_labels,
    to_us,
    ttl_us,
)
from memory_service.v1 import memory_pb2 as pb

_ROLES = {
    pb.ROLE_SYSTEM: Role.SYSTEM,
    pb.ROLE_USER: Role.USER,
    pb.ROLE_ASSISTANT: Role.ASSISTANT,
    pb.ROLE_TOOL: Role.TOOL,
}
_ROLE_NUMBERS = {role: number for number, role in _ROLES.items()}


_EMBEDDING_VALUES = bytes([pb.Embedding.VALUES_FIELD_NUMBER << 3 | 2])


def to_vector(embedding: pb.Embedding) -> Vector:
    """Return the vector of an embedding, shape (dimension,)."""
    packed, size = embedding.SerializeToString(), 4 * len(embedding.values)
    # The encoded values are the array's bytes: reading them takes half as long as value by value.
    if packed[:-size] == _EMBEDDING_VALUES + _varint(size):
        return np.frombuffer(packed[-size:], "<f4")
    # There are no values, or fields unknown to this server follow them.
    return np.array(embedding.values, np.float32)


def to_draft(field: str, item: pb.MemoryItem) -> ItemDraft:
    """Return the draft of an item in a request. Fields that the server sets are ignored."""
    draft = ItemDraft(to_content(field, item), item.id, item.session_id, nbytes=item.ByteSize())
    if item.HasField("create_time"):
        draft.create_us = to_us(f"{field}.create_time", item.create_time)
    if item.HasField("expire_time"):
        draft.expire_us = to_us(f"{field}.expire_time", item.expire_time)
    if item.HasField("ttl"):
        draft.ttl_us = ttl_us(f"{field}.ttl", item.ttl)
    if item.labels:
        draft.labels = to_labels(f"{field}.labels", item.labels)
    if item.HasField("metadata"):
        draft.metadata = to_dict(f"{field}.metadata", item.metadata)
    if item.HasField("embedding"):
        draft.embedding = to_vector(item.embedding)
    if item.HasField("importance"):
        draft.importance = item.importance
    if item.HasField("index"):
        draft.index = item.index
    if item.HasField("provenance"):
        draft.provenance = to_said(f"{field}.provenance", item.provenance)
    return draft


def to_content(field: str, item: pb.MemoryItem) -> Content | None:
    """Return the content of an item; None if it has none."""
    kind = item.WhichOneof("content")
    if kind == "text":
        return TextPart(item.text)
    if kind == "chat_message":
        return to_chat_message(f"{field}.chat_message", item.chat_message)
    if kind == "tool_call_result":
        return _to_result(f"{field}.tool_call_result", item.tool_call_result)
    if kind == "data":
        return DataPart(to_dict(f"{field}.data", item.data))
    return None


def to_chat_message(field: str, message: pb.ChatMessage) -> ChatMessage:
    """Return a chat message."""
    role = _ROLES.get(message.role)
    if role is None:
        raise InvalidArgument(f"{field}.role", "must be ROLE_SYSTEM, ROLE_USER, ROLE_ASSISTANT or ROLE_TOOL")
    return ChatMessage(
        role,
        [_to_part(f"{field}.parts[{at}]", part) for at, part in enumerate(message.parts)],
        message.message_id,
        message.name if message.HasField("name") else None,
        (message.model.provider, message.model.id) if message.HasField("model") else None,
        to_us(f"{field}.create_time", message.create_time) if message.HasField("create_time") else None,
    )


def _to_part(field: str, part: pb.Part) -> Part:
    kind = part.WhichOneof("part")
    if kind == "text":
        return TextPart(part.text)
    if kind == "data":
        return DataPart(to_dict(f"{field}.data", part.data))
    if kind == "binary":
        return _to_binary(part.binary)
    if kind == "tool_call":
        call = part.tool_call
        has_arguments = call.HasField("arguments")
        arguments = to_dict(f"{field}.tool_call.arguments", call.arguments) if has_arguments else None
        return ToolCallPart(call.tool_call_id, call.name, arguments)
    if kind == "tool_call_result":
        return _to_result(f"{field}.tool_call_result", part.tool_call_result)
    raise InvalidArgument(f"{field}.part", "is required")


def _to_binary(binary: pb.BinaryPart) -> BinaryPart:
    return BinaryPart(
        binary.mime_type,
        binary.content,
        binary.name if binary.HasField("name") else None,
        binary.url if binary.HasField("url") else None,
        binary.content_length if binary.HasField("content_length") else None,
    )


def _to_result(field: str, result: pb.ToolCallResult) -> ToolCallResult:
    value = to_json(f"{field}.result", result.result) if result.HasField("result") else msgspec.UNSET
    return ToolCallResult(result.tool_call_id, result.name, value, result.is_error)


# --- to protobuf ------------------------------------------------------------------------------


def encoded(item: Item) -> bytes:
    """Return an encoded item without its embedding. The result is cached with the item."""
    if item.wire is None:
        message = pb.MemoryItem()
        _fill(message, item)
        item.wire = message.SerializeToString()
    return item.wire


_ADDED_ITEM = bytes([pb.AddResponse.ITEM_FIELD_NUMBER << 3 | 2])


def encoded_item(item: Item) -> bytes:
    """Return an encoded AddResponse with only its item; the caller appends the rest."""
    wire = encoded(item)
    return b"".join((_ADDED_ITEM, _varint(len(wire)), wire))


_EXPORTED_ITEM = bytes([pb.ExportResponse.ITEM_FIELD_NUMBER << 3 | 2])


def encoded_export(item: Item, *, include_embedding: bool) -> bytes:
    """Return an encoded ExportResponse with only an item and its facet; the caller appends the rest."""
    more = pb.MemoryItem()
    fill_facet(more, item)
    if include_embedding and item.embedding is not None:
        more.embedding.values.extend(item.embedding.tolist())
    # Encoded messages of one type can be concatenated.
    wire = encoded(item) + more.SerializeToString()
    return b"".join((_EXPORTED_ITEM, _varint(len(wire)), wire))


_RESULT_ITEM = bytes([pb.RetrieveResult.ITEM_FIELD_NUMBER << 3 | 2])
_RESULT_SCORE = bytes([pb.RetrieveResult.SCORE_FIELD_NUMBER << 3 | 1])
_RELEVANCE_TAG = pb.RetrieveResult.RELEVANCE_FIELD_NUMBER << 3 | 1
_RESPONSE_RESULT = bytes([pb.RetrieveResponse.RESULTS_FIELD_NUMBER << 3 | 2])
_RESPONSE_REVISION = bytes([pb.RetrieveResponse.REVISION_FIELD_NUMBER << 3])
_pack_scores = struct.Struct("<dBd").pack


def _scores(score: float, relevance: float) -> bytes:
    """Return the value of a score, and the field of a relevance."""
    return _pack_scores(score, _RELEVANCE_TAG, relevance)


_NO_SCORES = _scores(0.0, 0.0)

_RESULT_BEFORE = bytes([pb.RetrieveResult.BEFORE_FIELD_NUMBER << 3 | 2])
_RESULT_AFTER = bytes([pb.RetrieveResult.AFTER_FIELD_NUMBER << 3 | 2])


def encoded_results(page: Page) -> bytes:
    """Return an encoded RetrieveResponse with only the results of a page.

    Items are cached in encoded form, so sending them needs no decoding. The caller appends the rest of the
    response, because encoded messages of one type can be concatenated.
    """
    if page.windows:
        scores = list(map(_scores, page.scores, page.relevances)) or [_NO_SCORES] * len(page.items)
        return b"".join(chain(*map(_surrounded, page.items, scores, page.windows)))
    parts = [_NO_SCORES] * (2 * len(page.items))
    parts[::2] = [item.framed or _framed(item) for item in page.items]
    if page.scores:
        parts[1::2] = map(_scores, page.scores, page.relevances)
    return b"".join(parts)


def encoded_revision(revision: int) -> bytes:
    """Return an encoded RetrieveResponse with only a revision."""
    return _RESPONSE_REVISION + _varint(revision) if revision else b""


def _surrounded(item: Item, scores: bytes, window: Window) -> list[bytes]:
    """Return a result with its neighbours, encoded as part of a response."""
    parts = [b"", *_field(_RESULT_ITEM, item), _RESULT_SCORE, scores]
    for neighbour in window.before:
        parts += _field(_RESULT_BEFORE, neighbour)
    for neighbour in window.after:
        parts += _field(_RESULT_AFTER, neighbour)
    parts[0] = _RESPONSE_RESULT + _varint(sum(map(len, parts)))
    return parts


def _field(tag: bytes, item: Item) -> tuple[bytes, bytes, bytes]:
    wire = encoded(item)
    return tag, _varint(len(wire)), wire


def _framed(item: Item) -> bytes:
    """Return an item encoded as part of a response, up to the bytes of its scores."""
    wire = encoded(item)
    head = _RESULT_ITEM + _varint(len(wire))
    size = len(head) + len(wire) + 1 + len(_NO_SCORES)
    item.framed = b"".join((_RESPONSE_RESULT, _varint(size), head, wire, _RESULT_SCORE))
    return item.framed


def _varint(value: int) -> bytes:
    if value < 128:
        return _SMALL_VARINTS[value]
    if value < 16_384:
        return bytes((value & 127 | 128, value >> 7))
    return bytes((value & 127 | 128,)) + _varint(value >> 7)


_SMALL_VARINTS = [bytes([value]) for value in range(128)]


def item_bytes(item: Item) -> int:
    """Return the approximate size of an item in a response."""
    # 25 bytes for the scores, and for tag and length.
    return len(encoded(item)) + 25 + (0 if item.embedding is None else 4 * len(item.embedding) + 8)


def fill_item(target: pb.MemoryItem, item: Item, *, include_embedding: bool = False) -> None:
    """Set a protobuf item."""
    target.MergeFromString(encoded(item))
    if include_embedding and item.embedding is not None:
        target.embedding.values.extend(item.embedding.tolist())


def fill_facet(target: pb.MemoryItem, item: Item) -> None:
    """Set the service's data of an item, for an export."""
    if item.facet is not None:
        kept = _ExportedFacet(item.facet.tags, item.facet.attributes)
        target.facet_json = msgspec.json.encode(kept).decode()


def to_facet(field: str, item: pb.MemoryItem) -> Facet | None:
    """Return the data that `fill_facet` set; None for a plain item. Raises InvalidArgument."""
    if item.kind == pb.ITEM_KIND_UNSPECIFIED:
        return None
    try:
        kind = ItemKind(item.kind)
    except ValueError:
        raise InvalidArgument(f"{field}.facet_json", "was not written by an export") from None
    text = item.text if item.WhichOneof("content") == "text" else None
    return read_facet(field, kind, item.facet_json, text)


class _ExportedFacet(msgspec.Struct):
    tags: dict[str, str] = {}
    attributes: dict[str, Json] = {}


def fill_stamp(target: pb.MemoryItem, item: Item) -> None:
    """Set the fields that the server assigned, without those that the caller sent."""
    target.id, target.session_id, target.revision = item.id, item.session_id, item.revision
    fill_time(target.create_time, item.create_us)
    fill_time(target.update_time, item.update_us)
    if item.expire_us is not None:
        fill_time(target.expire_time, item.expire_us)


def _fill(target: pb.MemoryItem, item: Item) -> None:
    target.id = item.id
    target.session_id = item.session_id
    _fill_content(target, item.content)
    fill_time(target.create_time, item.create_us)
    fill_time(target.update_time, item.update_us)
    if item.expire_us is not None:
        fill_time(target.expire_time, item.expire_us)
    if item.labels:
        target.labels.update(item.labels)
    if item.metadata is not None:
        fill_struct(target.metadata, item.metadata)
    target.revision = item.revision
    if item.importance is not None:
        target.importance = item.importance
    if item.index is not None:
        target.index = item.index
    if item.facet is not None:
        target.kind = int(item.facet.kind)  # type: ignore[assignment]
    fill_provenance(target.provenance, item)


def _fill_content(target: pb.MemoryItem, content: Content) -> None:
    if isinstance(content, TextPart):
        target.text = content.text
    elif isinstance(content, ChatMessage):
        _fill_message(target.chat_message, content)
    elif isinstance(content, ToolCallResult):
        _fill_result(target.tool_call_result, content)
    else:
        fill_struct(target.data, content.data)


def _fill_message(target: pb.ChatMessage, message: ChatMessage) -> None:
    target.role = _ROLE_NUMBERS[message.role]
    target.message_id = message.message_id
    if message.name is not None:
        target.name = message.name
    if message.model is not None:
        target.model.SetInParent()
        target.model.provider, target.model.id = message.model
    for part in message.parts:
        _fill_part(target.parts.add(), part)
    if message.create_us is not None:
        fill_time(target.create_time, message.create_us)


def _fill_part(target: pb.Part, part: Part) -> None:
    if isinstance(part, TextPart):
        target.text = part.text
    elif isinstance(part, DataPart):
        fill_struct(target.data, part.data)
    elif isinstance(part, BinaryPart):
        _fill_binary(target.binary, part)
    elif isinstance(part, ToolCallPart):
        target.tool_call.SetInParent()
        target.tool_call.tool_call_id, target.tool_call.name = part.tool_call_id, part.name
        if part.arguments is not None:
            fill_struct(target.tool_call.arguments, part.arguments)
    else:
        _fill_result(target.tool_call_result, part)


def _fill_binary(target: pb.BinaryPart, part: BinaryPart) -> None:
    target.SetInParent()
    target.mime_type, target.content = part.mime_type, part.content
    if part.name is not None:
        target.name = part.name
    if part.url is not None:
        target.url = part.url
    if part.content_length is not None:
        target.content_length = part.content_length


def _fill_result(target: pb.ToolCallResult, result: ToolCallResult) -> None:
    target.SetInParent()
    target.tool_call_id, target.name, target.is_error = result.tool_call_id, result.name, result.is_error
    if result.result is not msgspec.UNSET:
        fill_value(target.result, result.result)
