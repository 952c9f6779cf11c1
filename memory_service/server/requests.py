"""Common parts of requests: request ids, optional fields, modes."""

from __future__ import annotations

import hashlib
from typing import Any

from google.protobuf.message import Message

from memory_service.data_model import RequestKey, RetrieveMode
from memory_service.errors import InvalidArgument
from memory_service.runtime.yielding import give_way

_MODES = {int(mode): mode for mode in RetrieveMode}
_LARGE_BYTES = 64 * 1024
"""A larger request is digested in its own slice. Doubled: slices of the event loop get 1 ms longer."""


async def request_key(request_id: str, request: Message) -> RequestKey | None:
    """Return the request id and a digest of the body; None if there is no id.

    Gives way before and after a large request, because the keys of its maps are sorted.
    """
    if not request_id:
        return None
    is_large = request.ByteSize() > _LARGE_BYTES
    if is_large:
        await give_way()
    digest = hashlib.blake2b(type(request).__name__.encode() + b"\0", digest_size=16)
    digest.update(request.SerializeToString(deterministic=True))
    if is_large:
        await give_way()
    return RequestKey(request_id, digest.digest())


def optional(message: Message, field: str) -> Any:
    """Return the value of a field; None if it is unset."""
    return getattr(message, field) if message.HasField(field) else None


def to_mode(field: str, number: int) -> RetrieveMode:
    """Return the mode of a search. Raises InvalidArgument for `field` if the number is undefined."""
    mode = _MODES.get(number)
    if mode is None:
        raise InvalidArgument(field, f"has no value {number}")
    return mode
