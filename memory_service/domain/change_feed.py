"""Streams the changes or the contents of a namespace, at each reader's pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from memory_service.data_model import Change, ChangeType, Item, StateEntry
from memory_service.domain.checks import Checks
from memory_service.errors import NotFound
from memory_service.runtime.clock import now_us
from memory_service.store import Store

_ITEM_CHANGES = (ChangeType.ITEM_ADDED, ChangeType.ITEM_UPDATED)
_CHANGES_AT_ONCE = 200
# Memory that a stream holds for a slow reader: contents may be large.
_CONTENTS_AT_ONCE = 16


@dataclass(slots=True)
class Event:
    """A change, with its content if that is still current; change None is a heartbeat."""

    revision: int
    change: Change | None = None
    item: Item | None = None
    state: StateEntry | None = None


class ChangeFeed:
    """Streams the changes of namespaces."""

    def __init__(self, store: Store, checks: Checks) -> None:
        self._store = store
        self._checks = checks

    async def watch(
        self, namespace: str, after_revision: int | None, heartbeat_s: float
    ) -> AsyncIterator[Event]:
        """Yield every change after a revision, endlessly; a heartbeat first, and while nothing happens.

        Nothing is queued for a slow reader: it reads the log at its own pace.
        """
        self._checks.namespace(namespace)
        info = await self._store.namespace(namespace)
        current = info.revision if info else 0
        # A future revision belongs to another history, unknown here.
        after = current if after_revision is None else min(after_revision, current)
        yield Event(after)
        uid = info.uid if info else None
        while True:
            changes = await self._changes(namespace, uid, after) if uid is not None else []
            async for event in self._events(namespace, uid, changes):
                after = event.revision
                yield event
            if changes:
                continue
            happened = await self._wait(namespace, after, heartbeat_s)
            if uid is not None:
                await self._check_same(namespace, uid)
            elif now := await self._store.namespace(namespace):
                uid = now.uid
            if not happened:
                yield Event(after)

    async def _wait(self, namespace: str, after: int, heartbeat_s: float) -> bool:
        """Return whether a change came before the next heartbeat is due."""
        try:
            async with asyncio.timeout(heartbeat_s):
                await self._store.wait_for_change(namespace, after)
        except TimeoutError:
            return False
        return True

    async def _check_same(self, namespace: str, uid: int | None) -> None:
        """Check after each read by name that it was not of a later namespace with the same name."""
        now = await self._store.namespace(namespace)
        if now is None or now.uid != uid:
            raise NotFound.namespace(namespace)

    async def _changes(self, namespace: str, uid: int, after: int) -> Sequence[Change]:
        changes = await self._store.read_changes(namespace, after, _CHANGES_AT_ONCE)
        await self._check_same(namespace, uid)
        return changes

    async def _events(
        self, namespace: str, uid: int | None, changes: Sequence[Change]
    ) -> AsyncIterator[Event]:
        for start in range(0, len(changes), _CONTENTS_AT_ONCE):
            events = await self._loaded(namespace, changes[start : start + _CONTENTS_AT_ONCE])
            await self._check_same(namespace, uid)
            for event in events:
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
        """Yield every item and state written after a revision, as of the start of the export or later."""
        self._checks.namespace(namespace)
        self._checks.count("after_revision", after_revision)
        info = await self._store.namespace(namespace)
        if info is None:
            raise NotFound.namespace(namespace)
        while after_revision < info.revision:
            changes = await self._changes(namespace, info.uid, after_revision)
            if not changes:
                return
            async for event in self._events(namespace, info.uid, changes):
                if event.item is not None and include_embedding:
                    event.item = await self._with_embedding(namespace, event.item)
                    await self._check_same(namespace, info.uid)
                if event.item is not None or event.state is not None:
                    yield event
            after_revision = changes[-1].revision

    async def _with_embedding(self, namespace: str, item: Item) -> Item:
        reading = await self._store.read(namespace)
        found = await reading.load_items([item.position], with_embedding=True)
        return found[0] or item
