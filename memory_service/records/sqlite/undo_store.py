"""Undoes a writer's changes step by step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from memory_service.data_model import Receipt, UndoStep, WritesBy
from memory_service.records.base import RestoredFiles, UndoStore
from memory_service.records.sqlite import undo_writes
from memory_service.records.sqlite.connection import Connection
from memory_service.records.sqlite.ledger import Outcome
from memory_service.records.sqlite.store_core import StoreCore
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.clock import now_us as present_us


class SqliteUndoStore(StoreCore, UndoStore):
    """Each step is one write; a dry run is a read in a thread."""

    async def undo_items(
        self,
        namespace: str,
        whose: WritesBy,
        after_position: int,
        limit: int,
        *,
        dry_run: bool,
        files: RestoredFiles | None = None,
        by: Caller = ANYBODY,
    ) -> UndoStep:
        at_us = present_us()
        if dry_run:
            return await self._undone(
                namespace,
                lambda uid, db: undo_writes.plan_items(db, uid, whose, after_position, limit, at_us)[0],
            )

        def apply(db: Connection) -> tuple[UndoStep, Outcome]:
            if (book := self._ledger.find(db, namespace)) is None:
                return UndoStep(), Outcome(Receipt(0))
            return undo_writes.undo_items(db, self._ledger, book, whose, after_position, limit, at_us, files)

        return await self._write_step(namespace, by, apply)

    async def undo_states(
        self,
        namespace: str,
        whose: WritesBy,
        after_key: str,
        limit: int,
        *,
        dry_run: bool,
        by: Caller = ANYBODY,
    ) -> UndoStep:
        at_us = present_us()
        if dry_run:
            return await self._undone(
                namespace,
                lambda uid, db: undo_writes.plan_states(db, uid, whose, after_key, limit, at_us)[0],
            )

        def apply(db: Connection) -> tuple[UndoStep, Outcome]:
            if (book := self._ledger.find(db, namespace)) is None:
                return UndoStep(), Outcome(Receipt(0))
            return undo_writes.undo_states(db, self._ledger, book, whose, after_key, limit, at_us)

        return await self._write_step(namespace, by, apply)

    async def _write_step(
        self, namespace: str, by: Caller, apply: Callable[[Connection], tuple[UndoStep, Outcome]]
    ) -> UndoStep:
        owner = (by.name, namespace)
        done = await self._queue.write(apply, self._publish_step, owner=owner, heavy=True, shrinks=True)
        return done[0]

    def _publish_step(self, done: tuple[UndoStep, Outcome]) -> None:
        self._publish(done[1])

    async def _undone(self, namespace: str, tell: Callable[[int, Connection], UndoStep]) -> UndoStep:
        """Return the report of a dry run."""
        info = self._info(namespace)
        return UndoStep() if info is None else await self._read(partial(tell, info.uid))

    async def count_removals(self, namespace: str, whose: WritesBy) -> int:
        info = self._info(namespace)
        if info is None:
            return 0
        uid = info.uid
        return await self._read(lambda db: undo_writes.count_removals(db, uid, whose))
