"""The dictionaries of `MemoryManager`, to and from messages of the service."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from memory_client._gen.memory_service.v1 import interaction_pb2 as pb
from memory_client.values import struct_from, struct_to

logger = logging.getLogger("memory_client.memory_manager")

_TEXT_BYTES = 64 * 1024
_NAME_BYTES = 256
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_SECOND = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""From these numbers on, a timestamp counts nanoseconds, microseconds and milliseconds. As seconds, 1e11 is
the year 5138; as milliseconds, it is 1973."""


def content_of(text: Any) -> str:
    """Return a text as the server takes it: not empty, and at most 64 KiB.

    Raises:
        TypeError: It is not a text.
    """
    if not isinstance(text, str):
        raise TypeError(f"the content is a {type(text).__name__}, not a text")
    cut = cut_to(text, _TEXT_BYTES)
    if len(cut) < len(text):
        logger.warning("a text of %d characters was cut to %d", len(text), len(cut))
    return cut or " "


def cut_to(text: str, bytes_max: int) -> str:
    """Return the beginning of a text, without halves of surrogate pairs."""
    return text.encode("utf-8", "replace")[:bytes_max].decode(errors="ignore")


def sender_of(sender: Any) -> str:
    """Return the name of a sender as the server takes it."""
    plain = "".join(char for char in str(sender) if char.isprintable())
    return cut_to(plain, _NAME_BYTES).strip() or "unknown"


def noted(content: str, timestamp: Any = None) -> dict[str, Any]:
    """Return metadata for what the fields of a message cannot hold: an exact timestamp, an empty content."""
    notes: dict[str, Any] = {} if content.strip() else {"content": content}
    if timestamp is not None:
        is_number = isinstance(timestamp, (int, float)) and math.isfinite(timestamp)
        notes["timestamp"] = timestamp if is_number and abs(timestamp) <= 2**53 else str(timestamp)
    return notes


def time_of(timestamp: Any) -> Timestamp | None:
    """Return a time: a number of seconds, milliseconds or less since the epoch, ISO 8601, or a datetime.

    Without a zone it is local. None: it is not a time.
    """
    try:
        micros = _micros_of(timestamp)
        message = Timestamp()
        message.FromMicroseconds(micros)
    except (ValueError, TypeError, OverflowError, OSError):
        logger.warning("%.100r is not a time: the current time is stored", timestamp)
        return None
    return message


def _micros_of(timestamp: Any) -> int:
    if isinstance(timestamp, str):
        try:
            timestamp = float(timestamp)
        except ValueError:
            timestamp = datetime.fromisoformat(timestamp)
    if isinstance(timestamp, datetime):
        return (timestamp.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    if isinstance(timestamp, bool) or not isinstance(timestamp, (int, float)):
        raise TypeError
    unit = next((unit for least, unit in _PER_SECOND if abs(timestamp) >= least), 1.0)
    return round(timestamp * (1_000_000 / unit))


def original_of(message: Mapping[str, Any]) -> pb.OriginalMessage | None:
    """Return what is known of a message; None if its content is not.

    Raises:
        TypeError: It is not a dictionary.
    """
    if not isinstance(message, Mapping):
        raise TypeError(f"the message is a {type(message).__name__}, not a dictionary")
    if "content" not in message:
        return None
    return pb.OriginalMessage(
        content=content_of(message["content"]),
        sender=sender_of(message["sender"]) if message.get("sender") else "",
        create_time=time_of(message["timestamp"]) if message.get("timestamp") else None,
    )


def metadata_from(notes: Mapping[str, Any]) -> Any:
    """Return metadata as protobuf takes it."""
    return struct_from(notes, "metadata")


def interaction_of(pair: pb.InteractionPair) -> dict[str, Any]:
    """Return the dictionary of a message and its first response."""
    return {
        "id": pair.message.id,
        "content": _content_in(pair.message),
        "metadata": {
            "source": pair.message.sender,
            "timestamp": _timestamp_in(pair.message),
            "type": "user_message",
        },
        "response": _content_in(pair.responses[0]) if pair.responses else "",
    }


def _content_in(message: pb.Interaction) -> str:
    stored = struct_to(message.metadata).get("content")
    return stored if isinstance(stored, str) and not message.content.strip() else message.content


def _timestamp_in(message: pb.Interaction) -> Any:
    """Return the timestamp stored with a message, if that is its time."""
    micros = message.create_time.ToMicroseconds()
    stored = struct_to(message.metadata).get("timestamp")
    try:
        return stored if stored is not None and _micros_of(stored) == micros else micros / 1_000_000
    except (ValueError, TypeError, OverflowError, OSError):
        return stored
