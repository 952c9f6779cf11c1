"""Versions of items and states: listed, read and redacted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from memory_service.data_model import Item, StateEntry
from memory_service.domain.checks import Checks
from memory_service.domain.page_tokens import PageTokens
from memory_service.errors import InvalidArgument, NotFound
from memory_service.records.versions import KeptVersion
from memory_service.runtime.caller import present_caller
from memory_service.runtime.clock import now_us
from memory_service.store import Store

T = TypeVar("T")

_REVISION_MAX = (1 << 63) - 1
"""The largest number that a field holds; no revision is as large."""
_READ_AT_ONCE = 8
"""Versions to read before their sizes are known. Doubled: a page of large items reads up to 32 MiB for 3."""


@dataclass(slots=True)
class VersionPage(Generic[T]):
    """A page of versions, newest first."""

    versions: list[KeptVersion[T]] = field(default_factory=list)
    next_page_token: str = ""


class Versions:
    """Lists, reads and redacts versions. The two functions return the size of a record in a response."""

    def __init__(
        self,
        store: Store,
        checks: Checks,
        tokens: PageTokens,
        item_bytes: Callable[[Item], int],
        state_bytes: Callable[[StateEntry], int],
    ) -> None:
        self._store = store
        self._checks = checks
        self._tokens = tokens
        self._item_bytes = item_bytes
        self._state_bytes = state_bytes

    # --- items --------------------------------------------------------------------------------

    async def list_items(
        self, namespace: str, item_id: str, page_size: int, page_token: str
    ) -> VersionPage[Item]:
        """Return a page of the versions and removals of an item. Raises NotFound if there are none."""
        self._checks.namespace(namespace)
        self._checks.item_id(item_id)
        size, now = self._checks.page_size(page_size), now_us()

        async def read(before: int | None, limit: int) -> list[KeptVersion[Item]]:
            return await self._store.item_versions(namespace, item_id, before, limit, now_us=now)

        scope = ("item versions", namespace, item_id)
        page = await self._page(scope, size, page_token, read, self._item_bytes)
        if not page.versions and not page_token:
            raise NotFound.item(namespace, item_id)
        return page

    async def item(self, namespace: str, item_id: str, revision: int) -> Item:
        """Return an item as it was written at a revision. Raises NotFound."""
        self._checks.namespace(namespace)
        self._checks.item_id(item_id)
        self._check_revision(revision)
        found = await self._store.get_items(namespace, [item_id])
        if item_id not in found or found[item_id].expired(now_us()):
            raise NotFound.item(namespace, item_id)
        wanted = (item_id, revision)
        kept = (await self._store.get_versions(namespace, [wanted])).get(wanted)
        if kept is None:
            redacted = await is_redacted(self._store, namespace, item_id, revision)
            raise NotFound.item_version(namespace, item_id, revision, redacted=redacted)
        return kept

    async def redact_item(self, namespace: str, item_id: str, revision: int) -> int:
        """Remove the content of a version; return the namespace's revision.

        Raises NotFound, and FailedPrecondition if it is the current version.
        """
        self._checks.namespace(namespace)
        self._checks.item_id(item_id)
        self._check_revision(revision)
        return await self._store.redact_item_version(
            namespace, item_id, revision, now_us=now_us(), by=present_caller()
        )

    # --- states -------------------------------------------------------------------------------

    async def list_states(
        self, namespace: str, key: str, page_size: int, page_token: str
    ) -> VersionPage[StateEntry]:
        """Return a page of the versions and removals of a state. Raises NotFound if there are none."""
        self._checks.namespace(namespace)
        self._checks.state_key(key)
        size, now = self._checks.page_size(page_size), now_us()

        async def read(before: int | None, limit: int) -> list[KeptVersion[StateEntry]]:
            return await self._store.state_versions(namespace, key, before, limit, now_us=now)

        scope = ("state versions", namespace, key)
        page = await self._page(scope, size, page_token, read, self._state_bytes)
        if not page.versions and not page_token:
            raise NotFound.state(namespace, key)
        return page

    async def state(self, namespace: str, key: str, revision: int) -> StateEntry:
        """Return a state as it was written at a revision. Raises NotFound."""
        self._checks.namespace(namespace)
        self._checks.state_key(key)
        self._check_revision(revision)
        before = _after(revision)
        found = await self._store.state_versions(namespace, key, before, 1, now_us=now_us())
        version = found[0] if found and found[0].revision == revision else None
        if version is not None and version.record is not None:
            return version.record
        current = (await self._store.load_states(namespace, [key])).get(key)
        if current is None or current.expired(now_us()):
            raise NotFound.state(namespace, key)
        raise NotFound.state_version(namespace, key, revision, redacted=_was_redacted(version))

    async def redact_state(self, namespace: str, key: str, revision: int) -> int:
        """Remove the value of a version; return the namespace's revision. Raises as `redact_item` does."""
        self._checks.namespace(namespace)
        self._checks.state_key(key)
        self._check_revision(revision)
        return await self._store.redact_state_version(
            namespace, key, revision, now_us=now_us(), by=present_caller()
        )

    # --- both ---------------------------------------------------------------------------------

    def _check_revision(self, revision: int) -> None:
        if revision <= 0:
            raise InvalidArgument("revision", "must be positive")

    async def _page(
        self,
        scope: tuple[object, ...],
        size: int,
        page_token: str,
        read: Callable[[int | None, int], Awaitable[list[KeptVersion[T]]]],
        record_bytes: Callable[[T], int],
    ) -> VersionPage[T]:
        """Return a page that ends at a number of versions or at a number of bytes."""
        before = int(self._tokens.read(scope, page_token)[0]) if page_token else None
        page, room = VersionPage[T](), self._checks.limits.page_bytes_max
        while True:
            wanted = min(_READ_AT_ONCE, size + 1 - len(page.versions))
            found = await read(before, wanted)
            for version in found:
                room -= 0 if version.record is None else record_bytes(version.record)
                if len(page.versions) == size or (page.versions and room < 0):
                    page.next_page_token = self._tokens.make(scope, [page.versions[-1].revision])
                    return page
                page.versions.append(version)
                before = version.revision
            if len(found) < wanted:
                return page


async def is_redacted(store: Store, namespace: str, item_id: str, revision: int) -> bool:
    """Return whether a version of an item was kept and then redacted."""
    found = await store.item_versions(namespace, item_id, _after(revision), 1, now_us=now_us())
    return bool(found) and found[0].revision == revision and _was_redacted(found[0])


def _after(revision: int) -> int | None:
    """Return the revision below which a version is the newest one; None: below none."""
    return revision + 1 if revision < _REVISION_MAX else None


def _was_redacted(version: KeptVersion[T] | None) -> bool:
    return version is not None and version.record is None and version.removal is None
