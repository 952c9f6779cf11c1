"""Parents that an import has after the items that were made from them."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import Item, ItemDraft, ItemKind, parents_of
from memory_service.runtime.caller import present_caller
from memory_service.store import Store

# Each takes some 300 bytes. Doubled: an import of items whose parents never come holds 6 MB more; halved: an
# import with so many late parents links fewer of them.
_WAITING_MAX = 20_000
# An item may have a hundred parents. Doubled: the event loop is blocked twice as long; halved: twice as many
# transactions.
_LINKED_AT_ONCE = 50


class LateParents:
    """Links the items of one import to their parents, in whatever order they come.

    An export has items in the order of their last writes, so a parent that was updated comes late.
    """

    def __init__(self, store: Store, namespace: str) -> None:
        self._store = store
        self._namespace = namespace
        self._waiting: dict[str, set[str]] = {}
        """Ids of items, by the missing parent."""
        self._count = 0

    async def imported(self, drafts: Sequence[ItemDraft]) -> None:
        """Link what a batch wrote, and what waits for it."""
        ids = [draft.id for draft in drafts if _may_have_parents(draft)]
        for draft in drafts:
            waiting = self._waiting.pop(draft.id, set())
            self._count -= len(waiting)
            ids += waiting
        if not ids:
            return
        items = await self._store.get_items(self._namespace, list(dict.fromkeys(ids)))
        named = dict.fromkeys(parent for item in items.values() for parent in parents_of(item))
        parents = await self._store.get_items(self._namespace, list(named)) if named else {}
        late = [item for item in items.values() if _has_later(item, parents)]
        for start in range(0, len(late), _LINKED_AT_ONCE):
            some = late[start : start + _LINKED_AT_ONCE]
            await self._store.link_parents(self._namespace, some, by=present_caller())
        for item in items.values():
            for parent in parents_of(item):
                if parent not in parents and self._count < _WAITING_MAX:
                    self._wait(item.id, parent)

    def _wait(self, item_id: str, parent: str) -> None:
        waiting = self._waiting.setdefault(parent, set())
        self._count -= len(waiting)
        waiting.add(item_id)
        self._count += len(waiting)


def _may_have_parents(draft: ItemDraft) -> bool:
    said = draft.provenance and draft.provenance.claimed
    is_response = draft.facet is not None and draft.facet.kind is ItemKind.RESPONSE
    return bool(draft.id) and (is_response or bool(said and said.parent_ids))


def _has_later(item: Item, parents: dict[str, Item]) -> bool:
    """Return whether a parent of an item was added after it."""
    return any(parent in parents and parents[parent].position > item.position for parent in parents_of(item))
