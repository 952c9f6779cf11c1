"""Conversion of JSON values, times and durations from and to protobuf."""

from __future__ import annotations

from collections.abc import Mapping, Set

from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from memory_service.data_model import Json
from memory_service.errors import InvalidArgument
from memory_service.limits import Limits
from memory_service.server.json_values import decoded_struct, decoded_value, encoded_struct, encoded_value

_SECOND_US = 1_000_000
_SECONDS_MIN, _SECONDS_MAX = -62_135_596_800, 253_402_300_799
_DURATION_SECONDS_MAX = 315_576_000_000


def to_json(field: str, value: Value) -> Json:
    """Return a protobuf value as JSON. Raises InvalidArgument."""
    try:
        return decoded_value(value.SerializeToString())
    except ValueError as error:
        raise InvalidArgument(field, str(error)) from None


def to_dict(field: str, struct: Struct) -> dict[str, Json]:
    """Return a protobuf struct as a JSON object. Raises InvalidArgument."""
    try:
        return decoded_struct(struct.SerializeToString())
    except ValueError as error:
        raise InvalidArgument(field, str(error)) from None


def to_labels(field: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels. Raises InvalidArgument, before converting them if there are too many."""
    if len(labels) > Limits.labels_max:
        raise InvalidArgument(field, f"has more than {Limits.labels_max} entries")
    return dict(labels)


def to_paths(mask: FieldMask, known: Set[str]) -> list[str]:
    """Return the distinct paths of a mask, all known, or "*" alone. Raises InvalidArgument."""
    paths: dict[str, None] = {}
    for path in mask.paths:
        if path not in known and not (path == "*" and len(mask.paths) == 1):
            raise InvalidArgument("update_mask", f"cannot change {path!r}")
        paths[path] = None
    return list(paths)


def fill_value(target: Value, value: Json) -> None:
    """Set a protobuf value."""
    target.MergeFromString(encoded_value(value))


def fill_struct(target: Struct, value: dict[str, Json]) -> None:
    """Set a protobuf object."""
    target.SetInParent()
    target.MergeFromString(encoded_struct(value))


def to_us(field: str, time: Timestamp) -> int:
    """Return microseconds since the epoch, rounded down."""
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
