"""Versions of items and states."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memory_client.models import MemoryItem, StateEntry


class VersionKind(StrEnum):
    """What became of a version, or how it was removed."""

    UNSPECIFIED = "unspecified"
    """A kind of a newer server."""
    CURRENT = "current"
    REPLACED = "replaced"
    REDACTED = "redacted"
    """Replaced, and its content was removed."""
    DELETED = "deleted"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemVersion:
    """A version of an item, or its removal."""

    revision: int
    """Revision of the namespace at which it was written or removed."""
    kind: VersionKind
    time: datetime | None
    """When it was written or deleted. None: not recorded."""
    writer: str
    """Name of the credential that wrote or deleted it. Empty: none, or not recorded."""
    credential_id: str
    """Id of that credential."""
    item: MemoryItem | None
    """The item in this version. None: redacted or removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVersion:
    """A version of a state, or its removal."""

    revision: int
    """Revision of the namespace at which it was written or removed."""
    version: int
    """Version of the key. 0: a removal."""
    kind: VersionKind
    time: datetime | None
    """When it was written or deleted. None: not recorded."""
    writer: str
    """Name of the credential that wrote or deleted it. Empty: none, or not recorded."""
    credential_id: str
    """Id of that credential."""
    entry: StateEntry | None
    """The entry in this version. None: redacted or removed."""
