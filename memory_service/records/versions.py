"""The contract for reading and redacting versions of items and states.

`UndoStore` says how long replaced versions are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

from memory_service.data_model import ChangeType, Item, Provenance, StateEntry
from memory_service.runtime.caller import ANYBODY, Caller

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class KeptVersion(Generic[T]):
    """A version of an item or a state, or its removal.

    `time_us` is when it was written or deleted; None: not recorded. `provenance` has at least its writer.
    """

    revision: int
    time_us: int | None
    provenance: Provenance | None
    record: T | None = None
    """The version; None if it was redacted or removed."""
    removal: ChangeType | None = None
    """The change that removed it; None: this is a version."""
    current: bool = False
    number: int = 0
    """The version of a state."""


class VersionStore(ABC):
    """Versions of items and states."""

    @abstractmethod
    async def item_versions(
        self, namespace: str, item_id: str, before_revision: int | None, limit: int, *, now_us: int
    ) -> list[KeptVersion[Item]]:
        """Return up to `limit` versions and removals of an item below a revision, newest first.

        These are the current version, those kept since they were replaced, none of them if the item has
        expired at `now_us`, and all removals of items with this id since the last reset. A deletion has a
        time and a writer as long as it is recorded; an expiry never. Without embeddings. MUST NOT read
        contents beyond the limit.
        """

    @abstractmethod
    async def state_versions(
        self, namespace: str, key: str, before_revision: int | None, limit: int, *, now_us: int
    ) -> list[KeptVersion[StateEntry]]:
        """Return versions and removals of a state likewise, without removals of all keys at once."""

    @abstractmethod
    async def redact_item_version(
        self, namespace: str, item_id: str, revision: int, *, now_us: int, by: Caller = ANYBODY
    ) -> int:
        """Remove the content of a kept version and return the namespace's revision, which MUST stay.

        What remains of it are its revision, times, writer, source and trust. Answers that mention the item
        MUST be forgotten. No undo MUST restore the version. Redacting it again changes nothing. MUST raise
        NotFound if the item does not exist, or has expired at `now_us`, or has no such version, and
        FailedPrecondition if it is the current one.
        """

    @abstractmethod
    async def redact_state_version(
        self, namespace: str, key: str, revision: int, *, now_us: int, by: Caller = ANYBODY
    ) -> int:
        """Remove value and description of a kept version of a state, likewise."""
