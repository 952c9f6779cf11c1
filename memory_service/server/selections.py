"""Conversion of conditions on items, duplicate handling and update masks."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import ItemKind, OnDuplicate
from memory_service.domain.item_writing import UPDATABLE
from memory_service.domain.retrieve_options import Selection
from memory_service.errors import InvalidArgument
from memory_service.server.provenance import to_sources
from memory_service.server.values import to_labels, to_paths, to_us
from memory_service.v1 import memory_pb2 as pb

_ON_DUPLICATE = {
    pb.ON_DUPLICATE_UNSPECIFIED: OnDuplicate.FAIL,
    pb.ON_DUPLICATE_FAIL: OnDuplicate.FAIL,
    pb.ON_DUPLICATE_SKIP: OnDuplicate.SKIP,
    pb.ON_DUPLICATE_REPLACE: OnDuplicate.REPLACE,
}
_CONTENT_KINDS = ("chat_message", "tool_call_result", "text", "data")
_OUTPUT_ONLY = ("id", "update_time", "revision", "provenance")

Conditions = pb.RetrieveOptions | pb.ListRequest | pb.DeleteWhereRequest | pb.DeleteWhereOperation


def to_on_duplicate(field: str, number: int) -> OnDuplicate:
    """Return the handling of duplicates. Raises InvalidArgument for `field` if the number is undefined."""
    found = _ON_DUPLICATE.get(number)  # type: ignore[call-overload]
    if found is None:
        raise InvalidArgument(field, f"has no value {number}")
    return found  # type: ignore[no-any-return]


def to_selection(message: Conditions, prefix: str = "") -> Selection:
    """Return the conditions of a request. Raises InvalidArgument for a field, named after `prefix`."""
    selection = Selection(message.session_id, filter=message.filter)
    if message.labels:
        selection.labels = to_labels(f"{prefix}labels", message.labels)
    if message.HasField("start_time"):
        selection.start_us = to_us(f"{prefix}start_time", message.start_time)
    if message.HasField("end_time"):
        selection.end_us = to_us(f"{prefix}end_time", message.end_time)
    if message.kinds:
        selection.kinds = _kinds(f"{prefix}kinds", message.kinds)
    return selection


def to_trusted_selection(message: pb.RetrieveOptions | pb.ListRequest, prefix: str = "") -> Selection:
    """Return the conditions of a read, which may also require trust and sources."""
    selection = to_selection(message, prefix)
    if message.HasField("min_trust"):
        selection.min_trust = message.min_trust
    if message.sources:
        selection.sources = to_sources(f"{prefix}sources", message.sources)
    return selection


def _kinds(field: str, numbers: Sequence[int]) -> frozenset[ItemKind]:
    try:
        return frozenset(map(ItemKind, set(numbers)))
    except ValueError as error:
        raise InvalidArgument(field, str(error)) from None


def update_fields(prefix: str, request: pb.UpdateRequest | pb.UpdateOperation) -> frozenset[str]:
    """Return the fields that an update changes; all types of content count as one field."""
    paths = to_paths(request.update_mask, {*UPDATABLE, *_CONTENT_KINDS})
    if paths == ["*"]:
        # A full replacement sets the expiry once, by either of the two fields.
        return UPDATABLE - ({"expire_time"} if request.item.HasField("ttl") else {"ttl"})
    if not paths:
        paths = [field.name for field, _ in request.item.ListFields() if field.name not in _OUTPUT_ONLY]
    found = {"content" if path in _CONTENT_KINDS else path for path in paths}
    if unknown := found - UPDATABLE:
        raise InvalidArgument(f"{prefix}update_mask", f"cannot change {sorted(unknown)[0]!r}")
    return frozenset(found)
