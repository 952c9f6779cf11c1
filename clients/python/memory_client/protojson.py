"""Items, state entries and operations as JSON, in protobuf's mapping, with the field names of the protos.

Times are RFC 3339, bytes are base64, 64-bit integers are strings. Reading also takes camelCase.
"""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message

from memory_client._gen.memory_service.v1 import memory_pb2, state_pb2
from memory_client._operations_json import operation_to
from memory_client.convert import entry_from, entry_to, item_from, item_to
from memory_client.models import MemoryItem, StateEntry
from memory_client.operations import WriteOperation

M = TypeVar("M", bound=Message)


def item_to_json(item: MemoryItem) -> dict[str, Any]:
    """Return the item as a JSON object, without unset fields."""
    return json_format.MessageToDict(item_from(item), preserving_proto_field_name=True)


def item_from_json(data: dict[str, Any]) -> MemoryItem:
    """Read an item.

    Raises:
        ValueError: A field is unknown or malformed.
    """
    return item_to(_parse(data, memory_pb2.MemoryItem()))


def entry_to_json(entry: StateEntry) -> dict[str, Any]:
    """Return the state entry as a JSON object, without unset fields other than `value`."""
    return json_format.MessageToDict(entry_from(entry), preserving_proto_field_name=True)


def entry_from_json(data: dict[str, Any]) -> StateEntry:
    """Read a state entry.

    Raises:
        ValueError: A field is unknown or malformed.
    """
    return entry_to(_parse(data, state_pb2.StateEntry()))


def operation_from_json(data: dict[str, Any]) -> WriteOperation:
    """Read an operation of a batch.

    Raises:
        ValueError: A field is unknown, malformed or missing.
    """
    return operation_to(_parse(data, memory_pb2.WriteOperation()))


def _parse(data: dict[str, Any], message: M) -> M:
    try:
        return json_format.ParseDict(data, message)
    except json_format.ParseError as error:
        raise ValueError(str(error)) from None
