"""Undo the writes of a writer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

from memory_service.data_model import Receipt, RequestKey, UndoStep, WritesBy
from memory_service.domain.checks import Checks
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.embedding import TextEmbedding
from memory_service.domain.file_undo import FilesPlanned, FileUndo
from memory_service.errors import Conflict, InvalidArgument
from memory_service.records.base import FilesRestored
from memory_service.runtime.caller import present_caller
from memory_service.store import Store

# A step takes no longer than a large batch of items.
_AT_ONCE = 200
_IDS_MAX = 100

P = TypeVar("P", int, str)


@dataclass(slots=True)
class Undone:
    """The writes that were undone, or would be."""

    removed_count: int = 0
    restored_count: int = 0
    unrestorable_count: int = 0
    unrestorable: list[str] = field(default_factory=list)
    revision: int = 0

    def add(self, step: UndoStep) -> None:
        """Add the result of a step."""
        self.removed_count += step.removed_count
        self.restored_count += step.restored_count
        self.unrestorable_count += len(step.unrestorable)
        self.unrestorable += step.unrestorable[: _IDS_MAX - len(self.unrestorable)]


class Undo:
    """Undoes writes, step by step."""

    def __init__(self, store: Store, embedding: TextEmbedding, checks: Checks, files: FileUndo) -> None:
        self._files = files
        self._store = store
        self._embedding = embedding
        self._checks = checks
        # Locks of running repeatable requests. A repetition on another server shares its steps.
        self._repeated = WeakValueDictionary[tuple[str, str], asyncio.Lock]()

    async def undo_writes(
        self, namespace: str, whose: WritesBy, *, dry_run: bool, request: RequestKey | None
    ) -> Undone:
        """Undo the writes that `whose` selects; see `UndoStore`."""
        self._check(namespace, whose, request)
        if request is None:
            return await self._undo(namespace, whose, dry_run, None)
        if dry_run:
            raise InvalidArgument("dry_run", "cannot be given together with request_id")
        # The undo takes many steps: a repeated request waits for the total result.
        async with self._repeated.setdefault((namespace, request.id), asyncio.Lock()):
            if (earlier := await self._store.find_receipt(namespace, request)) is not None:
                return _of(earlier)
            return await self._undo(namespace, whose, dry_run, request)

    async def _undo(
        self, namespace: str, whose: WritesBy, dry_run: bool, request: RequestKey | None
    ) -> Undone:
        done = Undone()
        # A repeatable request is remembered: its repetition must not undo what is written in between.
        if request is None and await self._store.namespace(namespace) is None:
            return done
        done.unrestorable_count = await self._store.count_removals(namespace, whose)

        async def items(after: int) -> UndoStep:
            return await self._undo_items(namespace, whose, after, dry_run=dry_run)

        async def states(after: str) -> UndoStep:
            return await self._store.undo_states(
                namespace, whose, after, _AT_ONCE, dry_run=dry_run, by=present_caller()
            )

        held = self._store.count_held if dry_run else partial(self._store.drop_held_by, by=present_caller())
        done.removed_count += await held(namespace, whose)
        await _all(items, 0, done)
        await _all(states, "", done)
        if request is not None:
            receipt = Receipt(0, removed_count=done.removed_count, restored_count=done.restored_count)
            receipt.unrestorable_count, receipt.note = done.unrestorable_count, list(done.unrestorable)
            receipt = await self._store.record_request(namespace, receipt, request, by=present_caller())
            # Another server finished the same request first: both return its answer.
            done = _of(receipt) if receipt.replayed else done
            done.revision = receipt.revision
        info = await self._store.namespace(namespace)
        if info is not None:
            done.revision = done.revision or info.revision
            if info.pending_count:
                self._embedding.waiting.add(namespace)
        return done

    async def _undo_items(self, namespace: str, whose: WritesBy, after: int, *, dry_run: bool) -> UndoStep:
        """Undo some items. Files among them come back with their fragments, at a path that is free."""
        planned: FilesPlanned | None = None
        lost: Conflict
        for attempt in range(TRIES):
            try:
                step = await self._store.undo_items(
                    namespace, whose, after, _AT_ONCE,
                    dry_run=dry_run, files=planned.files if planned else None, by=present_caller(),
                )  # fmt: skip
            except FilesRestored as error:
                planned, lost = await self._files.plan(namespace, error.files, whose), error
            except Conflict as error:
                planned, lost = None, error
                await pause_after(attempt)
            else:
                if planned is not None:
                    await self._files.clean(namespace, planned)
                return step
        raise lost

    def _check(self, namespace: str, whose: WritesBy, request: RequestKey | None) -> None:
        self._checks.namespace(namespace)
        bytes_max = self._checks.limits.name_bytes_max
        self._checks.name("writer", whose.writer or "", bytes_max, required=False)
        self._checks.name("credential_id", whose.credential_id or "", bytes_max, required=False)
        if request is not None:
            self._checks.request_id(request.id)


async def _all(step: Callable[[P], Awaitable[UndoStep]], first: P, done: Undone) -> None:
    """Run all steps. Undone writes are no longer found, so a step continues from a place, not a count."""
    after = first
    while True:
        did = await step(after)
        done.add(did)
        if did.following is None:
            return
        after = did.following  # type: ignore[assignment]


def _of(receipt: Receipt) -> Undone:
    """Return the answer to a request that was applied before."""
    return Undone(
        receipt.removed_count, receipt.restored_count, receipt.unrestorable_count, list(receipt.note),
        receipt.revision,
    )  # fmt: skip
