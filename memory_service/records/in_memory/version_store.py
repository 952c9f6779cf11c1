"""Versions of items and states in the in-memory store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from memory_service.data_model import Item, StateEntry
from memory_service.errors import NotFound
from memory_service.records.in_memory.namespace import Namespace
from memory_service.records.rules.presence import live
from memory_service.records.rules.requests import of_item, of_state
from memory_service.records.rules.versions import (
    EVERYTHING,
    OF_ITEMS,
    OF_STATES,
    check_state_to_redact,
    item_to_redact,
    newest,
    removed,
)
from memory_service.records.versions import KeptVersion, VersionStore
from memory_service.runtime.caller import ANYBODY, Caller

T = TypeVar("T")


class InMemoryVersionStore(VersionStore):
    """Reads versions from the history of a namespace, and removals from its changes."""

    _namespaces: dict[str, Namespace]

    async def item_versions(
        self, namespace: str, item_id: str, before_revision: int | None, limit: int, *, now_us: int
    ) -> list[KeptVersion[Item]]:
        found = self._namespaces.get(namespace)
        if found is None:
            return []
        every: list[KeptVersion[Item]] = [
            removed(*removal) for removal in _removals(found, item_id, OF_ITEMS)
        ]
        item = live(found.items.get(item_id), now_us)
        if item is not None:
            every.append(KeptVersion(item.revision, item.update_us, item.provenance, item, current=True))
            every += [
                KeptVersion(v.number, v.update_us, v.provenance, kept.item if kept else None)
                for _, v, kept in found.history.items.get(item_id, ())
            ]
        return _below(every, before_revision, limit)

    async def state_versions(
        self, namespace: str, key: str, before_revision: int | None, limit: int, *, now_us: int
    ) -> list[KeptVersion[StateEntry]]:
        found = self._namespaces.get(namespace)
        if found is None:
            return []
        every: list[KeptVersion[StateEntry]] = [
            removed(*removal) for removal in _removals(found, key, OF_STATES)
        ]
        entry = live(found.states.get(key), now_us)
        if entry is not None:
            every.append(_of_state(entry, entry.revision, current=True))
            every += [
                _of_state(kept, v.revision) if kept else
                KeptVersion(v.revision, v.update_us, v.provenance, number=v.number)
                for _, v, kept in found.history.states.get(key, ())
            ]  # fmt: skip
        return _below(every, before_revision, limit)

    async def redact_item_version(
        self, namespace: str, item_id: str, revision: int, *, now_us: int, by: Caller = ANYBODY
    ) -> int:
        found = self._namespaces.get(namespace)
        item_to_redact(namespace, item_id, revision, found.items.get(item_id) if found else None, now_us)
        assert found is not None
        if not any(version.number == revision for version in found.history.items.before(item_id)):
            raise NotFound.item_version(namespace, item_id, revision)
        found.history.items.redact(item_id, revision)
        found.requests.forget_told_of(of_item(item_id))
        return found.revision

    async def redact_state_version(
        self, namespace: str, key: str, revision: int, *, now_us: int, by: Caller = ANYBODY
    ) -> int:
        found = self._namespaces.get(namespace)
        check_state_to_redact(namespace, key, revision, found.states.get(key) if found else None, now_us)
        assert found is not None
        wanted = [v.number for v in found.history.states.before(key) if v.revision == revision]
        if not wanted:
            raise NotFound.state_version(namespace, key, revision)
        found.history.states.redact(key, wanted[0])
        found.requests.forget_told_of(of_state(key))
        return found.revision


def _of_state(entry: StateEntry, revision: int, *, current: bool = False) -> KeptVersion[StateEntry]:
    return KeptVersion(
        revision, entry.update_us, entry.provenance, entry, current=current, number=entry.version
    )


def _removals(
    found: Namespace, subject: str, types: tuple[int, ...]
) -> Iterator[tuple[int, int, int | None, str | None, str | None]]:
    """Yield the removals of an item or a state, each with time and writer, if they are recorded."""
    for change in found.changes:
        if change.subject == subject and change.type in types:
            by = found.history.deletions.get(change.revision)
            recorded = (by.time_us, by.writer, by.credential_id) if by else (None, None, None)
            yield change.revision, change.type, *recorded


def _below(versions: list[KeptVersion[T]], before_revision: int | None, limit: int) -> list[KeptVersion[T]]:
    before = before_revision or EVERYTHING
    return newest([version for version in versions if version.revision < before], limit)
