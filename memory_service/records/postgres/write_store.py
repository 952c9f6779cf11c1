"""Writes of items and states, which are grouped with others."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memory_service.data_model import ItemWrite, Receipt, RequestKey, Since, parents_of
from memory_service.operations import (
    AddItems,
    Operation,
    RemoveAt,
    RemoveItem,
    RemoveItems,
    RemoveState,
    ReplaceItem,
    SaveStates,
)
from memory_service.records.base import WriteStore
from memory_service.records.postgres.applying import apply
from memory_service.records.postgres.lookups import FIND_REQUEST, Needs, kept_request
from memory_service.records.postgres.page import Page
from memory_service.records.postgres.requests import receipt_of
from memory_service.records.postgres.rows import text_in
from memory_service.records.postgres.schema import part_of
from memory_service.records.postgres.store_core import StoreCore
from memory_service.records.terms import terms_of
from memory_service.runtime.caller import ANYBODY, Caller


class PostgresWriteStore(StoreCore, WriteStore):
    """Lists what a write needs to know; the queue looks it up for a whole group."""

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
        terms = await terms_of(self._analyzer, operations)
        needs = Needs(
            items=[], positions=[], families=[], families_at=[], states=[],
            requests=[request.id] if request else [],
            held=[released] if released else [],
            since=unchanged.revision if unchanged else None,
        )  # fmt: skip
        for operation in operations:
            _name(operation, needs)

        def apply_all(page: Page) -> Receipt:
            return apply(
                page, operations, terms, request, by, released, unchanged, facts, derived_max,
                keeps_history=self._keeps_history, bytes_max=self._namespace_bytes_max,
            )  # fmt: skip

        return await self._write(namespace, by, needs, apply_all)

    async def find_receipt(self, namespace: str, request: RequestKey) -> Receipt | None:
        values = [part_of(namespace)], [text_in(namespace)], [text_in(request.id)]
        rows = await self._fetch(FIND_REQUEST, values)
        return receipt_of(request, kept_request(rows[0][2:])) if rows else None


def _name(operation: Operation, needs: Needs) -> None:
    """Add the items and states that an operation names, except ids that are new."""
    match operation:
        case AddItems(writes):
            needs.items += [write.item.id for write in writes if not write.new_id]
            for write in writes:
                _name_parents(write, needs)
        case ReplaceItem(write):
            needs.items.append(write.item.id)
            _name_parents(write, needs)
        case RemoveItem(item_id, derived=derived):
            needs.items.append(item_id)
            if derived:
                needs.families.append(item_id)
        case RemoveItems(item_ids, derived=derived):
            needs.items += item_ids
            if derived:
                needs.families += item_ids
        case RemoveAt(positions, derived=derived):
            needs.positions += positions
            if derived:
                needs.families_at += positions
        case SaveStates(writes):
            needs.states += [write.key for write in writes]
        case RemoveState(key):
            needs.states.append(key)


def _name_parents(write: ItemWrite, needs: Needs) -> None:
    """Add the parents of an item; if it may exist, its descendants then descend from these too."""
    if parents := parents_of(write.item):
        needs.items += parents
        if not write.new_id:
            needs.families.append(write.item.id)
