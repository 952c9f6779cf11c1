"""Held writes."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import HeldWrite, WritesBy
from memory_service.records.base import QuarantineStore
from memory_service.records.sqlite import quarantine_writes
from memory_service.records.sqlite.commit_queue import HEAVY_ITEMS
from memory_service.records.sqlite.connection import Connection
from memory_service.records.sqlite.ledger import Outcome
from memory_service.records.sqlite.store_core import StoreCore
from memory_service.runtime.caller import ANYBODY, Caller


class SqliteQuarantineStore(StoreCore, QuarantineStore):
    """Keeps held writes in a separate table, which no view reads."""

    async def hold(
        self, namespace: str, held: Sequence[HeldWrite], *, by: Caller = ANYBODY
    ) -> list[HeldWrite]:
        def apply(db: Connection) -> tuple[list[HeldWrite], Outcome]:
            return quarantine_writes.hold(db, self._ledger, namespace, held)

        def publish(done: tuple[list[HeldWrite], Outcome]) -> None:
            self._publish(done[1])

        heavy = len(held) > HEAVY_ITEMS
        return (await self._queue.write(apply, publish, owner=(by.name, namespace), heavy=heavy))[0]

    async def held_writes(self, namespace: str, after: str, limit: int, *, now_us: int) -> list[HeldWrite]:
        if (info := self._info(namespace)) is None:
            return []
        uid = info.uid
        return await self._read(lambda db: quarantine_writes.select_held(db, uid, after, limit, now_us))

    async def held_write(self, namespace: str, held_id: str) -> HeldWrite | None:
        if (info := self._info(namespace)) is None:
            return None
        uid = info.uid
        return await self._read(lambda db: quarantine_writes.find_held(db, uid, held_id))

    async def count_held(self, namespace: str, whose: WritesBy | None = None) -> int:
        if (info := self._info(namespace)) is None:
            return 0
        uid = info.uid
        return await self._read(lambda db: quarantine_writes.count_held(db, uid, whose))

    async def drop_held(self, namespace: str, held_id: str, *, by: Caller = ANYBODY) -> None:
        def apply(db: Connection) -> Outcome:
            return quarantine_writes.drop_held(db, self._ledger, namespace, held_id)

        await self._write(namespace, by, apply, shrinks=True)

    async def drop_held_by(self, namespace: str, whose: WritesBy, *, by: Caller = ANYBODY) -> int:
        def apply(db: Connection) -> Outcome:
            return quarantine_writes.drop_held_by(db, self._ledger, namespace, whose)

        return (await self._write(namespace, by, apply, heavy=True, shrinks=True)).removed_count
