"""What can go wrong, for programs to act on.

MemoryServiceError
├── InvalidArgument      the request is wrong; `field` says where
├── NotFound             no such item, state, memory, document or namespace
├── AlreadyExists        an item or document of this id exists
├── Conflict             somebody else wrote first: read again, decide again, write again
├── FailedPrecondition   not in the present state of the server or namespace
├── LimitExceeded        too large, or too much at once (then with `retry_after_s`)
├── Unsupported          this server does not offer it
├── Unavailable          the server cannot be reached or cannot answer now; retry
├── DeadlineExceeded     no answer within the client's `timeout_s`
├── Unauthenticated      no credential, or one that is not valid
├── PermissionDenied     the credential does not allow the call
└── Internal             the server failed; `metadata["incident"]` finds it in its log
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
    """What the reason is about; which keys there are depends on it."""
    field: str
    """The field of the request that is at fault, such as "item.content". Empty: none."""
    retry_after_s: float | None
    """Seconds after which a retry may succeed. None: the server did not say."""

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


class InvalidArgument(MemoryServiceError):
    """The request is wrong and nothing was written; `field` says where."""


class NotFound(MemoryServiceError):
    """There is no such item, state, memory, document or namespace; `reason` says which."""


class AlreadyExists(MemoryServiceError):
    """An item or a document of this id exists already."""


class Conflict(MemoryServiceError):
    """The expected version or revision is not the current one; `metadata` tells the current one."""


class FailedPrecondition(MemoryServiceError):
    """The call does not fit the server or the present state of the namespace, as LLM_REQUIRED does not."""


class LimitExceeded(MemoryServiceError):
    """Something is larger than a limit allows, or the server has too much to do."""


class Unsupported(MemoryServiceError):
    """This server, or the store it runs on, does not offer what was asked for."""


class Unavailable(MemoryServiceError):
    """The server cannot be reached, or cannot answer at the moment."""


class DeadlineExceeded(MemoryServiceError):
    """There was no answer in time."""


class Unauthenticated(MemoryServiceError):
    """The call carries no credential, or one that is not valid."""


class PermissionDenied(MemoryServiceError):
    """The credential does not allow this call on this namespace."""


class Internal(MemoryServiceError):
    """The server failed in a way it did not foresee."""


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
"""The class of each gRPC code; of any other code it is `MemoryServiceError` itself."""
