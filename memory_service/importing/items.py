"""Items and state entries in JSON, as `memory-service export` writes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memory_client import MemoryItem, StateEntry
from memory_client.protojson import entry_from_json, item_from_json
from memory_service.importing.identity import derived_id

_ITEM_KIND = "ITEM_KIND_"


def record_of(data: dict[str, Any], session_id: str, position: int) -> MemoryItem | StateEntry:
    """Read a record in protobuf's JSON: an item or a state entry, depending on "kind".

    Args:
        data: The record. Without a "kind" it is an item.
        session_id: Session of an item without one.
        position: Position of the record in its file, from 1, for the id of an item without one.

    Raises:
        ValueError: A field is unknown or malformed, or the content is missing.
    """
    fields = dict(data)
    kind = fields.get("kind", "item")
    if kind in ("item", "state"):
        fields.pop("kind", None)
    elif str(kind).startswith(_ITEM_KIND):
        # The item kind of a service replaces "item".
        kind = "item"
    if kind == "state":
        if not fields.get("key"):
            raise ValueError('a state entry needs a "key"')
        return entry_from_json(fields)
    if kind != "item":
        raise ValueError(f'"kind" is "item" or "state", not {kind!r}')
    item = item_from_json(fields)
    if item.content is None:
        raise ValueError('an item needs "text", "data", "chat_message" or "tool_call_result"')
    session_id = item.session_id or session_id
    return replace(item, session_id=session_id, id=item.id or derived_id(session_id, position, fields))
