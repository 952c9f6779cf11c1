"""Converts gRPC's errors to this package's, with the details that the server sends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, duration_pb2, message_factory
from google.protobuf.message import DecodeError

from memory_client.errors import ERROR_OF_CODE, MemoryServiceError

_DOMAIN = "memory_service.v1"
_TRAILER = "grpc-status-details-bin"
_Field = descriptor_pb2.FieldDescriptorProto
_STRING, _MESSAGE = _Field.TYPE_STRING, _Field.TYPE_MESSAGE
_ONE, _MANY = _Field.LABEL_OPTIONAL, _Field.LABEL_REPEATED


def _message(
    parent: Any, name: str, *fields: tuple[str, int, Any, Any, str | None]
) -> descriptor_pb2.DescriptorProto:
    message: descriptor_pb2.DescriptorProto = parent.add(name=name)
    for field_name, number, label, kind, type_name in fields:
        message.field.add(name=field_name, number=number, label=label, type=kind, type_name=type_name)
    return message


def _google_rpc() -> descriptor_pool.DescriptorPool:
    """Describe the few google.rpc messages that errors carry, in a separate pool.

    The googleapis package has them too, but would be another dependency. In the default pool they would
    clash with that package in programs that use it.
    """
    file = descriptor_pb2.FileDescriptorProto(name="google_rpc.proto", package="google.rpc", syntax="proto3")
    file.dependency.extend(["google/protobuf/any.proto", "google/protobuf/duration.proto"])
    _message(
        file.message_type,
        "Status",
        ("code", 1, _ONE, _Field.TYPE_INT32, None),
        ("message", 2, _ONE, _STRING, None),
        ("details", 3, _MANY, _MESSAGE, ".google.protobuf.Any"),
    )
    info = _message(
        file.message_type,
        "ErrorInfo",
        ("reason", 1, _ONE, _STRING, None),
        ("domain", 2, _ONE, _STRING, None),
        ("metadata", 3, _MANY, _MESSAGE, ".google.rpc.ErrorInfo.MetadataEntry"),
    )
    entry = _message(
        info.nested_type, "MetadataEntry", ("key", 1, _ONE, _STRING, None), ("value", 2, _ONE, _STRING, None)
    )
    entry.options.map_entry = True
    violations = ("field_violations", 1, _MANY, _MESSAGE, ".google.rpc.BadRequest.FieldViolation")
    request = _message(file.message_type, "BadRequest", violations)
    _message(request.nested_type, "FieldViolation", ("field", 1, _ONE, _STRING, None))
    delay = ("retry_delay", 1, _ONE, _MESSAGE, ".google.protobuf.Duration")
    _message(file.message_type, "RetryInfo", delay)
    pool = descriptor_pool.DescriptorPool()
    for described in (any_pb2.DESCRIPTOR.serialized_pb, duration_pb2.DESCRIPTOR.serialized_pb):
        pool.AddSerializedFile(described)
    pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _google_rpc()
_CLASSES: dict[str, Any] = {
    name: message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"google.rpc.{name}"))
    for name in ("Status", "ErrorInfo", "BadRequest", "RetryInfo")
}


def error_from_call(call: grpc.Call | grpc.aio.AioRpcError) -> MemoryServiceError:
    """Return the error of a failed call, synchronous or asynchronous."""
    code = call.code()
    trailers: Any = call.trailing_metadata() or ()
    name = code.name if code is not None else "UNKNOWN"
    return error_from_status(name, call.details() or "", tuple(trailers))


def error_from_status(
    code: str, message: str, trailers: Sequence[tuple[str, str | bytes]]
) -> MemoryServiceError:
    """Return the error for a status code, a message and trailing metadata.

    Details that cannot be decoded are omitted: code and message still describe the error.
    """
    details = _details(trailers)
    info = details.get("ErrorInfo")
    if info is not None and info.domain != _DOMAIN:
        info = None  # The reason is a proxy's.
    violations = details["BadRequest"].field_violations if "BadRequest" in details else ()
    retry = details["RetryInfo"].retry_delay.ToTimedelta() if "RetryInfo" in details else None
    return ERROR_OF_CODE.get(code, MemoryServiceError)(
        message or code,
        code=code,
        reason=info.reason.removeprefix("ERROR_REASON_") if info is not None else "",
        metadata=dict(info.metadata) if info is not None else None,
        field=violations[0].field if violations else "",
        retry_after_s=retry.total_seconds() if retry is not None else None,
    )


def _details(trailers: Sequence[tuple[str, str | bytes]]) -> dict[str, Any]:
    """Return the first detail of each type by the type's short name."""
    packed = next((value for key, value in trailers if key == _TRAILER), None)
    found: dict[str, Any] = {}
    if not isinstance(packed, bytes):
        return found
    try:
        for detail in _CLASSES["Status"].FromString(packed).details:
            name = detail.type_url.rpartition("google.rpc.")[2]
            if name in _CLASSES:
                found.setdefault(name, _CLASSES[name].FromString(detail.value))
    except DecodeError:
        pass
    return found
