"""Checkpoints and writes of LangGraph as items of the server.

An item's content is one message with a file, the serialized value; a value above 1 MB continues in further
items, its pieces. All items of a thread have the label "langgraph_thread".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memory_client.messages import BinaryPart, ChatMessage, Role
from memory_client.models import MemoryItem

THREAD = "langgraph_thread"
BRANCH = "langgraph_branch"
"""Label: a thread and a checkpoint namespace."""
CHECKPOINT = "langgraph_checkpoint"
"""Label: the id of the checkpoint's item, also on its writes and all pieces."""
RECORD = "langgraph_record"
"""Label: "checkpoint", "write" or "piece"."""
_PIECE_BYTES = 1_000_000
"""A file may have 1 MiB: more would not fit, less would need more items."""
_LABEL_BYTES_MAX = 256
_FILTERED_CHARACTERS_MAX = 1000

Place = tuple[str, str, str]
"""A thread, a checkpoint namespace and a checkpoint id."""
Typed = tuple[str, bytes]
"""What LangGraph's serializers return."""


def key_of(*parts: Any) -> str:
    """Return a text of bounded length for a list of texts and numbers."""
    return "lg_" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def thread_label(thread_id: str) -> str:
    """Return the value of the label for a thread: its id, unless that is too long for a label."""
    is_label = len(thread_id.encode(errors="replace")) <= _LABEL_BYTES_MAX and "\0" not in thread_id
    return thread_id if is_label else key_of(thread_id)


def items_of(
    id: str, place: Place, record: str, values: Sequence[Typed], metadata: Mapping[str, Any]
) -> list[MemoryItem]:
    """Return the item of a record, then those of its pieces."""
    data = b"".join(value for _, value in values)
    pieces = [data[start : start + _PIECE_BYTES] for start in range(0, len(data), _PIECE_BYTES)] or [b""]
    about = {
        "place": list(place),
        "values": [[type, len(value)] for type, value in values],
        "pieces": len(pieces),
        "checkpoint_id": place[2],
    }
    labels = {THREAD: thread_label(place[0]), BRANCH: key_of(*place[:2]), CHECKPOINT: key_of(*place)}
    return [
        MemoryItem(
            id=piece_id(id, number),
            content=ChatMessage(Role.SYSTEM, (BinaryPart(piece, "application/octet-stream"),)),
            labels={**labels, RECORD: "piece" if number else record},
            metadata={"number": number, "of": id} if number else {**about, **metadata},
            index="",
        )
        for number, piece in enumerate(pieces)
    ]


def piece_id(id: str, number: int) -> str:
    """Return the id of a piece; 0: the item itself."""
    return f"{id}_{number}" if number else id


def piece_ids(item: MemoryItem) -> list[str]:
    """Return the ids of the pieces that follow the item."""
    return [piece_id(item.id, number) for number in range(1, int(item.metadata["pieces"]))]


def values_of(item: MemoryItem, pieces: Iterable[MemoryItem]) -> list[Typed]:
    """Return the values of a record."""
    data = b"".join(_bytes_of(each) for each in (item, *pieces))
    values, start = [], 0
    for type, size in item.metadata["values"]:
        values.append((type, data[start : start + size]))
        start += size
    return values


def _bytes_of(item: MemoryItem) -> bytes:
    assert isinstance(item.content, ChatMessage)
    (part,) = item.content.parts
    assert isinstance(part, BinaryPart)
    return part.content


def place_of(item: MemoryItem) -> Place:
    """Return the place of a record."""
    thread_id, namespace, checkpoint_id = item.metadata["place"]
    return thread_id, namespace, checkpoint_id


def filtered(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those values of a checkpoint's metadata, or of a filter, that the server compares."""
    return {key: value for key, value in values.items() if _is_filtered(value)}


def _is_filtered(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _FILTERED_CHARACTERS_MAX
    return isinstance(value, int | float) and abs(value) <= 2**53
