"""Copying a session, or its beginning, to a new one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from memory_service.data_model import (
    CONVERSATION_KINDS,
    UNATTRIBUTED,
    Facet,
    Item,
    ItemDraft,
    ItemFilter,
    ItemKind,
    ProvenanceDraft,
    Receipt,
    RequestKey,
    Since,
    parents_of,
)
from memory_service.domain.checks import Checks
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.ids import new_id, session_item_id
from memory_service.domain.interaction_items import LINK_TAG, SESSION_TAG, subjects_of
from memory_service.domain.item_writing import Remembered, degraded_then
from memory_service.domain.items import Items
from memory_service.domain.session_items import (
    KeptSession,
    Session,
    SessionDraft,
    changed,
)
from memory_service.domain.sessions import UPDATABLE, Sessions, WrittenSession
from memory_service.errors import AlreadyExists, Conflict, InvalidArgument, LimitExceeded, NotFound
from memory_service.reading import Reading
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import each
from memory_service.store import Store

# An item may have two megabytes. Doubled: twice the memory before a session is found to be too large.
_LOADED_AT_ONCE = 50


@dataclass(slots=True)
class Fork:
    """What to copy, and to where; the fields of a request."""

    session_id: str
    new_session_id: str = ""
    until_item_id: str = ""
    until_revision: int | None = None


@dataclass(slots=True)
class _Source:
    """What a session has at a revision, up to the last item to copy."""

    session: Session
    items: list[Item]
    revision: int
    model: str
    """The model of the namespace's vectors."""
    outside: set[str]
    """The items outside the session that items were made from."""

    @property
    def unchanged(self) -> Since:
        """The condition that it still is like this."""
        ids = {item.id for item in self.items} | {session_item_id(self.session.session_id)}
        return Since(self.revision, ids=frozenset(ids), removals=False)


class SessionForking:
    """Copies sessions. `item_bytes` returns the size of an item in a request."""

    def __init__(
        self,
        store: Store,
        items: Items,
        sessions: Sessions,
        checks: Checks,
        item_bytes: Callable[[Item], int],
    ) -> None:
        self._store = store
        self._items = items
        self._sessions = sessions
        self._checks = checks
        self._item_bytes = item_bytes

    async def fork(self, namespace: str, fork: Fork, request: RequestKey | None) -> WrittenSession:
        """Copy a session, all or nothing. Raises NotFound, AlreadyExists, LimitExceeded."""
        self._check(namespace, fork, request)
        for attempt in range(TRIES):
            if request and (receipt := await self._store.find_receipt(namespace, request)):
                return await self._forked_then(namespace, receipt)
            try:
                source = await self._read(namespace, fork)
                return await self._copy(namespace, fork, source, request)
            except Conflict as conflict:
                # An item of the session has changed, or the new session was created.
                last = conflict
            await pause_after(attempt)
        raise last

    def _check(self, namespace: str, fork: Fork, request: RequestKey | None) -> None:
        self._checks.namespace(namespace)
        if request is not None:
            self._checks.request_id(request.id)
        self._sessions.check_id(fork.session_id)
        self._checks.session_id(fork.new_session_id, "new_session_id")
        if fork.new_session_id == fork.session_id:
            raise InvalidArgument("new_session_id", "must differ from session_id")
        self._checks.item_id(fork.until_item_id, "until_item_id", required=False)
        if fork.until_revision is not None:
            self._checks.count("until_revision", fork.until_revision)
            if fork.until_item_id:
                raise InvalidArgument("until_revision", "cannot be given together with until_item_id")

    # --- reading ------------------------------------------------------------------------------

    async def _read(self, namespace: str, fork: Fork) -> _Source:
        reading = await self._store.read(namespace)
        session = await self._sessions.find(reading, namespace, fork.session_id)
        if reading.info is None or session is None:
            raise NotFound.session(namespace, fork.session_id)
        if fork.new_session_id and await self._sessions.find(reading, namespace, fork.new_session_id):
            raise AlreadyExists.session(namespace, fork.new_session_id)
        last = await self._last_position(namespace, fork)
        wanted = ItemFilter(now_us(), fork.session_id, max_position=last, kinds=CONVERSATION_KINDS)
        positions = await reading.scan(wanted, -1, newest=False)
        self._checks.size("session_id", len(positions), "batch_items_max")
        items = await self._load(reading, positions)
        outside = await self._outside(namespace, fork.session_id, items)
        return _Source(session, items, reading.info.revision, reading.info.model, outside)

    async def _outside(self, namespace: str, session_id: str, items: Sequence[Item]) -> set[str]:
        """Return the items outside a session that items were made from."""
        parents = {parent for item in items for parent in parents_of(item)}
        found = await self._store.get_items(namespace, list(parents)) if parents else {}
        return {parent for parent, item in found.items() if item.session_id != session_id}

    async def _last_position(self, namespace: str, fork: Fork) -> int | None:
        """Return the position of the last item to copy; None: all. Raises NotFound."""
        if not fork.until_item_id:
            return fork.until_revision
        item = (await self._store.get_items(namespace, [fork.until_item_id])).get(fork.until_item_id)
        if item is None or item.expired(now_us()) or item.kind not in CONVERSATION_KINDS:
            raise NotFound.item(namespace, fork.until_item_id)
        if item.session_id != fork.session_id:
            why = f"item {item.id!r} is not in session {fork.session_id!r}"
            raise NotFound.item(namespace, item.id, why)
        return item.position

    async def _load(self, reading: Reading, positions: Sequence[int]) -> list[Item]:
        """Return the items with their vectors. Raises LimitExceeded if no request could hold them, and
        Conflict if one was removed.
        """
        items, nbytes = list[Item](), 0
        revision = reading.info.revision if reading.info else 0
        limit = self._checks.limits.message_bytes_max
        for start in range(0, len(positions), _LOADED_AT_ONCE):
            some = positions[start : start + _LOADED_AT_ONCE]
            loaded = await reading.load_items(some, with_embedding=True)
            found = [item for item in loaded if item is not None]
            if len(found) < len(some):
                raise Conflict.changed_since(revision, revision)
            items += found
            nbytes += sum(await each(self._item_bytes, found))
            if nbytes > limit:
                raise LimitExceeded("session_id", "message_bytes_max", limit, nbytes)
        return items

    # --- writing ------------------------------------------------------------------------------

    async def _copy(
        self, namespace: str, fork: Fork, source: _Source, request: RequestKey | None
    ) -> WrittenSession:
        now = now_us()
        session_id = fork.new_session_id or new_id(now)
        # Other parents are forgotten: a deletion of the session would remove the copies, too.
        ids = {parent: parent for parent in source.outside}
        ids |= {item.id: new_id(now) for item in source.items}
        own = _own_item(session_id, source)
        drafts = [own, *(_copied(item, session_id, ids, source.model) for item in source.items)]

        added = await self._items.add(
            namespace,
            drafts,
            fields=["session_id"] * len(drafts),
            request=request,
            bounded=True,
            unchanged=source.unchanged,
            remembered=Remembered([session_id]),
        )
        if added.receipt.replayed:
            return await self._forked_then(namespace, added.receipt)
        created = [item.create_us for item in added.items[1:]]
        session = _session(session_id, created, added.items[0])
        return WrittenSession(session, added.receipt.revision, added.degraded)

    async def _forked_then(self, namespace: str, receipt: Receipt) -> WrittenSession:
        """Return what an earlier, equal request wrote."""
        (session_id,) = receipt.note
        kept = await self._sessions.kept_then(namespace, SessionDraft(session_id), UPDATABLE, receipt)
        session = _session(session_id, [stamp.create_us for stamp in receipt.items[1:]], kept)
        return WrittenSession(session, receipt.revision, degraded_then(receipt))


def _session(session_id: str, created: Sequence[int], kept: Item) -> Session:
    first, last = min(created, default=None), max(created, default=None)
    return Session(session_id, len(created), first, last, kept)


def _own_item(session_id: str, source: _Source) -> ItemDraft:
    """Return the new session's own item."""
    parent, kept = source.session, source.session.kept
    draft = SessionDraft(
        session_id, parent.title, kept.labels if kept else {}, kept.metadata if kept else None
    )
    last = source.items[-1].id if source.items else ""
    origin = KeptSession(parent.session_id, last, source.revision)
    facet = Facet(ItemKind.SESSION, attributes=msgspec.to_builtins(origin))
    return dataclasses.replace(changed(draft, UPDATABLE, None), facet=facet)


def _copied(item: Item, session_id: str, ids: Mapping[str, str], model: str) -> ItemDraft:
    """Return a copy of an item for another session; `ids` are the ids that its parents have for it."""
    said = item.provenance or UNATTRIBUTED
    parents = tuple(ids[parent] for parent in said.parent_ids if parent in ids)
    return ItemDraft(
        item.content,
        ids[item.id],
        session_id,
        item.create_us,
        item.expire_us,
        labels=dict(item.labels),
        metadata=item.metadata,
        embedding=item.embedding,
        model=model,
        facet=_facet(item, session_id, ids),
        importance=item.importance,
        index=item.index,
        provenance=ProvenanceDraft(
            said.source, said.source_uri, parents, said.model, said.trust, lenient=True
        ),
    )


def _facet(item: Item, session_id: str, ids: Mapping[str, str]) -> Facet | None:
    """Return the service's data of a copy, which names the copies of what the item names."""
    facet = item.facet
    if facet is None:
        return None
    tags, attributes = dict(facet.tags), dict(facet.attributes)
    if (link := tags.pop(LINK_TAG, "")) in ids:
        tags[LINK_TAG] = ids[link]
    if SESSION_TAG in tags:
        tags[SESSION_TAG] = session_id
    if subjects := subjects_of(item):
        attributes["interaction_ids"] = [ids.get(subject, subject) for subject in subjects]
    return Facet(facet.kind, tags, attributes)
