"""Estimates a request's decoded size from its bytes, and refuses requests that are too large.

Sixteen MiB may be eight million empty messages, which take a second and three GiB to decode, or one name,
which becomes a new Python string on every access. So the fields of a large request are counted, and their
lengths checked, before it is decoded.
"""

from __future__ import annotations

from functools import lru_cache

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from memory_service.errors import LimitExceeded
from memory_service.limits import Limits
from memory_service.server.field_counts import PACKED, PLAIN, FieldCounter

_UNCOUNTED_BYTES = 4096
"""A field takes at least two bytes, so smaller requests need no count.

Doubled: twice as many are decoded uncounted.
"""
_BYTES_PER_BYTE = 4
"""A request exists raw, decoded, prepared, and queued for writing. Doubled: half as many fit."""
_BYTES_PER_FIELD = 256
"""Approximate size of a field, decoded and as a Python value.

Doubled: half as many requests of many fields fit.
"""
_JSON = "google/protobuf/struct.proto"
_PACKABLE = (
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
    FieldDescriptor.CPPTYPE_BOOL,
    FieldDescriptor.CPPTYPE_ENUM,
)


class RequestSizes:
    """Sizes of requests of one method, by its path on the wire."""

    def __init__(self, method: str, limits: Limits) -> None:
        self._limits = limits
        found = descriptor_pool.Default().FindMethodByName(method.lstrip("/").replace("/", "."))
        self._request: Descriptor = found.input_type
        self._root, self._counter = _counter(self._request.full_name)

    def held_bytes(self, raw: bytes) -> int:
        """Return about how many bytes a request occupies. Raises LimitExceeded."""
        size = _BYTES_PER_BYTE * len(raw)
        if len(raw) <= _UNCOUNTED_BYTES:
            return size
        most, longest = self._limits.request_fields_max, self._limits.field_bytes_max
        count, path, entry, nbytes = self._counter.count(raw, self._root, most, longest)
        if nbytes:
            raise LimitExceeded(self._name(path, entry), "field_bytes_max", longest, nbytes)
        if path:
            raise LimitExceeded(self._name(path, entry), "request_fields_max", most, count)
        return size + _BYTES_PER_FIELD * count

    def _name(self, path: tuple[int, ...], entry: int) -> str:
        """Return the name of a field for errors, down to the last known field or a list entry."""
        names: list[str] = []
        message: Descriptor | None = self._request
        for number in path:
            field = message.fields_by_number.get(number) if message is not None else None
            if field is None:
                break
            message = field.message_type
            is_map = message is not None and message.GetOptions().map_entry
            is_list = field.is_repeated and not is_map
            names.append(f"{field.name}[{entry}]" if is_list and not names else field.name)
            if is_map or (names and message is not None and message.file.name == _JSON):
                break
        return ".".join(names) or "request"


@lru_cache(None)
def _counter(request: str) -> tuple[int, FieldCounter]:
    """Return the index of a request type, and a counter that knows it and all nested types."""
    numbers = {request: 0}
    types: list[list[int]] = []
    maps: list[bool] = []
    pending = [descriptor_pool.Default().FindMessageTypeByName(request)]
    while pending:
        descriptor = pending.pop(0)
        held = [PLAIN] * (1 + max((field.number for field in descriptor.fields), default=0))
        for field in descriptor.fields:
            if field.message_type is not None:
                name = field.message_type.full_name
                if name not in numbers:
                    numbers[name] = len(numbers)
                    pending.append(field.message_type)
                held[field.number] = numbers[name]
            elif field.is_repeated and field.cpp_type in _PACKABLE:
                held[field.number] = PACKED
        types.append(held)
        maps.append(descriptor.GetOptions().map_entry)
    return 0, FieldCounter(types, maps)
