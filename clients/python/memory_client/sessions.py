"""Sessions, as frozen dataclasses. All times are aware datetimes in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memory_client.models import Degradation


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOrigin:
    """What a session was copied from. It may have been changed or deleted since."""

    session_id: str
    until_item_id: str
    """The last item that was copied. Empty: none was."""
    revision: int
    """The revision of the namespace at which the items were read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation within a namespace."""

    session_id: str
    """Unique in its namespace."""
    title: str
    """Empty: none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    item_count: int
    """How many items it has that have not expired."""
    first_time: datetime | None
    """The earliest create_time of an item. None: there are no items."""
    last_time: datetime | None
    """The latest create_time of an item. None: there are no items."""
    version: int
    """Changes with each update of title, labels or metadata. 0: none of them was ever set."""
    update_time: datetime | None
    """When one of them was last set. None: never."""
    forked_from: SessionOrigin | None
    """None: it is no copy."""
    participants: tuple[str, ...] = ()
    """Names of those who spoke in its newest 1000 items, at most 100; only from `get_session`, else empty."""
    revision: int = 0
    """The revision of the namespace that the answer reflects; 0 in lists."""
    degraded: tuple[Degradation, ...] = ()
    """What the server could not do for this answer. Empty: nothing."""
