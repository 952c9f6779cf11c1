"""Errors in terms of the domain, independent of gRPC.

    MemoryServiceError
    ├── InvalidArgument        the request is wrong; it names the field
    ├── LimitExceeded          a value is over a limit
    ├── Overloaded             too much to do at the moment; retry later
    ├── NotFound               no such item, state, namespace
    ├── AlreadyExists          the id is taken
    ├── Conflict               a compare-and-set met another version
    ├── FailedPrecondition     the current state does not allow the request
    │   └── WriteRejected      the server's write policy rejects it
    ├── Unauthenticated        no credential, or an invalid one
    ├── PermissionDenied       the credential does not permit this
    ├── Unavailable            a required service does not respond; retry
    ├── StorageFull            the disk is full
    └── Unsupported            this server or store does not offer it

`reason` is the name of a value of the proto's ErrorReason without its prefix.
"""

from __future__ import annotations


class MemoryServiceError(Exception):
    """An error that a caller may see: its text and metadata hold no secrets, paths or driver messages."""

    def __init__(self, reason: str, message: str, **metadata: str | int) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.metadata = {key: str(value) for key, value in metadata.items()}
        self.retry_after_s: float | None = None

    def name_field(self, field: str) -> None:
        """Name the field that the error is about, in metadata and text, unless it already names one."""
        if "field" not in self.metadata:
            self.metadata["field"] = field
            self.message = f"{field}: {self.message}"
            self.args = (self.message,)


class InvalidArgument(MemoryServiceError):
    """A field of the request is missing, malformed or out of range."""

    def __init__(
        self, field: str, problem: str, *, reason: str = "INVALID_FIELD", **metadata: str | int
    ) -> None:
        super().__init__(reason, f"{field}: {problem}", field=field, **metadata)
        self.field = field
        self.problem = problem

    @classmethod
    def dimension(cls, field: str, expected: int, actual: int) -> InvalidArgument:
        """Return the error for a vector of another dimension than the namespace's."""
        problem = f"has {actual} values, but the namespace holds vectors of {expected}"
        return cls(field, problem, reason="DIMENSION_MISMATCH", expected=expected, actual=actual)

    @classmethod
    def page_token(cls, field: str = "page_token") -> InvalidArgument:
        """Return the error for a page token that was not issued for this request."""
        return cls(field, "was not issued for this request", reason="INVALID_PAGE_TOKEN")


class LimitExceeded(MemoryServiceError):
    """A value is over a limit."""

    def __init__(self, field: str, limit_name: str, limit: int, actual: int) -> None:
        super().__init__(
            "LIMIT_EXCEEDED",
            f"{field}: {actual} is over the limit of {limit} ({limit_name})",
            field=field,
            limit_name=limit_name,
            limit=limit,
            actual=actual,
        )
        self.field = field


class Overloaded(MemoryServiceError):
    """The server is overloaded, or a caller uses more than its share."""

    def __init__(
        self,
        limit_name: str,
        limit: int,
        # Longer than a refusal is delayed, which is subtracted: some clients read 0 as "no delay".
        retry_after_s: float = 0.6,
        *,
        problem: str = "the server is busy",
    ) -> None:
        super().__init__(
            "OVERLOADED",
            f"{problem}: {limit_name} of {limit} is reached",
            limit_name=limit_name,
            limit=limit,
        )
        self.retry_after_s: float = retry_after_s
        self.problem = problem

    @classmethod
    def too_many_calls(cls, limit: int, retry_after_s: float) -> Overloaded:
        """Return the error for a caller over its rate limit, whatever the load of the server."""
        return cls("calls_per_s_max", limit, retry_after_s, problem="too many calls")


class NotFound(MemoryServiceError):
    """The requested object does not exist."""

    @classmethod
    def item(cls, namespace: str, item_id: str, why: str = "") -> NotFound:
        """Return the error for an item id that the namespace does not have; `why` replaces the text."""
        message = why or f"no item {item_id!r} in {namespace!r}"
        return cls("ITEM_NOT_FOUND", message, namespace=namespace, id=item_id)

    @classmethod
    def state(cls, namespace: str, key: str) -> NotFound:
        """Return the error for a state key that the namespace does not have."""
        return cls("STATE_NOT_FOUND", f"no state {key!r} in {namespace!r}", namespace=namespace, key=key)

    @classmethod
    def item_version(cls, namespace: str, item_id: str, revision: int, *, redacted: bool = False) -> NotFound:
        """Return the error for a version of an item that is not kept or was redacted."""
        message = f"no version of item {item_id!r} in {namespace!r} is kept from revision {revision}"
        if redacted:
            message = (
                f"the version of item {item_id!r} in {namespace!r} from revision {revision} was redacted"
            )
        return cls("VERSION_NOT_FOUND", message, namespace=namespace, id=item_id, revision=revision)

    @classmethod
    def state_version(cls, namespace: str, key: str, revision: int, *, redacted: bool = False) -> NotFound:
        """Return the error for a version of a state that is not kept or was redacted."""
        message = (
            f"no version of state {key!r} in {namespace!r} is kept from revision {revision}"
            " (a revision of the namespace, not the state's version)"
        )
        if redacted:
            message = f"the version of state {key!r} in {namespace!r} from revision {revision} was redacted"
        return cls("VERSION_NOT_FOUND", message, namespace=namespace, key=key, revision=revision)

    @classmethod
    def memory(cls, namespace: str, memory_id: str) -> NotFound:
        """Return the error for a memory id that the namespace does not have."""
        message = f"no memory {memory_id!r} in {namespace!r}"
        return cls("MEMORY_NOT_FOUND", message, namespace=namespace, id=memory_id)

    @classmethod
    def document(cls, namespace: str, document_id: str) -> NotFound:
        """Return the error for a document id that the namespace does not have."""
        message = f"no document {document_id!r} in {namespace!r}"
        return cls("DOCUMENT_NOT_FOUND", message, namespace=namespace, id=document_id)

    @classmethod
    def session(cls, namespace: str, session_id: str) -> NotFound:
        """Return the error for a session id that the namespace does not have."""
        message = f"no session {session_id!r} in {namespace!r}"
        return cls("SESSION_NOT_FOUND", message, namespace=namespace, id=session_id)

    @classmethod
    def file(cls, namespace: str, path: str, why: str = "") -> NotFound:
        """Return the error for a path at which the namespace has no file; `why` replaces the text."""
        message = why or f"no file {path!r} in {namespace!r}"
        return cls("FILE_NOT_FOUND", message, namespace=namespace, path=path)

    @classmethod
    def file_version(cls, namespace: str, path: str, version: int, *, redacted: bool = False) -> NotFound:
        """Return the error for a version of a file that is not kept or was redacted."""
        message = f"no version {version} of file {path!r} in {namespace!r} is kept"
        if redacted:
            message = f"version {version} of file {path!r} in {namespace!r} was redacted"
        return cls("VERSION_NOT_FOUND", message, namespace=namespace, path=path, version=version)

    @classmethod
    def quarantined(cls, namespace: str, held_id: str) -> NotFound:
        """Return the error for a quarantine id that the namespace does not have."""
        message = f"no write {held_id!r} in the quarantine of {namespace!r}"
        return cls("QUARANTINED_NOT_FOUND", message, namespace=namespace, id=held_id)

    @classmethod
    def namespace(cls, namespace: str) -> NotFound:
        """Return the error for a namespace that was never written to."""
        return cls("NAMESPACE_NOT_FOUND", f"no namespace {namespace!r}", namespace=namespace)


class AlreadyExists(MemoryServiceError):
    """An item, a state or a file with this name already exists."""

    @classmethod
    def item(cls, namespace: str, item_id: str, *, reason: str = "ITEM_ALREADY_EXISTS") -> AlreadyExists:
        """Return the error for the id of an item."""
        return cls(reason, f"an item {item_id!r} exists in {namespace!r}", namespace=namespace, id=item_id)

    @classmethod
    def state(cls, namespace: str, key: str) -> AlreadyExists:
        """Return the error for the key of a state."""
        return cls(
            "STATE_ALREADY_EXISTS", f"a state {key!r} exists in {namespace!r}", namespace=namespace, key=key
        )

    @classmethod
    def path(cls, namespace: str, path: str, what: str) -> AlreadyExists:
        """Return the error for a path that is taken by "a file" or "a folder"."""
        message = f"{what} {path!r} exists in {namespace!r}"
        return cls("FILE_ALREADY_EXISTS", message, namespace=namespace, path=path)

    @classmethod
    def document(cls, namespace: str, document_id: str) -> AlreadyExists:
        """Return the error for a document id taken by another document or an item of another kind."""
        return cls.item(namespace, document_id, reason="DOCUMENT_ALREADY_EXISTS")

    @classmethod
    def session(cls, namespace: str, session_id: str) -> AlreadyExists:
        """Return the error for a session id that is taken."""
        message = f"a session {session_id!r} exists in {namespace!r}"
        return cls("SESSION_ALREADY_EXISTS", message, namespace=namespace, id=session_id)


class Conflict(MemoryServiceError):
    """A compare-and-set found another version than expected."""

    @classmethod
    def version(cls, key: str, expected: int, current: int) -> Conflict:
        """Return the error for a state at another version; current 0 means that it does not exist."""
        return cls(
            "VERSION_MISMATCH",
            f"state {key!r} is at version {current}, not {expected}",
            key=key,
            expected_version=expected,
            current_version=current,
        )

    @classmethod
    def memory_version(cls, memory_id: str, expected: int, current: int) -> Conflict:
        """Return the error for a memory at another version."""
        return cls(
            "VERSION_MISMATCH",
            f"memory {memory_id!r} is at version {current}, not {expected}",
            id=memory_id,
            expected_version=expected,
            current_version=current,
        )

    @classmethod
    def document_version(cls, document_id: str, expected: int, current: int) -> Conflict:
        """Return the error for a document at another version; current 0 means that it does not exist."""
        return cls(
            "VERSION_MISMATCH",
            f"document {document_id!r} is at version {current}, not {expected}",
            id=document_id,
            expected_version=expected,
            current_version=current,
        )

    @classmethod
    def settings_version(cls, namespace: str, expected: int, current: int) -> Conflict:
        """Return the error for settings of a namespace at another version."""
        return cls(
            "VERSION_MISMATCH",
            f"the settings of {namespace!r} are at version {current}, not {expected}",
            namespace=namespace,
            expected_version=expected,
            current_version=current,
        )

    @classmethod
    def session_version(cls, session_id: str, expected: int, current: int) -> Conflict:
        """Return the error for a session at another version; current 0 means that nothing was ever set."""
        return cls(
            "VERSION_MISMATCH",
            f"session {session_id!r} is at version {current}, not {expected}",
            id=session_id,
            expected_version=expected,
            current_version=current,
        )

    @classmethod
    def file_version(cls, path: str, expected: int, current: int) -> Conflict:
        """Return the error for a file at another version; current 0 means that it does not exist."""
        return cls(
            "VERSION_MISMATCH",
            f"file {path!r} is at version {current}, not {expected}",
            path=path,
            expected_version=expected,
            current_version=current,
        )

    @classmethod
    def file_digest(cls, path: str, expected: str, current: int, digest: str) -> Conflict:
        """Return the error for a file with another content; current 0 means that it does not exist."""
        found = {"current_sha256": digest} if digest else {}
        return cls(
            "VERSION_MISMATCH",
            f"the content of {path!r} at version {current} has another SHA-256",
            path=path,
            expected_sha256=expected,
            current_version=current,
            **found,
        )

    @classmethod
    def revision(cls, item_id: str, expected: int, current: int) -> Conflict:
        """Return the error for an item at another revision."""
        return cls(
            "REVISION_MISMATCH",
            f"item {item_id!r} is at revision {current}, not {expected}",
            id=item_id,
            expected_revision=expected,
            current_revision=current,
        )

    @classmethod
    def changed_since(cls, expected: int, current: int) -> Conflict:
        """Return the error for a write whose basis has changed since this revision of the namespace."""
        return cls(
            "REVISION_MISMATCH",
            f"the data has changed since revision {expected}; the namespace is at {current}",
            expected_revision=expected,
            current_revision=current,
        )


class FailedPrecondition(MemoryServiceError):
    """The current state of the server or namespace does not allow the request."""

    @classmethod
    def request_id_reused(cls, request_id: str) -> FailedPrecondition:
        """Return the error for a request id that was used with another request."""
        return cls(
            "REQUEST_ID_REUSED",
            f"request_id {request_id!r} was used for another request",
            request_id=request_id,
        )

    @classmethod
    def current_item_version(cls, item_id: str, revision: int) -> FailedPrecondition:
        """Return the error for the redaction of an item's current version."""
        message = f"revision {revision} is the current version of item {item_id!r}"
        return cls("VERSION_IS_CURRENT", message, id=item_id, revision=revision)

    @classmethod
    def current_state_version(cls, key: str, revision: int) -> FailedPrecondition:
        """Return the error for the redaction of a state's current version."""
        message = f"revision {revision} is the current version of state {key!r}"
        return cls("VERSION_IS_CURRENT", message, key=key, revision=revision)

    @classmethod
    def current_file_version(cls, path: str, version: int) -> FailedPrecondition:
        """Return the error for the redaction of a file's current version."""
        message = f"{version} is the current version of file {path!r}"
        return cls("VERSION_IS_CURRENT", message, path=path, version=version)

    @classmethod
    def folder_not_empty(cls, namespace: str, path: str) -> FailedPrecondition:
        """Return the error for a folder that is deleted without `recursive`."""
        message = f"{path!r} is a folder: set `recursive` to delete all files below it"
        return cls("FOLDER_NOT_EMPTY", message, namespace=namespace, path=path)

    @classmethod
    def occurrences(cls, path: str, count: int, lines: str) -> FailedPrecondition:
        """Return the error for a text that does not occur exactly once; `lines` are those where it does."""
        where = f" (in lines {lines})" if lines else ""
        message = f"old_text occurs {count} times in {path!r}{where}, not exactly once"
        return cls("OCCURRENCE_MISMATCH", message, path=path, occurrences=count, lines=lines)

    @classmethod
    def embedder_required(cls, why: str) -> FailedPrecondition:
        """Return the error for a text that needs an embedder where there is none."""
        return cls("EMBEDDER_REQUIRED", why)

    @classmethod
    def llm_required(cls) -> FailedPrecondition:
        """Return the error for a request that requires a language model on a server without one."""
        return cls("LLM_REQUIRED", "the server runs without a language model")


class WriteRejected(FailedPrecondition):
    """The server's write policy refuses a write. `why` is the policy's reason, never content."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__("WRITE_REJECTED", f"{field}: {why}", field=field)
        self.field = field


class Unauthenticated(MemoryServiceError):
    """The call has no credential, or an unknown, expired, revoked or forged one; it does not say which."""

    def __init__(self) -> None:
        super().__init__("UNAUTHENTICATED", "a valid credential is required")


class PermissionDenied(MemoryServiceError):
    """The credential does not permit this call. The error does not reveal whether the object exists."""

    def __init__(self) -> None:
        super().__init__("PERMISSION_DENIED", "the credential does not permit this call")


class Unavailable(MemoryServiceError):
    """A dependency does not respond."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(reason, message)
        self.retry_after_s = 1.0

    @classmethod
    def storage(cls) -> Unavailable:
        """Return the error for records that could not be read or written."""
        return cls("STORAGE_UNAVAILABLE", "the records cannot be read or written at the moment")

    @classmethod
    def embedder(cls) -> Unavailable:
        """Return the error for an embedder that did not respond."""
        return cls("EMBEDDER_UNAVAILABLE", "the embedder does not answer")

    @classmethod
    def llm(cls, why: str) -> Unavailable:
        """Return the error for a language model that gave no usable answer."""
        return cls("LLM_UNAVAILABLE", f"the language model gave no usable answer: {why}")

    @classmethod
    def shutting_down(cls) -> Unavailable:
        """Return the error for a call to a server that is stopping."""
        return cls("SHUTTING_DOWN", "the server is stopping")


class StorageFull(MemoryServiceError):
    """The disk is full."""

    def __init__(self) -> None:
        super().__init__("STORAGE_FULL", "the disk is full; nothing was written")


class Unsupported(MemoryServiceError):
    """This server or store does not offer the requested operation."""

    def __init__(self, feature: str, message: str) -> None:
        super().__init__("UNSUPPORTED", message, feature=feature)
