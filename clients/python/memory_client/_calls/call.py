"""A call: its method, its request and how to read its response."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

T = TypeVar("T")
R = TypeVar("R", bound=Message)


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request to one method, answered by one response or a stream."""

    method: str
    """Full name, as in "/memory_service.v1.MemoryService/Add"."""
    request: Any
    """The request, a protobuf message. For an upload: one with its namespace that is not sent."""
    response_type: type[Message]
    """Type of the response, or of each response of a stream."""
    read: Callable[[Any], T]
    """Converts a response to what the caller gets."""

    @property
    def namespace(self) -> str:
        """The namespace of the call. Empty: none."""
        return getattr(self.request, "namespace", "")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of an answer."""

    entries: list[T]
    next_page_token: str
    response: Any
    """The whole response, with facts besides the entries."""


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """One message of a stream that can be resumed."""

    value: T | None
    """What the caller gets. None: a heartbeat."""
    revision: int
    """Revision up to which everything has been sent, from which to resume."""
    key: Hashable
    """Identifies this event among those sent since that revision."""


def paged(call: Call[Page[T]], page: Page[T]) -> Call[Page[T]] | None:
    """Return the call for the page after `page`. None: it was the last."""
    if not page.next_page_token:
        return None
    request = type(call.request)()
    request.CopyFrom(call.request)
    holder = request.options if "options" in request.DESCRIPTOR.fields_by_name else request
    holder.page_token = page.next_page_token
    if "request_id" in request.DESCRIPTOR.fields_by_name:
        request.request_id = request_id_or_new(None)  # Each page of a write is a write.
    return Call(call.method, request, call.response_type, call.read)


def request_id_or_new(request_id: str | None) -> str:
    """Return the caller's request id or a new one, so that every write can be retried safely."""
    return request_id if request_id is not None else str(uuid.uuid4())
