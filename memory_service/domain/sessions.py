"""Sessions as resources: listed, read, named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from memory_service.data_model import Item, OnDuplicate, Receipt, RequestKey, SessionCounts, SessionQuery
from memory_service.domain.answers import live_versions
from memory_service.domain.checks import Checks
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.embedding import Degradation
from memory_service.domain.ids import session_item_id
from memory_service.domain.item_writing import Remembered, degraded_then, stamped, write_of
from memory_service.domain.items import Items
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.provenance import provenance_again
from memory_service.domain.session_items import Session, SessionDraft, changed, kept_of
from memory_service.domain.session_participants import participants_of
from memory_service.errors import Conflict, InvalidArgument, NotFound
from memory_service.reading import Reading
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import Part
from memory_service.store import Store

UPDATABLE = frozenset({"title", "labels", "metadata"})
# Metadata may have many kilobytes. Doubled: the event loop is blocked twice as long by large ones; halved: a
# page of a thousand sessions takes twice as many reads.
_LOADED_AT_ONCE = 20
_SESSION_BYTES = 100
"""Approximate size of a session in an answer, without its id and what was said about it."""


@dataclass(slots=True)
class SessionPage:
    """A page of sessions."""

    sessions: list[Session]
    revision: int
    next_page_token: str = ""


@dataclass(slots=True)
class WrittenSession:
    """A session that was written."""

    session: Session
    revision: int
    degraded: list[Degradation] = field(default_factory=list)


class Sessions:
    """Lists, reads and names sessions. `item_bytes` returns the size of an item in a response."""

    def __init__(
        self,
        store: Store,
        items: Items,
        checks: Checks,
        tokens: PageTokens,
        item_bytes: Callable[[Item], int],
    ) -> None:
        self._store = store
        self._items = items
        self._checks = checks
        self._tokens = tokens
        self._item_bytes = item_bytes

    # --- reading ------------------------------------------------------------------------------

    async def list_sessions(
        self, namespace: str, *, prefix: str, labels: dict[str, str], page_size: int, page_token: str
    ) -> SessionPage:
        """Return a page of sessions, the latest activity first."""
        self._checks.namespace(namespace)
        self._checks.session_id(prefix, "prefix")
        self._checks.labels("labels", labels)
        size = self._checks.page_size(page_size)
        scope = ("sessions", namespace, prefix, sorted(labels.items()))
        before = None
        if page_token:
            last_us, position = self._tokens.read(scope, page_token)
            before = int(last_us), int(position)
        reading = await self._store.read(namespace)
        if reading.info is None:
            return SessionPage([], 0)
        query = SessionQuery(now_us(), size + 1, before, prefix, tuple(labels.items()))
        found = await reading.sessions(query)
        sessions = await self._fitting(namespace, found[:size])
        page = SessionPage(sessions, reading.info.revision)
        if len(sessions) < len(found):
            page.next_page_token = self._tokens.make(scope, list(found[len(sessions) - 1].place))
        return page

    async def _fitting(self, namespace: str, found: Sequence[SessionCounts]) -> list[Session]:
        """Return the first of these sessions that fit into a page, one at least."""
        sessions, nbytes, part = list[Session](), 0, Part()
        for start in range(0, len(found), _LOADED_AT_ONCE):
            some = found[start : start + _LOADED_AT_ONCE]
            items = await self._store.get_items(
                namespace, [session_item_id(counts.session_id) for counts in some]
            )
            for counts in some:
                kept = kept_of(items.get(session_item_id(counts.session_id)), counts.session_id, now_us())
                nbytes += _SESSION_BYTES + len(counts.session_id) + (self._item_bytes(kept) if kept else 0)
                if sessions and nbytes > self._checks.limits.page_bytes_max:
                    return sessions
                sessions.append(Session.of(counts, kept))
                await part.give_way_if_long()
        return sessions

    async def get(self, namespace: str, session_id: str) -> tuple[Session, int]:
        """Return a session with its participants, and the revision. Raises NotFound."""
        self._checks.namespace(namespace)
        self.check_id(session_id)
        reading = await self._store.read(namespace)
        session = await self.find(reading, namespace, session_id)
        if session is None:
            raise NotFound.session(namespace, session_id)
        session.participants = await participants_of(reading, session_id)
        return session, reading.info.revision if reading.info else 0

    def check_id(self, session_id: str, field: str = "session_id") -> None:
        """Check the id of a session, which is required."""
        if not session_id:
            raise InvalidArgument(field, "is required")
        self._checks.session_id(session_id, field)

    async def find(self, reading: Reading, namespace: str, session_id: str) -> Session | None:
        """Return a session; None if there is none."""
        now = now_us()
        counts = await reading.sessions(SessionQuery(now, 1, session_id=session_id))
        if not counts:
            return None
        return Session.of(counts[0], await self._kept(namespace, session_id, now))

    async def _kept(self, namespace: str, session_id: str, now: int) -> Item | None:
        items = await self._store.get_items(namespace, [session_item_id(session_id)])
        return kept_of(items.get(session_item_id(session_id)), session_id, now)

    # --- naming -------------------------------------------------------------------------------

    async def update(
        self,
        namespace: str,
        draft: SessionDraft,
        fields: frozenset[str],
        *,
        expected_version: int | None,
        allow_missing: bool,
        request: RequestKey | None,
    ) -> WrittenSession:
        """Change what is said about a session. Raises NotFound, Conflict."""
        self._checks.namespace(namespace)
        self.check_id(draft.session_id, "session.session_id")
        if request is not None:
            self._checks.request_id(request.id)
        if not fields:
            raise InvalidArgument("update_mask", "names no field to change")
        if expected_version is not None:
            self._checks.count("expected_version", expected_version)
        self._checks.size("session.title", len(draft.title.encode()), "session_title_bytes_max")
        for attempt in range(TRIES):
            if request and (receipt := await self._store.find_receipt(namespace, request)):
                return await self._updated_then(namespace, draft, fields, receipt)
            session = await self._to_update(namespace, draft.session_id, allow_missing=allow_missing)
            if expected_version is not None and expected_version != session.version:
                raise Conflict.session_version(draft.session_id, expected_version, session.version)
            try:
                return await self._update(namespace, draft, fields, session, request)
            except Conflict as conflict:
                last = conflict
            await pause_after(attempt)
        raise last

    async def _to_update(self, namespace: str, session_id: str, *, allow_missing: bool) -> Session:
        reading = await self._store.read(namespace)
        session = await self.find(reading, namespace, session_id)
        if session is None and not allow_missing:
            raise NotFound.session(namespace, session_id)
        return session or Session(session_id)

    async def _update(
        self,
        namespace: str,
        draft: SessionDraft,
        fields: frozenset[str],
        session: Session,
        request: RequestKey | None,
    ) -> WrittenSession:
        added = await self._items.add(
            namespace,
            [changed(draft, fields, session.kept)],
            fields=["session"],
            on_duplicate=OnDuplicate.REPLACE,
            request=request,
            remembered=Remembered([session.item_count, session.first_us, session.last_us]),
        )
        if added.receipt.replayed:
            return await self._updated_then(namespace, draft, fields, added.receipt)
        session.kept = added.items[0]
        return WrittenSession(session, added.receipt.revision, added.degraded)

    async def _updated_then(
        self, namespace: str, draft: SessionDraft, fields: frozenset[str], receipt: Receipt
    ) -> WrittenSession:
        """Return what an earlier, equal request wrote."""
        kept = await self.kept_then(namespace, draft, fields, receipt)
        item_count, first_us, last_us = receipt.note
        session = Session(draft.session_id, item_count, first_us, last_us, kept)
        return WrittenSession(session, receipt.revision, degraded_then(receipt))

    async def kept_then(
        self, namespace: str, draft: SessionDraft, fields: frozenset[str], receipt: Receipt
    ) -> Item:
        """Return the version of a session's own item that is the first in a receipt; if it is gone, what the
        request says.
        """
        stamp, writing = next(receipt.written())
        version = stamp.id, stamp.revision
        kept = (await live_versions(self._store, namespace, [version])).get(version)
        if kept is not None:
            return kept
        write = write_of(changed(draft, fields, None), None, stamp.update_us)
        return stamped(write.item, stamp, provenance_again(None, writing))
