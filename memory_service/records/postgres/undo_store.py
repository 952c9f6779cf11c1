"""Undoes a writer's changes step by step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from memory_service.data_model import ChangeType, ItemWrite, UndoStep, WritesBy
from memory_service.records.base import RestoredFiles, UndoStore
from memory_service.records.postgres import undo_plans
from memory_service.records.postgres.database import Async, Row
from memory_service.records.postgres.item_writes import put_version, remove_item
from memory_service.records.postgres.lookups import Needs
from memory_service.records.postgres.page import Page
from memory_service.records.postgres.rows import text_in
from memory_service.records.postgres.state_writes import remove_state, write_over
from memory_service.records.postgres.store_core import OF_NAME, StoreCore
from memory_service.records.postgres.undo_plans import ItemPlan, Of, StatePlan
from memory_service.records.rules.history import copied
from memory_service.records.rules.items import check_unchanged
from memory_service.records.rules.requests import of_item, of_state
from memory_service.records.rules.undo import Action, check_files, step_of, write_again
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.clock import now_us as present_us

P = TypeVar("P")

_REMOVALS = (
    "SELECT count(*) "
    + OF_NAME.replace(
        "$.namespaces n", "$.namespaces n JOIN $.removals r ON r.part = n.part AND r.uid = n.uid"
    )
    + " AND r.time_us >= %s AND (%s::text IS NULL OR r.writer = %s)"
    " AND (%s::text IS NULL OR r.credential_id = %s)"
)


class PostgresUndoStore(StoreCore, UndoStore):
    """Each step is a transaction."""

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

        async def plan(connection: Async, of: Of) -> tuple[list[ItemPlan], UndoStep]:
            plans = await undo_plans.plan_items(
                connection, self._database, of, whose, after_position, limit, at_us
            )
            positions = [plan.stored.position for plan in plans]
            return plans, step_of({plan.id: plan.undone for plan in plans}, positions, limit)

        async def undo(connection: Async, page: Page, plans: Sequence[ItemPlan]) -> None:
            await self._undo_items(connection, page, plans, files)

        def check(page: Page, plans: Sequence[ItemPlan]) -> None:
            if files is not None:
                revision = page.book.revision if page.book else 0
                check_unchanged(files.unchanged, revision, page.changes_since(files.unchanged.revision))
            check_files({plan.id: plan.undone for plan in plans}, files)

        needs = Needs(since=files.unchanged.revision) if files else None
        return await self._undo(namespace, by, dry_run, plan, undo, check, needs)

    async def _undo(
        self,
        namespace: str,
        by: Caller,
        dry_run: bool,
        plan: Callable[[Async, Of], Awaitable[tuple[list[P], UndoStep]]],
        undo: Callable[[Async, Page, Sequence[P]], Awaitable[None]],
        check: Callable[[Page, Sequence[P]], None] = lambda *_: None,
        needs: Needs | None = None,
    ) -> UndoStep:
        """Plan under the lock of the namespace and apply the plan, or, in a dry run, only plan."""
        step = UndoStep()

        async def prepare(connection: Async, page: Page) -> None:
            nonlocal step
            if page.book is not None:
                plans, step = await plan(connection, Of(page.part, page.book.uid))
                check(page, plans)
                page.touched = bool(plans)
                await undo(connection, page, plans)

        if not dry_run:
            return await self._write_alone(namespace, by, prepare, lambda page: step, needs)
        if (info := await self._info(namespace)) is not None:
            async with self._database.reading() as connection:
                _, step = await plan(connection, Of(Page(namespace).part, info.uid))
        return step

    async def _undo_items(
        self, connection: Async, page: Page, plans: Sequence[ItemPlan], files: RestoredFiles | None
    ) -> None:
        assert page.book is not None
        of, forgotten = Of(page.part, page.book.uid), list[Row]()
        for item_id, stored, undone in plans:
            if undone.action is Action.REMOVE:
                remove_item(page, item_id, stored, ChangeType.ITEM_DELETED)
                continue
            page.forget_told(of_item(item_id))
            if undone.action is Action.RESTORE:
                none = page.book.no_vector_key
                item, terms, key = await undo_plans.kept_item(
                    connection, self._database, of, stored.position, undone.restored, none
                )
                item.provenance = copied(item.provenance, undone.restored)
                facet = files.facets.get((item_id, undone.restored)) if files else None
                item.facet = facet or item.facet
                # If it was of another model, or not embedded at that time, it is pending.
                put_version(page, ItemWrite(item, ""), terms, stored, key < none, kept=False)
            forgotten += [(stored.position, revision) for revision in undone.forgotten]
        await undo_plans.forget(
            connection, self._database, "item_history", of, "position revision", forgotten
        )

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

        async def plan(connection: Async, of: Of) -> tuple[list[StatePlan], UndoStep]:
            after = text_in(after_key)
            plans = await undo_plans.plan_states(connection, self._database, of, whose, after, limit, at_us)
            keys = [plan.key for plan in plans]
            return plans, step_of({plan.key: plan.undone for plan in plans}, keys, limit)

        return await self._undo(namespace, by, dry_run, plan, self._undo_states)

    async def _undo_states(self, connection: Async, page: Page, plans: Sequence[StatePlan]) -> None:
        assert page.book is not None
        of, forgotten = Of(page.part, page.book.uid), list[Row]()
        for key, stored, undone in plans:
            if undone.action is Action.REMOVE:
                remove_state(page, key, stored, ChangeType.STATE_DELETED)
                continue
            page.forget_told(of_state(key))
            kept = text_in(key)
            if undone.action is Action.RESTORE:
                version = await undo_plans.kept_state(connection, self._database, of, kept, undone.restored)
                write_over(page, write_again(version), stored, kept=False)
            forgotten += [(kept, version) for version in undone.forgotten]
        await undo_plans.forget(connection, self._database, "state_history", of, "key version", forgotten)

    async def count_removals(self, namespace: str, whose: WritesBy) -> int:
        writer = None if whose.writer is None else text_in(whose.writer)
        credential_id = None if whose.credential_id is None else text_in(whose.credential_id)
        values = (whose.since_us, writer, writer, credential_id, credential_id)
        return int((await self._fetch_of(_REMOVALS, namespace, *values))[0][0])
