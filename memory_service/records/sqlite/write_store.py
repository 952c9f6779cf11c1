"""Writes of items and states, which go through the commit queue."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memory_service.data_model import Receipt, RequestKey, Since
from memory_service.operations import AddItems, Operation, RemoveAt, RemoveItems, SaveStates
from memory_service.records.base import WriteStore
from memory_service.records.rules.items import grows
from memory_service.records.sqlite.applying import ManyDerived, apply
from memory_service.records.sqlite.commit_queue import HEAVY_ITEMS
from memory_service.records.sqlite.connection import Connection, translated
from memory_service.records.sqlite.kept_answers import find_receipt
from memory_service.records.sqlite.ledger import Outcome
from memory_service.records.sqlite.store_core import StoreCore
from memory_service.records.terms import terms_of
from memory_service.runtime.caller import ANYBODY, Caller


class SqliteWriteStore(StoreCore, WriteStore):
    """Prepares writes on the event loop; the queue decides where they are applied."""

    async def write(
        self,
        namespace: str,
        operations: Sequence[Operation],
        *,
        request: RequestKey | None = None,
        released: str = "",
        unchanged: Since | None = None,
        facts: Collection[str] = (),
        derived_max: int | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        info = self._info(namespace) if unchanged else None
        # About how many changes must be examined.
        behind = info.revision - unchanged.revision if info and unchanged else 0
        heavy = sum(map(_size, operations)) + behind > HEAVY_ITEMS
        terms = await terms_of(self._analyzer, operations)

        async def write(heavy: bool) -> Receipt:
            def apply_all(db: Connection) -> Outcome:
                return apply(
                    db, self._ledger, namespace, operations, terms, request, by, released, unchanged, facts,
                    derived_max, None if heavy else HEAVY_ITEMS,
                )  # fmt: skip

            if grows(operations):
                receipt = await self._grow(namespace, by, apply_all, request, heavy=heavy)
            else:
                receipt = await self._write(namespace, by, apply_all, heavy=heavy, shrinks=True)
            if heavy:
                await self._follower.absorb(namespace)
            return receipt

        try:
            return await write(heavy)
        except ManyDerived:
            return await write(heavy=True)

    async def find_receipt(self, namespace: str, request: RequestKey) -> Receipt | None:
        info = self._info(namespace)
        if info is None:
            return None
        with translated():
            return find_receipt(self._reader, info.uid, request)


def _size(operation: Operation) -> int:
    match operation:
        case AddItems(writes) | SaveStates(writes):
            return len(writes)
        case RemoveItems(subjects) | RemoveAt(subjects):
            return len(subjects)
    return 1
