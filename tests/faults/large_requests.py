"""Requests of any RPC in which one field is as large as allowed, or many times that, and slow to process."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from google.protobuf import struct_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message

from faults.scale import SOAK, drawn
from grpc_api import is_map, valid_request
from memory_service.limits import Limits
from memory_service.server.json_values import encoded_value
from memory_service.v1 import memory_pb2

TEXT_BYTES, ENTRIES = 64 * 1024, 1000
"""The limits of a field without a specific one."""
_REQUEST_BYTES_MAX = 15 << 20
_VALUES_MAX = 480_000
"""Just accepted: a request with more fields is rejected before it is decoded."""
_FIELD_BYTES_MAX = Limits.field_bytes_max
"""A longer field is rejected before it is decoded."""
_DEPTH_MAX = 5
_JSON = ("google.protobuf.Struct", "google.protobuf.Value")

# The limits of fields by their names, where they differ from those above.
_BYTES = {
    "namespace": 128, "id": 128, "session_id": 256, "request_id": 64, "filter": 4096, "pattern": 512,
    "key": 512, "goal": 16 << 10, "description": 1024, "source_uri": 2048, "quote": 2048, "title": 512,
    "message_id": 1024, "sender": 256, "item_ids": 128, "parent_ids": 128, "ids": 128,
    "memory_ids": 128, "document_ids": 128,
    "exclude_ids": 128, "interaction_ids": 128, "tool_name": 256,
}  # fmt: skip
_LONGER = {"Document.text": 1 << 20, "BinaryPart.content": 1 << 20}
_MANY = {
    "values": 4096, "parent_ids": 100, "item_ids": 100, "document_ids": 100, "parts": 256, "labels": 64,
    "exclude_ids": 100, "interaction_ids": 100, "commands": 32, "messages": 200,
}  # fmt: skip

_PIECES: dict[str, str] = {
    "letters": "a",
    "spaces": " ",
    "brackets": "(",
    "quotes": '"',
    "words": "lorem{} ipsum, ",
    "ideographs": "\u4e16",
    "marks": "e\u0301\u0316",
    "lines": "\n- I like x.",
}
_OF_FILTERS = {
    "not": "NOT ",
    "parentheses": "(" * 16 + "kind=1" + ")" * 16 + " OR ",
    "comparisons": "labels['a{}'] = 'b' OR ",
    "escapes": '"\\"',
    "numbers": "9",
}
_OF_PATTERNS = {
    "stars": "*a",
    "only stars": "*",
    "sets": "[!a",
    "open sets": "[",
    "marks": "?",
    "ranges": "[a-z]*",
}
_FEW = ("letters", "marks", "words")
_ANALYSED = ("filter", "pattern", "text", "content", "query", "query_text")
"""Fields that are parsed, split into words, or searched for: what they are made of counts most."""
_OTHERS = 3
"""Other ways to fill a field that an ordinary run draws, beside the most expensive ones. Doubled, a run
takes a minute longer; soak tries all.
"""

Steps = tuple[FieldDescriptor, ...]
Filling = tuple[str, Callable[[Any], None]]


@dataclass(frozen=True)
class Large:
    """A request, and the name of its large part."""

    name: str
    request: Message


def large_requests(method: MethodDescriptor, namespace: str) -> Iterator[Large]:
    """Yield the requests of a method that are valid except for one field."""
    for steps in ways(method.input_type):
        fillings = list(_fillings(steps[-1]))
        if not SOAK:
            fillings = _some_of(fillings, method, steps[-1])
        for name, fill in fillings:
            request: Any = valid_request(method, namespace)
            if "request_id" in method.input_type.fields_by_name:
                request.request_id = secrets.token_hex(8)
            if len(steps) > 1 and steps[0].is_repeated:
                request.ClearField(steps[0].name)
            holder = _holder(request, steps)
            fill(holder)
            if request.ByteSize() <= _REQUEST_BYTES_MAX:
                yield Large(f"{'.'.join(step.name for step in steps)}: {name}", request)


def _some_of(fillings: list[Filling], method: MethodDescriptor, field: FieldDescriptor) -> list[Filling]:
    """Return the fillings of an ordinary run: most of them for the first method that has the field."""
    # As many entries as are just taken: no request makes more work.
    just_taken = f"{_MANY.get(field.name, ENTRIES)} " if field.message_type is not None else _TELLING[0]
    telling = [filling for filling in fillings if filling[0].startswith((*_TELLING, just_taken))]
    telling = telling or fillings[-1:]
    if not _is_first(method, field):
        # Another method tests how it is processed; here it is enough that the largest is accepted.
        return telling if field.message_type is not None else telling[-1:]
    is_long = f"{field.containing_type.name}.{field.name}" in _LONGER
    if is_map(field) or (field.name in _ANALYSED and not is_long):
        return fillings
    others = [filling for filling in fillings if filling not in telling]
    return telling + drawn(f"{method.name} {field.full_name}").sample(others, min(len(others), _OTHERS))


def reads_all(method: MethodDescriptor, namespace: str) -> Large:
    """Return the request of a method that has the largest response."""
    request = valid_request(method, namespace)
    for message in (
        request,
        *(getattr(request, "options", None) for _ in "1" if hasattr(request, "options")),
    ):
        for field in message.DESCRIPTOR.fields:
            if field.is_repeated:
                continue
            if field.type == field.TYPE_BOOL and not field.name.startswith(("rerank", "dry_run", "replace")):
                setattr(message, field.name, True)
            elif field.name in _MOST:
                setattr(message, field.name, _MOST[field.name])
    return Large("all there is", request)


_MOST = {"page_size": 1000, "limit": 100, "context_window": 20, "query_text": "lorem", "query": "lorem"}


def ways(descriptor: Descriptor, steps: Steps = ()) -> Iterator[Steps]:
    """Yield the path to each field that may be large."""
    for field in descriptor.fields:
        inner, here = field.message_type, (*steps, field)
        if inner is None:
            if field.is_repeated or field.type in (field.TYPE_STRING, field.TYPE_BYTES):
                yield here
        elif is_map(field) or inner.full_name in _JSON:
            yield here
        else:
            if field.is_repeated:
                yield here
            if len(steps) < _DEPTH_MAX and inner not in [step.message_type for step in steps]:
                yield from ways(inner, here)


def _holder(message: Any, steps: Steps) -> Any:
    for step in steps[:-1]:
        inner = getattr(message, step.name)
        message = inner.add() if step.is_repeated else inner
        if not step.is_repeated:
            message.SetInParent()
        if step.message_type.name == "ChatMessage":
            message.role = memory_pb2.ROLE_USER
    return message


@lru_cache(None)
def _is_first(method: MethodDescriptor, field: FieldDescriptor) -> bool:
    """Return whether a method is the first with this field, or with a common field of the same name."""
    alike = (field.name, field.is_repeated, field.type) if field.name in _COMMON else field.full_name
    return _FIRST.setdefault(alike, method.full_name) == method.full_name


_FIRST: dict[Any, str] = {}
_COMMON = {
    "namespace", "id", "session_id", "request_id", "page_token", "labels", "metadata", "sources",
    "categories", "sender", "key", "parent_ids", "source_uri", "tool_call_id", "name", "message_id",
    "values", "kinds",
    "writer", "credential_id", "data", "arguments", "result", "model", "provider", "url", "mime_type",
}  # fmt: skip
_TELLING = ("all short keys", "deep and wide", "480000 different", "480000 empty", "80000", "marks")


def _fillings(field: FieldDescriptor) -> Iterator[Filling]:
    if is_map(field):
        yield from _maps(field)
    elif field.message_type is not None and field.message_type.full_name in _JSON:
        yield from _json(field)
    elif field.is_repeated:
        yield from _lists(field)
    elif field.type == field.TYPE_BYTES:
        limit = _LONGER.get(_full(field), TEXT_BYTES)
        for times in (1, 10):
            yield f"{times}x", lambda holder, n=limit * times: setattr(holder, field.name, b"\xff" * n)
    else:
        yield from _texts(field)


def _full(field: FieldDescriptor) -> str:
    return f"{field.containing_type.name}.{field.name}"


def _texts(field: FieldDescriptor) -> Iterator[Filling]:
    limit = _LONGER.get(_full(field), _BYTES.get(field.name, TEXT_BYTES))
    more = _OF_FILTERS if field.name == "filter" else _OF_PATTERNS if field.name == "pattern" else {}
    kinds = {**_PIECES, **more}
    for kind, piece in kinds.items():
        # A text that is rejected for its length alone is not examined further.
        sizes = {limit, 10 * limit, 100 * limit} if SOAK or kind in more or kind in _FEW else {limit}
        if kind == "marks":
            sizes.add(_FIELD_BYTES_MAX)
        for size in sorted(sizes):
            if SOAK or kind == "letters" or size <= _FIELD_BYTES_MAX:
                text = text_of(piece, size)
                yield f"{kind} {size}", lambda holder, text=text: setattr(holder, field.name, text)


@lru_cache(512)
def text_of(piece: str, size: int) -> str:
    """Return a text of about that many bytes, and no more."""
    count = size // len(piece.encode())
    if "{}" in piece:
        return "".join(piece.format(number) for number in range(count))[:size]
    return piece * count


def _lists(field: FieldDescriptor) -> Iterator[Filling]:
    limit = _MANY.get(field.name, ENTRIES)
    most = 15 << 18 if field.type == field.TYPE_FLOAT else _VALUES_MAX
    for count in (limit, 10 * limit, 100 * limit, most):
        if count > most:
            continue
        if field.message_type is not None:
            for name, raw in _entries(field):
                if count * (len(raw) + 4) <= _REQUEST_BYTES_MAX:
                    yield f"{count} {name}", lambda holder, n=count, raw=raw: _add(holder, field, n, raw)
        else:
            for name, value in _scalars(field):
                yield (
                    f"{count} {name}",
                    lambda holder, n=count, value=value: getattr(holder, field.name).extend(
                        [value(number) for number in range(n)]
                    ),
                )


def _scalars(field: FieldDescriptor) -> list[tuple[str, Callable[[int], Any]]]:
    if field.type == field.TYPE_STRING:
        return [("empty", lambda _: ""), ("different", str)]
    if field.type == field.TYPE_FLOAT:
        return [("numbers", lambda number: 1.0 + number % 7)]
    return [("alike", lambda _: 1)]


def _entries(field: FieldDescriptor) -> list[tuple[str, bytes]]:
    """Yield entries that are messages: empty, and one that may be valid."""
    inner = field.message_type
    found = [("empty", b"")]
    if inner.name == "MemoryItem":
        found += [("texts", b"\x2a\x01x"), ("of marks", b"\x2a\x0c" + "e\u0301".encode() * 4)]
    elif inner.name == "Part":
        found += [("texts", b"\x0a\x01x")]
    elif inner.name == "StateEntry":
        found += [("values", b"\x0a\x01k" + b"\x12\x02\x20\x01")]
    elif inner.name == "ChatMessage":
        found += [("texts", b"\x10\x02\x2a\x0d\x0a\x0bI like tea.")]
    return found


def _add(holder: Any, field: FieldDescriptor, count: int, raw: bytes) -> None:
    head = _varint(field.number << 3 | 2) + _varint(len(raw)) + raw
    holder.MergeFromString(head * count)


def _varint(value: int) -> bytes:
    return bytes((value,)) if value < 128 else bytes((value & 127 | 128,)) + _varint(value >> 7)


def _maps(field: FieldDescriptor) -> Iterator[Filling]:
    limit = _MANY.get(field.name, ENTRIES)
    entry = field.message_type.fields_by_name["value"]
    if entry.type != entry.TYPE_STRING:
        return
    for count in (limit, 100 * limit, _VALUES_MAX // 6):
        yield (
            f"{count} entries",
            lambda holder, n=count: getattr(holder, field.name).update(
                {f"k{number}": "v" for number in range(n)}
            ),
        )
    for size in (1, 100):
        yield (
            f"{limit} entries {size}x",
            lambda holder, n=size: getattr(holder, field.name).update(
                {f"k{number}".ljust(60, "x"): "e\u0301" * 100 * n for number in range(limit)}
            ),
        )


def json_contents() -> dict[str, Any]:
    """Yield JSON values of different kinds, each about as slow as any of its size."""
    many = _VALUES_MAX // 2
    return {
        "numbers": [1.5] * 100_000,
        "empty objects": [{}] * 60_000,
        "texts": ["ab"] * 50_000,
        "short keys": {f"k{number}": 1 for number in range(24_000)},
        "deep": _nested(32),
        "deep and wide": [_nested(30)] * 1500,
        "a text": "e\u0301" * 80_000,
        "a word": "a" * 250_000,
        "few": {"a": [1, 2.5, "x", None]},
        "all numbers": [1] * many,
        "all empty objects": [{}] * (many // 2),
        "all short keys": {f"k{number}": True for number in range(_VALUES_MAX // 7)},
        "ten times a text": "e\u0301" * 1_200_000,
    }


def _nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


_KEPT: dict[str, struct_pb2.Value] = {}


def _json(field: FieldDescriptor) -> Iterator[Filling]:
    if not _KEPT:
        for name, value in json_contents().items():
            _KEPT[name] = json_value_of(value)
    for name, value in _KEPT.items():
        yield name, lambda holder, value=value: _set_json(holder, field, value)


def json_value_of(value: Any) -> struct_pb2.Value:
    """Return the same as `json_value`, in a twentieth of the time."""
    return struct_pb2.Value.FromString(encoded_value(value))


def _set_json(holder: Any, field: FieldDescriptor, value: struct_pb2.Value) -> None:
    target = getattr(holder, field.name)
    if field.message_type.name == "Value":
        target.CopyFrom(value)
    else:
        target.fields["v"].CopyFrom(value)
