"""Held writes."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import HeldWrite, WritesBy
from memory_service.errors import NotFound
from memory_service.records.base import QuarantineStore
from memory_service.records.postgres.database import Async
from memory_service.records.postgres.item_writes import let_go
from memory_service.records.postgres.lookups import Needs
from memory_service.records.postgres.page import Page
from memory_service.records.postgres.rows import HELD_COLUMNS, columns_of, held_of, text_in
from memory_service.records.postgres.store_core import OF_NAME, StoreCore
from memory_service.records.rules.held import same_request
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.clock import now_us as present_us

_JOIN = OF_NAME.replace(
    "$.namespaces n", "$.namespaces n JOIN $.quarantine q ON q.part = n.part AND q.uid = n.uid"
)
_HELD = f"SELECT {columns_of('q', HELD_COLUMNS)} {_JOIN}"
_BY = " AND held_us >= %s AND (%s::text IS NULL OR writer = %s) AND (%s::text IS NULL OR credential_id = %s)"


def _values(whose: WritesBy) -> tuple[object, ...]:
    writer = None if whose.writer is None else text_in(whose.writer)
    credential_id = None if whose.credential_id is None else text_in(whose.credential_id)
    return whose.since_us, writer, writer, credential_id, credential_id


class PostgresQuarantineStore(StoreCore, QuarantineStore):
    """Keeps held writes apart from everything that other methods read."""

    async def hold(
        self, namespace: str, held: Sequence[HeldWrite], *, by: Caller = ANYBODY
    ) -> list[HeldWrite]:
        def apply(page: Page) -> list[HeldWrite]:
            kept = []
            for write in held:
                same = next((each for each in page.held.values() if same_request(each, write)), None)
                kept.append((same, write))
            page.open(present_us())
            for same, write in kept:
                if same is None:
                    page.held[write.id] = page.pending.held[write.id] = write
            return [same or write for same, write in kept]

        needs = Needs(held_requests=[write.request.id for write in held if write.request])
        return await self._write(namespace, by, needs, apply)

    async def held_writes(self, namespace: str, after: str, limit: int, *, now_us: int) -> list[HeldWrite]:
        statement = f"{_HELD} AND q.id > %s AND q.expire_us > %s ORDER BY q.id LIMIT %s"
        return [
            held_of(row) for row in await self._fetch_of(statement, namespace, text_in(after), now_us, limit)
        ]

    async def held_write(self, namespace: str, held_id: str) -> HeldWrite | None:
        rows = await self._fetch_of(f"{_HELD} AND q.id = %s", namespace, text_in(held_id))
        return held_of(rows[0]) if rows else None

    async def count_held(self, namespace: str, whose: WritesBy | None = None) -> int:
        values = _values(whose or WritesBy(0))
        rows = await self._fetch_of(f"SELECT count(*) {_JOIN}{_BY}", namespace, *values)
        return int(rows[0][0])

    async def drop_held(self, namespace: str, held_id: str, *, by: Caller = ANYBODY) -> None:
        def apply(page: Page) -> None:
            if held_id not in page.held:
                raise NotFound.quarantined(namespace, held_id)
            let_go(page, held_id)

        await self._write(namespace, by, Needs(held=[held_id]), apply)

    async def drop_held_by(self, namespace: str, whose: WritesBy, *, by: Caller = ANYBODY) -> int:
        dropped = 0

        async def prepare(connection: Async, page: Page) -> None:
            nonlocal dropped
            if page.book is None:
                return
            cursor = await connection.execute(
                self._database.sql(f"DELETE FROM $.quarantine WHERE part = %s AND uid = %s{_BY}"),
                (page.part, page.book.uid, *_values(whose)),
            )
            dropped = cursor.rowcount
            page.touched = True

        return await self._write_alone(namespace, by, prepare, lambda page: dropped)
