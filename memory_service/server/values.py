"""JSON values, times and durations: protobuf and ours, both directions side by side."""

from __future__ import annotations

import math

from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from memory_service.errors import InvalidArgument
from memory_service.records import Json

_SECOND_US = 1_000_000
_WHOLE_MAX = float(1 << 53)
_SECONDS_MIN, _SECONDS_MAX = -62_135_596_800, 253_402_300_799
_DURATION_SECONDS_MAX = 315_576_000_000


def to_json(field: str, value: Value) -> Json:
    """Return the JSON value of a protobuf one."""
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return value.string_value
    if kind == "number_value":
        return _number(value.number_value)
    if kind == "bool_value":
        return value.bool_value
    if kind == "struct_value":
        return to_dict(field, value.struct_value)
    if kind == "list_value":
        return [to_json(field, inner) for inner in value.list_value.values]
    if kind == "null_value":
        return None
    raise InvalidArgument(field, "holds a value of no kind")


def _number(value: float) -> float | int:
    """Return whole numbers as such: JSON has one kind of number, and 1 reads better than 1.0."""
    if value.is_integer() and abs(value) < _WHOLE_MAX and (value or math.copysign(1, value) > 0):
        return int(value)
    return value


def to_dict(field: str, struct: Struct) -> dict[str, Json]:
    """Return the JSON object of a protobuf one."""
    return {key: to_json(field, value) for key, value in struct.fields.items()}


def fill_value(target: Value, value: Json) -> None:
    """Set a protobuf value."""
    if isinstance(value, str):
        target.string_value = value
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, float | int):
        target.number_value = value
    elif value is None:
        target.null_value = 0  # type: ignore[assignment]
    elif isinstance(value, dict):
        target.struct_value.SetInParent()
        fill_struct(target.struct_value, value)
    else:
        _fill_list(target.list_value, value)


def _fill_list(target: ListValue, values: list[Json]) -> None:
    target.SetInParent()
    for inner in values:
        fill_value(target.values.add(), inner)


def fill_struct(target: Struct, value: dict[str, Json]) -> None:
    """Set a protobuf object."""
    target.SetInParent()
    for key, inner in value.items():
        fill_value(target.fields[key], inner)


def to_us(field: str, time: Timestamp) -> int:
    """Return microseconds since the epoch; what is finer is cut off."""
    if not _SECONDS_MIN <= time.seconds <= _SECONDS_MAX or not 0 <= time.nanos < 1_000_000_000:
        raise InvalidArgument(field, "is not a time between the years 1 and 9999")
    return time.seconds * _SECOND_US + time.nanos // 1000


def fill_time(target: Timestamp, time_us: int) -> None:
    """Set a protobuf time."""
    target.seconds, rest = divmod(time_us, _SECOND_US)
    target.nanos = rest * 1000


def duration_us(field: str, duration: Duration) -> int:
    """Return the microseconds of a duration, rounded up."""
    same_sign = duration.seconds == 0 or duration.nanos == 0 or (duration.seconds > 0) == (duration.nanos > 0)
    in_range = abs(duration.seconds) <= _DURATION_SECONDS_MAX and abs(duration.nanos) < 1_000_000_000
    if not (same_sign and in_range):
        raise InvalidArgument(field, "is not a duration")
    return duration.seconds * _SECOND_US + -(-duration.nanos // 1000)


def ttl_us(field: str, duration: Duration) -> int:
    """Return a time to live that ends before the year 9999."""
    found = duration_us(field, duration)
    if found > 1000 * 365 * 86_400 * _SECOND_US:
        raise InvalidArgument(field, "is longer than 1000 years")
    return found


def fill_duration(target: Duration, seconds: float) -> None:
    """Set a protobuf duration."""
    target.FromMicroseconds(int(seconds * _SECOND_US))
