"""The ordered changes of a namespace."""

from __future__ import annotations

from memory_service.data_model import Change, ChangeType
from memory_service.records.base import ChangeLog
from memory_service.records.sqlite.schema import POSITION_MAX, key_of
from memory_service.records.sqlite.store_core import StoreCore


class SqliteChangeLog(StoreCore, ChangeLog):
    """Returns only published changes."""

    async def read_changes(self, namespace: str, after_revision: int, limit: int) -> list[Change]:
        info = self._info(namespace)
        if info is None or after_revision >= info.revision:
            return []
        statement = "SELECT key, type, subject FROM changes WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?"
        # Only published changes: a commit is not visible before its views are.
        first, last = key_of(info.uid, after_revision + 1), key_of(info.uid, info.revision)
        values = (first, last, limit)
        rows = await self._read(lambda db: db.execute(statement, values).fetchall())
        return [Change(ChangeType(kind), key & POSITION_MAX, subject) for key, kind, subject in rows]

    async def wait_for_change(self, namespace: str, after_revision: int) -> None:
        before = self._info(namespace)

        def happened() -> bool:
            found = self._info(namespace)
            if before is not None and (found is None or found.uid != before.uid):
                return True
            return found is not None and found.revision > after_revision

        await self._signal.wait_until(namespace, happened)
