"""Maps errors to gRPC status codes, with the details that clients read."""

from __future__ import annotations

import functools
import math
import uuid

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from memory_service import errors
from memory_service.runtime.event_log import EventLog

DOMAIN = "memory_service.v1"
_DETAILS_KEY = "grpc-status-details-bin"
# The delay for gRPC's own retries, in milliseconds.
_PUSHBACK_KEY = "grpc-retry-pushback-ms"
_NEVER = "-1"
_log = EventLog(__name__)

Abort = tuple[grpc.StatusCode, str, tuple[tuple[str, str | bytes], ...]]

# Most specific first.
CODES: tuple[tuple[type[errors.MemoryServiceError], grpc.StatusCode], ...] = (
    (errors.InvalidArgument, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.LimitExceeded, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.Overloaded, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.StorageFull, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.NotFound, grpc.StatusCode.NOT_FOUND),
    (errors.AlreadyExists, grpc.StatusCode.ALREADY_EXISTS),
    (errors.Conflict, grpc.StatusCode.ABORTED),
    (errors.Unauthenticated, grpc.StatusCode.UNAUTHENTICATED),
    (errors.PermissionDenied, grpc.StatusCode.PERMISSION_DENIED),
    (errors.FailedPrecondition, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.Unavailable, grpc.StatusCode.UNAVAILABLE),
    (errors.Unsupported, grpc.StatusCode.UNIMPLEMENTED),
)


def code_of(error: errors.MemoryServiceError) -> grpc.StatusCode:
    """Return the status code of an error."""
    return next((code for kind, code in CODES if isinstance(error, kind)), grpc.StatusCode.INTERNAL)


def expected(error: Exception, method: str) -> errors.MemoryServiceError:
    """Return an error that callers may see; an unexpected one is logged and hidden."""
    if isinstance(error, errors.MemoryServiceError):
        return error
    incident = uuid.uuid4().hex
    _log.error("unexpected_error", method=method, incident=incident, exc_info=error)
    return Unforeseen(incident)


class Unforeseen(errors.MemoryServiceError):
    """A bug in the server; the log has the incident's id and the cause."""

    def __init__(self, incident: str) -> None:
        super().__init__("INTERNAL", f"internal error, incident {incident}", incident=incident)


def abort_of(error: errors.MemoryServiceError) -> Abort:
    """Return the code, text and trailing metadata that end a call with an error."""
    if isinstance(error, errors.Overloaded):
        retry_ms = _whole_ms(error.retry_after_s or 0.0)
        return _refusal(error.problem, error.metadata["limit_name"], int(error.metadata["limit"]), retry_ms)
    code, text, details = _status_of(error)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        # Clients retry this code, but a retry does not help if a request is too large or the disk full.
        return code, text, (details, (_PUSHBACK_KEY, _NEVER))
    return code, text, (details,)


@functools.lru_cache(maxsize=1024)
def _refusal(problem: str, limit_name: str, limit: int, retry_ms: int) -> Abort:
    """Return the encoded refusal, which is cached: an overloaded server refuses many calls alike."""
    error = errors.Overloaded(limit_name, limit, retry_ms / 1000, problem=problem)
    code, text, details = _status_of(error)
    return code, text, (details, (_PUSHBACK_KEY, str(retry_ms)))


def _status_of(error: errors.MemoryServiceError) -> tuple[grpc.StatusCode, str, tuple[str, bytes]]:
    """Return code, text and the details, an encoded google.rpc.Status as metadata."""
    code = code_of(error)
    status = status_pb2.Status(code=code.value[0], message=error.message)
    for detail in _details(error):
        status.details.add().Pack(detail)
    return code, error.message, (_DETAILS_KEY, status.SerializeToString())


def _whole_ms(seconds: float) -> int:
    """Return a delay in milliseconds, rounded up."""
    return math.ceil(seconds * 1000)


def _details(error: errors.MemoryServiceError) -> list[Message]:
    reason = f"ERROR_REASON_{error.reason}"
    found: list[Message] = [
        error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN, metadata=error.metadata)
    ]
    if isinstance(error, errors.InvalidArgument | errors.LimitExceeded):
        violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=error.message)
        found.append(error_details_pb2.BadRequest(field_violations=[violation]))
    if error.retry_after_s is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromMilliseconds(_whole_ms(error.retry_after_s))
        found.append(retry)
    return found
