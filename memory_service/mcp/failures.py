"""Errors in words that a model can act on: what is wrong, and what to do next."""

from __future__ import annotations

from memory_client import (
    Conflict,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    LimitExceeded,
    MemoryServiceError,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)

_NEXT: tuple[tuple[type[MemoryServiceError], str], ...] = (
    (InvalidArgument, "Correct this argument and call again."),
    (Conflict, "It was changed meanwhile: read it, and write again with the version you read."),
    (NotFound, "List what there is (list_memories, load_state without a key, list_files), then call again."),
    (LimitExceeded, "Send less, or wait a moment and call again."),
    (FailedPrecondition, "Read the current state first, then call again."),
    (Unauthenticated, "Ask the user to set MEMORY_SERVICE_API_KEY for this MCP server; retrying is useless."),
    (PermissionDenied, "The credential of this MCP server does not allow it; ask the user, do not retry."),
    (DeadlineExceeded, "The memory server is busy or slow: call again later, and go on without it for now."),
    (Unavailable, "The memory server cannot answer now: call again later, and go on without it for now."),
)


class ToolFailure(Exception):
    """A failure with a text for the model."""


def text_of(error: MemoryServiceError, address: str) -> str:
    """Return the text for the model."""
    if isinstance(error, Unavailable) and not error.reason:
        return (
            f"No memory server answers at {address}. Ask the user to start it with: memory-service serve."
            " (Another address: set MEMORY_SERVICE_ADDRESS for this MCP server.) Until then go on without"
            " memory."
        )
    following = next((text for kind, text in _NEXT if isinstance(error, kind)), "")
    incident = error.metadata.get("incident")
    if incident:
        following = f"Report incident {incident} to the user; it is in the log of the memory server."
    return f"{str(error).rstrip('.')}. {following}".strip()
