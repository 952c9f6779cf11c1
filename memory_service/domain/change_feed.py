"""What happens in a namespace, change by change, and all that is in it: for readers at their own pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from memory_service.clock import now_us
from memory_service.domain.checks import Checks
from memory_service.errors import NotFound
from memory_service.records import Change, ChangeType, Item, StateEntry
from memory_service.stores.base import Store

_ITEM_CHANGES = (ChangeType.ITEM_ADDED, ChangeType.ITEM_UPDATED)
_CHANGES_AT_ONCE = 200
# What a stream keeps for a reader that is slow: contents may be large.
_CONTENTS_AT_ONCE = 16


@dataclass(slots=True)
class Event:
    """A change with what it left behind, if that is still so; change None is a heartbeat."""

    revision: int
    change: Change | None = None
    item: Item | None = None
    state: StateEntry | None = None


class ChangeFeed:
    """The changes of namespaces."""

    def __init__(self, store: Store, checks: Checks) -> None:
        self._store = store
        self._checks = checks

    async def watch(
        self, namespace: str, after_revision: int | None, heartbeat_s: float
    ) -> AsyncIterator[Event]:
        """Send every change after a revision, for ever; a heartbeat first, and when nothing happens.

        Nothing is queued for a slow reader: it reads the log at its own pace.
        """
        self._checks.namespace(namespace)
        info = await self._store.namespace(namespace)
        current = info.revision if info else 0
        after = current if after_revision is None else after_revision
        yield Event(min(after, current))
        uid = info.uid if info else None
        while True:
            changes = await self._store.read_changes(namespace, after, _CHANGES_AT_ONCE)
            async for event in self._events(namespace, changes):
                after = event.revision
                yield event
            if changes:
                continue
            try:
                async with asyncio.timeout(heartbeat_s):
                    await self._store.wait_for_change(namespace, after)
            except TimeoutError:
                yield Event(after)
            now = await self._store.namespace(namespace)
            if uid is not None and (now is None or now.uid != uid):
                raise NotFound.namespace(namespace)
            uid = now.uid if now else None

    async def _events(self, namespace: str, changes: Sequence[Change]) -> AsyncIterator[Event]:
        for start in range(0, len(changes), _CONTENTS_AT_ONCE):
            for event in await self._loaded(namespace, changes[start : start + _CONTENTS_AT_ONCE]):
                yield event

    async def _loaded(self, namespace: str, changes: Sequence[Change]) -> list[Event]:
        ids = {c.subject for c in changes if c.type in _ITEM_CHANGES}
        keys = {c.subject for c in changes if c.type is ChangeType.STATE_SAVED}
        items = await self._store.get_items(namespace, list(ids)) if ids else {}
        states = await self._store.load_states(namespace, list(keys)) if keys else {}
        events, now = [], now_us()
        for change in changes:
            event = Event(change.revision, change)
            if change.type in _ITEM_CHANGES:
                item = items.get(change.subject)
                if item is not None and item.revision == change.revision and not item.expired(now):
                    event.item = item
            elif change.type is ChangeType.STATE_SAVED:
                state = states.get(change.subject)
                if state is not None and state.revision == change.revision and not state.expired(now):
                    event.state = state
            events.append(event)
        return events

    async def export(
        self, namespace: str, after_revision: int, *, include_embedding: bool
    ) -> AsyncIterator[Event]:
        """Send every item and state written after a revision, as they were when the export began or later."""
        self._checks.namespace(namespace)
        self._checks.count("after_revision", after_revision)
        info = await self._store.namespace(namespace)
        if info is None:
            raise NotFound.namespace(namespace)
        while after_revision < info.revision:
            changes = await self._store.read_changes(namespace, after_revision, _CHANGES_AT_ONCE)
            if not changes:
                return
            async for event in self._events(namespace, changes):
                if event.item is not None:
                    if include_embedding:
                        event.item = await self._with_embedding(namespace, event.item)
                    yield event
                elif event.state is not None:
                    yield event
            after_revision = changes[-1].revision

    async def _with_embedding(self, namespace: str, item: Item) -> Item:
        found = await self._store.load_items(namespace, [item.position], with_embedding=True)
        return found[0] or item
