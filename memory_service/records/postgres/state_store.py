"""States, which need no view, only SQL."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import ChangeType, Receipt, RequestKey, StateEntry
from memory_service.operations import RenameState
from memory_service.records.base import StateStore
from memory_service.records.postgres.database import Async
from memory_service.records.postgres.lookups import Needs
from memory_service.records.postgres.namespace_writes import empty_states
from memory_service.records.postgres.page import Page
from memory_service.records.postgres.requests import earlier, finish
from memory_service.records.postgres.rows import STATE_COLUMNS, columns_of, state_of, text_in
from memory_service.records.postgres.state_writes import rename_state
from memory_service.records.postgres.store_core import OF_NAME, StoreCore
from memory_service.records.rules.history import deleted
from memory_service.records.rules.states import key_range, note_saved
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.clock import now_us as present_us
from memory_service.runtime.yielding import each

_JOIN = OF_NAME.replace(
    "$.namespaces n", "$.namespaces n JOIN $.states s ON s.part = n.part AND s.uid = n.uid"
)
_STATES = columns_of("s", STATE_COLUMNS)


class PostgresStateStore(StoreCore, StateStore):
    """Writes states in groups, and reads them with one statement."""

    async def load_states(self, namespace: str, keys: Sequence[str]) -> dict[str, StateEntry]:
        wanted = [text_in(key) for key in keys]
        statement = f"SELECT {_STATES} {_JOIN} AND s.key = ANY(%s::text[])"
        entries = map(state_of, await self._fetch_of(statement, namespace, wanted))
        return {entry.key: entry for entry in entries}

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
        columns = _STATES
        if value_chars is not None:
            columns = _STATES.replace("s.value", f"left(s.value, {value_chars:d})")
            columns += ", octet_length(s.value)"
        where, bounds = key_range(after_key, prefix, "s.key {} %s")
        statement = (
            f"SELECT {columns} {_JOIN} AND {where} AND (s.expire_us IS NULL OR s.expire_us > %s)"
            " ORDER BY s.key LIMIT %s"
        )
        rows = await self._fetch_of(statement, namespace, *map(text_in, bounds), now_us, limit)
        return await each(state_of, rows)

    async def rename_state(
        self,
        namespace: str,
        renaming: RenameState,
        *,
        request: RequestKey | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        async def prepare(connection: Async, page: Page) -> None:
            # Not in a group, where earlier changes would still be pending under the old key.
            pass

        def apply(page: Page) -> Receipt:
            if (replayed := earlier(page, request)) is not None:
                return replayed
            receipt = Receipt(0)
            entry = rename_state(page, renaming, by, keeps_history=self._keeps_history)
            note_saved(receipt, [entry])
            return finish(page, request, receipt, state_key=renaming.new_key)

        needs = Needs(states=[renaming.key, renaming.new_key], requests=[request.id] if request else [])
        return await self._write_alone(namespace, by, prepare, apply, needs)

    async def clear_states(
        self, namespace: str, *, request: RequestKey | None = None, by: Caller = ANYBODY
    ) -> Receipt:
        async def prepare(connection: Async, page: Page) -> None:
            if page.book is not None and earlier(page, request) is None:
                await empty_states(connection, self._database, page)

        def apply(page: Page) -> Receipt:
            if (replayed := earlier(page, request)) is not None:
                return replayed
            book = page.open(present_us())
            receipt = Receipt(0, removed_state_count=book.state_count)
            book.state_count = 0
            page.change(ChangeType.STATE_CLEARED, "")
            page.note(deleted(by, present_us(), keeps_history=self._keeps_history))
            return finish(page, request, receipt)

        needs = Needs(requests=[request.id] if request else [])
        return await self._write_alone(namespace, by, prepare, apply, needs)
