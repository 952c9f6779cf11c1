"""The ordered changes of a namespace, and calls that wait for one."""

from __future__ import annotations

import asyncio
from collections import Counter

from memory_service.data_model import Change, ChangeType, NamespaceInfo
from memory_service.errors import MemoryServiceError
from memory_service.records.base import ChangeLog
from memory_service.records.postgres.rows import NAMESPACE_COLUMNS, columns_of, namespace_of, text_in, text_of
from memory_service.records.postgres.store_core import OF_NAME, StoreCore
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.log_causes import cause_of

_log = EventLog(__name__)

# Changes by other servers are noticed after half of this on average. Doubled: later; halved: twice the
# queries.
_LOOK_EVERY_S = 0.1
# A connection silent for this long is given up. Doubled: watchers learn later that the database is down or
# back up; halved: a busy database may lose its connections.
_LOOK_DEADLINE_S = 5.0
_CHANGES = (
    "SELECT c.type, c.revision, c.subject "
    + OF_NAME.replace(
        "$.namespaces n", "$.namespaces n JOIN $.changes c ON c.part = n.part AND c.uid = n.uid"
    )
    + " AND c.revision > %s ORDER BY c.revision LIMIT %s"
)
_WATCHED = f"SELECT {columns_of('n', NAMESPACE_COLUMNS)} FROM $.namespaces n WHERE n.name = ANY(%s::text[])"


class PostgresChangeLog(StoreCore, ChangeLog):
    """Waiters share one query every tenth of a second; this process's own writes wake them at once."""

    _watched: Counter[str]
    _looked: dict[str, NamespaceInfo | None]
    """The awaited namespaces as they were known after the last look."""
    _looking: asyncio.Task[None] | None = None

    async def read_changes(self, namespace: str, after_revision: int, limit: int) -> list[Change]:
        rows = await self._fetch_of(_CHANGES, namespace, after_revision, limit)
        return [Change(ChangeType(kind), revision, text_of(subject)) for kind, revision, subject in rows]

    async def wait_for_change(self, namespace: str, after_revision: int) -> None:
        # As of the call: a namespace deleted during the lookup did exist.
        before = self._known.get(namespace) or await self._info(namespace)

        def happened() -> bool:
            found = self._seen(namespace)
            if before is not None and (found is None or found.uid != before.uid):
                return True
            return found is not None and found.revision > after_revision

        self._watched[namespace] += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            await self._signal.wait_until(namespace, happened)
        finally:
            self._watched[namespace] -= 1
            if not self._watched[namespace]:
                del self._watched[namespace]

    def _seen(self, namespace: str) -> NamespaceInfo | None:
        return self._known.get(namespace)

    async def _look(self) -> None:
        """Query all awaited namespaces, for as long as there are waiters."""
        failing = False
        try:
            while names := await self._watched_now():
                try:
                    async with asyncio.timeout(_LOOK_DEADLINE_S):
                        await self._look_once(names)
                    failing = False
                except (MemoryServiceError, TimeoutError) as error:
                    if not failing:
                        _log.warning("watch_failed", cause=cause_of(error))
                    failing = True
        finally:
            self._looking = None

    async def _watched_now(self) -> list[str]:
        """Return the awaited names when the next look is due."""
        await asyncio.sleep(_LOOK_EVERY_S)
        return list(self._watched)

    async def _look_once(self, names: list[str]) -> None:
        before = {name: self._known.get(name) for name in names}
        rows = await self._fetch(_WATCHED, ([text_in(name) for name in names],))
        found = {info.name: info for info in map(namespace_of, rows)}
        for name in names:
            # Anything committed or found here in the meantime is newer than the rows just read.
            if self._known.get(name) is before[name]:
                self._remember(name, found.get(name))
        # Includes changes that other calls found here since the last look, without waking waiters.
        now = {name: self._known.get(name) for name in names}
        for name, info in now.items():
            if name not in self._looked or info != self._looked[name]:
                self._signal.fire(name)
        self._looked = now

    async def _stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
