"""The errors of the client.

MemoryServiceError
├── InvalidArgument      the request is invalid; `field` names the invalid field
├── NotFound             no such item, state, memory, document or namespace
├── AlreadyExists        an item or document with this id exists
├── Conflict             another client wrote first: read again, decide again, write again
├── FailedPrecondition   not possible in the current state of the server or namespace
├── LimitExceeded        too large, or too many calls at once (then with `retry_after_s`)
├── Unsupported          this server does not support it
├── Unavailable          the server cannot be reached or cannot answer now; retry
├── DeadlineExceeded     no answer within the client's `timeout_s`
├── Unauthenticated      no credential, or an invalid one
├── PermissionDenied     the credential does not allow the call
└── Internal             the server failed; `metadata["incident"]` identifies it in the server's log
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


class MemoryServiceError(Exception):
    """A call failed. `str(error)` is a sentence for humans; the attributes are for programs."""

    code: str
    """Standard gRPC code, such as "NOT_FOUND"."""
    reason: str
    """Name of a value of the protos' ErrorReason, such as "ITEM_NOT_FOUND"; never changes its meaning.
    Empty: the error did not come from the server itself."""
    metadata: Mapping[str, str]
    """Details of the error; its keys depend on the reason."""
    field: str
    """The invalid field of the request, such as "item.content". Empty: none."""
    retry_after_s: float | None
    """Seconds after which a retry may succeed. None: not reported."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
        field: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.metadata = MappingProxyType(dict(metadata or {}))
        self.field = field or self.metadata.get("field", "")
        self.retry_after_s = retry_after_s


class InvalidArgument(MemoryServiceError, ValueError, TypeError):
    """The request is invalid, and nothing was written; `field` names the invalid field.

    Arguments that cannot be sent raise it without a call. It is also a ValueError and a TypeError, which are
    what Python's own functions raise for these.
    """


class NotFound(MemoryServiceError):
    """There is no such item, state, memory, document, file or namespace; `reason` shows which."""


class AlreadyExists(MemoryServiceError):
    """An item or document with this id, or a file or folder at this path, already exists."""


class Conflict(MemoryServiceError):
    """The expected version or revision is not the current one, which is in `metadata`."""


class FailedPrecondition(MemoryServiceError):
    """The server or the current state of the namespace does not allow the call, as for LLM_REQUIRED."""


class LimitExceeded(MemoryServiceError):
    """Something exceeds a limit, or the server is overloaded."""


class Unsupported(MemoryServiceError):
    """This server, or its store, does not support the call."""


class Unavailable(MemoryServiceError):
    """The server cannot be reached, or cannot answer now."""


class DeadlineExceeded(MemoryServiceError):
    """No answer arrived in time."""


class Unauthenticated(MemoryServiceError):
    """The call has no credential, or an invalid one."""


class PermissionDenied(MemoryServiceError):
    """The credential does not allow this call on this namespace."""


class Internal(MemoryServiceError):
    """The server failed unexpectedly."""


ERROR_OF_CODE: Mapping[str, type[MemoryServiceError]] = MappingProxyType(
    {
        "INVALID_ARGUMENT": InvalidArgument,
        "NOT_FOUND": NotFound,
        "ALREADY_EXISTS": AlreadyExists,
        "ABORTED": Conflict,
        "FAILED_PRECONDITION": FailedPrecondition,
        "RESOURCE_EXHAUSTED": LimitExceeded,
        "UNIMPLEMENTED": Unsupported,
        "UNAVAILABLE": Unavailable,
        "DEADLINE_EXCEEDED": DeadlineExceeded,
        "UNAUTHENTICATED": Unauthenticated,
        "PERMISSION_DENIED": PermissionDenied,
        "INTERNAL": Internal,
    }
)
"""The class for each gRPC code; other codes raise `MemoryServiceError` itself."""


def closed() -> MemoryServiceError:
    """Return the error of a call of a client that is closed."""
    return MemoryServiceError("the client is closed", code="CANCELLED")


def invalid(field: str, message: str) -> InvalidArgument:
    """Return the error for an argument that cannot be sent."""
    return InvalidArgument(f"{field}: {message}", code="INVALID_ARGUMENT", field=field)
