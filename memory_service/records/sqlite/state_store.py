"""States, which need no view, only SQL."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import Receipt, RequestKey, StateEntry
from memory_service.operations import RenameState
from memory_service.records.base import StateStore
from memory_service.records.rules.states import key_range
from memory_service.records.sqlite import state_writes
from memory_service.records.sqlite.connection import translated
from memory_service.records.sqlite.rows import STATE_COLUMNS, shortened_state_columns, state_of
from memory_service.records.sqlite.store_core import StoreCore
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.yielding import each


class SqliteStateStore(StoreCore, StateStore):
    """Reads a few keys on the event loop, and scans in a thread."""

    async def load_states(self, namespace: str, keys: Sequence[str]) -> dict[str, StateEntry]:
        info = self._info(namespace)
        if info is None:
            return {}
        statement = f"SELECT {STATE_COLUMNS} FROM states WHERE uid = ? AND key = ?"
        with translated():
            rows = [self._reader.execute(statement, (info.uid, key)).fetchone() for key in keys]
        return {row[0]: state_of(row) for row in rows if row}

    async def scan_states(
        self,
        namespace: str,
        after_key: str,
        limit: int,
        *,
        now_us: int,
        prefix: str = "",
        value_chars: int | None = None,
    ) -> list[StateEntry]:
        info = self._info(namespace)
        if info is None:
            return []
        columns = STATE_COLUMNS if value_chars is None else shortened_state_columns(value_chars)
        where, bounds = key_range(after_key, prefix, "key {} ?")
        statement = (
            f"SELECT {columns} FROM states WHERE uid = ? AND {where}"
            " AND (expire_us IS NULL OR expire_us > ?) ORDER BY key LIMIT ?"
        )
        values = (info.uid, *bounds, now_us, limit)
        rows = await self._read(lambda db: db.execute(statement, values).fetchall())
        return await each(state_of, rows)

    async def rename_state(
        self,
        namespace: str,
        renaming: RenameState,
        *,
        request: RequestKey | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        return await self._write(
            namespace,
            by,
            lambda db: state_writes.rename_state(db, self._ledger, namespace, renaming, request, by),
        )

    async def clear_states(
        self, namespace: str, *, request: RequestKey | None = None, by: Caller = ANYBODY
    ) -> Receipt:
        return await self._write(
            namespace,
            by,
            lambda db: state_writes.clear_states(db, self._ledger, namespace, request, by),
            heavy=True,
            shrinks=True,
        )
