"""What all servicers read off a request: by what it is known again, fields that may be unset, modes."""

from __future__ import annotations

import hashlib
from typing import Any

from google.protobuf.message import Message

from memory_service.data_model import RequestKey, RetrieveMode
from memory_service.errors import InvalidArgument
from memory_service.runtime.yielding import give_way

_MODES = {int(mode): mode for mode in RetrieveMode}
_LARGE_BYTES = 64 * 1024
"""Of a request that is digested by itself. Doubled, a piece of the event loop's time gets 1 ms longer."""


async def request_key(request_id: str, request: Message) -> RequestKey | None:
    """Return the id of a request and a digest of its body; None when it has no id.

    Others come before and after, if it is large: the keys of its maps are sorted.
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
    """Return the value of a field; None: it is unset."""
    return getattr(message, field) if message.HasField(field) else None


def to_mode(field: str, number: int) -> RetrieveMode:
    """Return the mode of a search. Raises InvalidArgument, of `field`, for a number without a meaning."""
    mode = _MODES.get(number)
    if mode is None:
        raise InvalidArgument(field, f"has no value {number}")
    return mode
