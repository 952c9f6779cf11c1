"""Held writes."""

from __future__ import annotations

from memory_service.data_model import HeldWrite
from memory_service.errors import FailedPrecondition


def same_request(held: HeldWrite, other: HeldWrite) -> bool:
    """Return whether two held writes belong to one request; reject a reused id with another body."""
    if held.request is None or other.request is None or held.request.id != other.request.id:
        return False
    if held.request.digest != other.request.digest:
        raise FailedPrecondition.request_id_reused(other.request.id)
    return True
