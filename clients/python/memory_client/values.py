"""Conversions of JSON values, times and vectors to protobuf's types and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf import struct_pb2
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from memory_client.errors import invalid
from memory_client.models import Vector

INTEGER_MAX = 2**53
"""Largest magnitude up to which a double, protobuf's type for numbers, holds every integer."""

_LEVELS_MAX = 100
"""Maximum nesting of messages: protobuf reads no more."""
_AROUND = 10
"""More messages than there are around a JSON value."""
AROUND_ITEM_FIELD = 4
"""How many messages there are around a field of an item, at most: an operation of a batch adds an item."""


def struct_from(data: Mapping[str, Any], where: str, *, around: int = _AROUND) -> struct_pb2.Struct:
    """Convert a mapping of JSON values; `where` names it in errors, `around` counts the messages around it.

    Raises:
        InvalidArgument: A value is not a JSON value, a key is not a string, an integer is beyond 2^53, where
            a double would alter it, or values are nested too deeply for protobuf: some 30
            mappings (32 in metadata) or 45 lists.
    """
    struct = struct_pb2.Struct()
    _fill_struct(struct, data, where, around + 1)
    return struct


def value_from(value: Any, where: str) -> struct_pb2.Value:
    """Convert a JSON value; `where` names it in errors. Raises like `struct_from`."""
    message = struct_pb2.Value()
    _set_value(message, value, where, _AROUND + 1)
    return message


def _fill_struct(struct: struct_pb2.Struct, data: Mapping[str, Any], where: str, levels: int) -> None:
    for key, value in data.items():
        if not isinstance(key, str):
            raise invalid(where, f"the key {key!r} is not a string")
        # The entry of the map is also a message.
        _set_value(struct.fields[key], value, f"{where}.{key}", levels + 2)


def _set_value(message: struct_pb2.Value, value: Any, where: str, levels: int) -> None:
    if levels > _LEVELS_MAX:
        raise invalid(where[:100], "nested too deeply")
    if value is None:
        message.null_value = struct_pb2.NULL_VALUE
    elif isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, str):
        message.string_value = value
    elif isinstance(value, int) and abs(value) > INTEGER_MAX:
        raise invalid(where, f"{value} is beyond 2^53; send it as a string")
    elif isinstance(value, (int, float)):
        message.number_value = value
    elif isinstance(value, Mapping):
        message.struct_value.SetInParent()
        _fill_struct(message.struct_value, value, where, levels + 1)
    elif isinstance(value, (list, tuple)):
        message.list_value.SetInParent()
        for index, element in enumerate(value):
            _set_value(message.list_value.values.add(), element, f"{where}[{index}]", levels + 2)
    else:
        raise invalid(where, f"{type(value).__name__} is not a JSON value")


def struct_to(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Convert to a dict. Whole numbers become int."""
    return {key: value_to(value) for key, value in struct.fields.items()}


def value_to(value: struct_pb2.Value) -> Any:
    """Convert to a JSON value. Whole numbers become int; an unset value becomes None."""
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return value.string_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() and abs(number) <= INTEGER_MAX else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "struct_value":
        return struct_to(value.struct_value)
    if kind == "list_value":
        return [value_to(element) for element in value.list_value.values]
    return None


def timestamp_from(time: datetime, where: str) -> Timestamp:
    """Convert an aware datetime; `where` names it in errors.

    Raises:
        InvalidArgument: The datetime has no time zone, so it does not identify a moment.
    """
    if time.tzinfo is None:
        raise invalid(where, "the datetime needs a time zone, as in datetime.now(UTC)")
    timestamp = Timestamp()
    timestamp.FromDatetime(time)
    return timestamp


def timestamp_to(timestamp: Timestamp) -> datetime:
    """Convert to an aware datetime in UTC, to the microsecond."""
    return timestamp.ToDatetime(tzinfo=UTC)


def duration_from(duration: timedelta | float) -> Duration:
    """Convert a timedelta, or a number of seconds."""
    message = Duration()
    message.FromTimedelta(duration if isinstance(duration, timedelta) else timedelta(seconds=duration))
    return message


def duration_to(duration: Duration) -> timedelta:
    """Convert to a timedelta, to the microsecond."""
    return duration.ToTimedelta()


def listed(values: Iterable[Any], where: str) -> list[Any]:
    """Return values as a list; `where` names them in errors.

    Raises:
        InvalidArgument: They are a text, which protobuf would take for a list of characters.
    """
    if isinstance(values, (str, bytes)):
        raise invalid(where, f"must be a list, not {type(values).__name__}")
    return list(values)


def floats_from(vector: Vector) -> list[float]:
    """Convert a vector of any kind to a list, which protobuf reads many times faster than an array."""
    if isinstance(vector, (list, tuple)):
        return list(vector)
    to_list = getattr(vector, "tolist", None)
    return list(to_list()) if to_list is not None else list(vector)  # type: ignore[arg-type]
