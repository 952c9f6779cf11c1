"""Decides which versions are listed, and which may be redacted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

import msgspec

from memory_service.data_model import UNATTRIBUTED, ChangeType, Provenance
from memory_service.errors import FailedPrecondition, NotFound
from memory_service.records.rules.presence import Found, live
from memory_service.records.versions import KeptVersion

T = TypeVar("T")

OF_ITEMS = (ChangeType.ITEM_DELETED, ChangeType.ITEM_EXPIRED)
"""Changes that remove an item."""
OF_STATES = (ChangeType.STATE_DELETED, ChangeType.STATE_EXPIRED)
"""Changes that remove a state."""
REMOVING = ", ".join(str(int(change)) for change in (*OF_ITEMS, *OF_STATES))
"""All of them as SQL; the index of removals has this condition."""
REDACTED = ""
"""The stored content of a redacted version. Any other content is JSON."""
EVERYTHING = 1 << 62
"""Above all revisions."""


class FoundVersion(Found, Protocol):
    """The current version of an item or a state."""

    @property
    def revision(self) -> int: ...


V = TypeVar("V", bound=FoundVersion)


def removed(
    revision: int, change: int, time_us: int | None, writer: str | None, credential_id: str | None
) -> KeptVersion[Any]:
    """Return a removal, with time, writer and credential if they are recorded."""
    removal = ChangeType(change)
    if time_us is None or removal in (ChangeType.ITEM_EXPIRED, ChangeType.STATE_EXPIRED):
        # With an expiry, the record says who set it, and when.
        return KeptVersion(revision, None, None, removal=removal)
    return KeptVersion(revision, time_us, Provenance(writer or "", credential_id or ""), removal=removal)


def newest(found: Iterable[KeptVersion[T]], limit: int) -> list[KeptVersion[T]]:
    """Return the newest of these versions and removals, newest first."""
    return sorted(found, key=lambda version: version.revision, reverse=True)[:limit]


def redacted(provenance: Provenance | None) -> Provenance | None:
    """Return what remains of the provenance of a redacted version."""
    if provenance is None:
        return None
    bare = msgspec.structs.replace(provenance, source_uri="", parent_ids=(), model="")
    return None if bare == UNATTRIBUTED else bare


def item_to_redact(namespace: str, item_id: str, revision: int, found: V | None, at_us: int) -> V:
    """Return the item of a version to redact. Raises NotFound and FailedPrecondition."""
    present = live(found, at_us)
    if present is None:
        raise NotFound.item(namespace, item_id)
    if present.revision == revision:
        raise FailedPrecondition.current_item_version(item_id, revision)
    return present


def check_state_to_redact(
    namespace: str, key: str, revision: int, found: FoundVersion | None, at_us: int
) -> None:
    """Check that a version of a state may be redacted. Raises NotFound and FailedPrecondition."""
    present = live(found, at_us)
    if present is None:
        raise NotFound.state(namespace, key)
    if present.revision == revision:
        raise FailedPrecondition.current_state_version(key, revision)
