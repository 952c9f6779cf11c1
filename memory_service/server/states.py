"""Conversion of state entries and changes to protobuf."""

from __future__ import annotations

import msgspec

from memory_service.data_model import ChangeType, StateEntry, StateWrite
from memory_service.domain.change_feed import Event
from memory_service.errors import InvalidArgument
from memory_service.runtime.clock import now_us
from memory_service.server.items import fill_item
from memory_service.server.json_values import encoded_value
from memory_service.server.values import fill_time, fill_value, to_json, to_us
from memory_service.v1 import memory_pb2, state_pb2


def fill_state(
    target: state_pb2.StateEntry, entry: StateEntry, *, value: bool = True, with_preview: bool = False
) -> None:
    """Set a protobuf entry."""
    target.key, target.version, target.size_bytes = entry.key, entry.version, entry.size_bytes
    target.description, target.revision = entry.description, entry.revision
    fill_time(target.update_time, entry.update_us)
    fill_time(target.create_time, entry.create_us)
    if entry.expire_us is not None:
        fill_time(target.expire_time, entry.expire_us)
    if value:
        fill_value(target.value, msgspec.json.decode(entry.value_json))
    if with_preview:
        target.preview = entry.preview


def state_bytes(entry: StateEntry) -> int:
    """Return the size of an entry in a response, with its value."""
    message = state_pb2.StateEntry()
    fill_state(message, entry, value=False)
    # Measure the value without building its message, which would take as long again.
    return message.ByteSize() + len(encoded_value(msgspec.json.decode(entry.value_json))) + 16


def to_state_write(field: str, entry: state_pb2.StateEntry) -> StateWrite:
    """Return the write of an imported entry."""
    if not entry.HasField("value"):
        raise InvalidArgument(f"{field}.value", "is required")
    value = to_json(f"{field}.value", entry.value)
    expire_us = to_us(f"{field}.expire_time", entry.expire_time) if entry.HasField("expire_time") else None
    encoded = msgspec.json.encode(value)
    nbytes = entry.value.ByteSize()
    return StateWrite(entry.key, encoded, now_us(), entry.description, expire_us, nbytes=nbytes)


def change_of(event: Event) -> memory_pb2.WatchResponse:
    """Return the message for an event."""
    response = memory_pb2.WatchResponse(revision=event.revision)
    if event.change is None:
        return response
    change = response.change
    change.type, change.revision = int(event.change.type), event.change.revision  # type: ignore[assignment]
    if event.change.type in _STATE_CHANGES:
        change.state_key = event.change.subject
    else:
        change.item_id = event.change.subject
    if event.item is not None:
        fill_item(change.item, event.item)
    if event.state is not None:
        fill_state(change.state, event.state)
    return response


_STATE_CHANGES = (
    ChangeType.STATE_SAVED,
    ChangeType.STATE_DELETED,
    ChangeType.STATE_EXPIRED,
    ChangeType.STATE_CLEARED,
)
