"""What a deletion does to facts that stay: they must not refer to facts that go."""

from __future__ import annotations

from collections.abc import Collection

from memory_service.data_model import Item, ItemFilter, ItemKind, ItemWrite
from memory_service.domain.facts.user_memory import draft_of, memory_of
from memory_service.domain.item_writing import write_of
from memory_service.domain.provenance import Attribution
from memory_service.runtime.clock import now_us
from memory_service.store import Store

_FACTS = frozenset({ItemKind.USER_MEMORY})


async def superseded_by(store: Store, namespace: str, removed: Collection[str]) -> list[Item]:
    """Return the facts that facts to be removed supersede, without those that are to be removed too."""
    reading, now = await store.read(namespace), now_us()
    found: dict[str, Item] = {}
    for memory_id in removed:
        wanted = ItemFilter(now, kinds=_FACTS, tags=(("superseded_by", memory_id),))
        items = await reading.load_items(await reading.scan(wanted, -1, newest=False))
        found.update((item.id, item) for item in items if item is not None and item.id not in removed)
    return list(found.values())


async def orphan_writes(store: Store, namespace: str, removed: Collection[str]) -> list[ItemWrite]:
    """Return the writes that clear the references of other facts to those to be removed."""
    items = await superseded_by(store, namespace, removed)
    memories = [memory.changed(superseded_by="") for item in items if (memory := memory_of(item))]
    drafts = [draft_of(memory, keep_vector=True) for memory in memories]
    fields = [f"memories[{at}]" for at in range(len(drafts))]
    provenances = await Attribution(store).of_drafts(namespace, drafts, fields, None)
    now = now_us()
    return [write_of(draft, known, now) for draft, known in zip(drafts, provenances, strict=True)]
