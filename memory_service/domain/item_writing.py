"""Writes of items: what a request writes, and what it or an earlier, equal one has written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from memory_service.data_model import (
    CLIENT_MODEL,
    CONVERSATION_KINDS,
    DegradationReason,
    Item,
    ItemDraft,
    ItemStamp,
    ItemWrite,
    Json,
    Provenance,
    Receipt,
    RequestKey,
    TextPart,
)
from memory_service.domain.embedding import Degradation
from memory_service.domain.ids import new_id
from memory_service.domain.interaction_items import current_facet
from memory_service.domain.provenance import of_update
from memory_service.domain.search_text import indexed_speaker, indexed_text
from memory_service.errors import InvalidArgument, NotFound

UPDATABLE = frozenset(
    (
        "content", "session_id", "create_time", "expire_time", "ttl", "labels", "metadata", "embedding",
        "importance", "index",
    )
)  # fmt: skip

_ANY_CONTENT = TextPart("-")
_ATTRIBUTES = {
    "session_id": "session_id",
    "create_time": "create_us",
    "expire_time": "expire_us",
    "ttl": "ttl_us",
    "labels": "labels",
    "metadata": "metadata",
    "embedding": "embedding",
    "importance": "importance",
    "index": "index",
}
_DEFAULTS: dict[str, object] = {
    "session_id": "", "create_us": None, "expire_us": None, "ttl_us": None, "labels": {}, "metadata": None,
    "embedding": None, "importance": None, "index": None,
}  # fmt: skip


@dataclass(slots=True)
class Added:
    """What was written."""

    items: list[Item]
    receipt: Receipt
    degraded: list[Degradation] = field(default_factory=list)


class Remembered(msgspec.Struct, omit_defaults=True, frozen=True):
    """What a receipt keeps of a request's answer; a write in quarantine keeps it until its release."""

    note: list[Json] = []
    seen: list[tuple[str, int]] = []
    missing_parents: list[str] = []

    def put_into(self, receipt: Receipt) -> None:
        """Complete the receipt of the write."""
        receipt.note, receipt.seen = list(self.note), list(self.seen)
        receipt.missing_parents = list(self.missing_parents)


NOTHING_REMEMBERED = Remembered()

Complete = Callable[[Added], None]
"""Completes the receipt of a write with other data of its answer, once the write is done."""


def write_of(draft: ItemDraft, provenance: Provenance | None, now: int) -> ItemWrite:
    """Return the write of a new item, with defaults for what the caller left open."""
    assert draft.content is not None
    item = Item(
        id=draft.id or new_id(now),
        session_id=draft.session_id,
        content=draft.content,
        create_us=now if draft.create_us is None else draft.create_us,
        update_us=now,
        expire_us=draft.expire_us if draft.ttl_us is None else now + draft.ttl_us,
        labels=draft.labels,
        metadata=draft.metadata,
        embedding=draft.embedding,
        facet=draft.facet,
        importance=draft.importance,
        provenance=provenance,
        index=draft.index,
    )
    item.ttl_us = None if item.expire_us is None else item.expire_us - now
    model = draft.model if draft.embedding is not None else ""
    return ItemWrite(
        item, indexed_text(item), model, draft.keep_vector, draft.expected_revision, indexed_speaker(item),
        keep_create_us=draft.create_us is None and draft.facet is None, new_id=not draft.id,
        default_ttl=_takes_default_ttl(draft, item),
        parents_exist=provenance is not None and bool(provenance.parent_ids) and not _is_imported(draft),
    )  # fmt: skip


def forget_parents(namespace: str, writes: Sequence[ItemWrite], missing: frozenset[str]) -> None:
    """Forget missing parents of items. Raises NotFound for an item of which nothing else is left."""
    for write in writes:
        before = write.item.provenance
        if before is None or missing.isdisjoint(before.parent_ids):
            continue
        left = tuple(parent for parent in before.parent_ids if parent not in missing)
        if not left:
            raise NotFound.item(namespace, before.parent_ids[0])
        write.item.provenance = msgspec.structs.replace(before, parent_ids=left)


def _takes_default_ttl(draft: ItemDraft, item: Item) -> bool:
    """Whether an item expires after the default ttl of its namespace."""
    return item.expire_us is None and item.kind in CONVERSATION_KINDS and not _is_imported(draft)


def _is_imported(draft: ItemDraft) -> bool:
    return draft.provenance is not None and draft.provenance.imported


def changed_item(current: Item, draft: ItemDraft, fields: frozenset[str], now: int) -> ItemWrite:
    """Return the write that changes these fields of an item. Raises InvalidArgument for a vector of an item
    that searches do not find.
    """
    item = msgspec.structs.replace(current, update_us=now, embedding=None, wire=None, framed=None)
    if "content" in fields and draft.content is not None:
        item.content = draft.content
    for name in ("session_id", "labels", "metadata", "importance", "index"):
        if name in fields:
            setattr(item, name, getattr(draft, name))
    if "create_time" in fields:
        item.create_us = now if draft.create_us is None else draft.create_us
    if "ttl" in fields and draft.ttl_us is not None:
        item.expire_us, item.ttl_us = now + draft.ttl_us, draft.ttl_us
    elif "expire_time" in fields:
        item.expire_us = draft.expire_us
        item.ttl_us = None if item.expire_us is None else item.expire_us - now
    item.facet = current_facet(item)
    whole = fields >= UPDATABLE - {"ttl", "expire_time", "index"}
    item.provenance = of_update(current, whole=whole, content="content" in fields)
    keep = fields.isdisjoint(("embedding", "content", "index"))
    model = ""
    if "embedding" in fields and draft.embedding is not None:
        check_vector(item, "item.embedding")
        item.embedding, model = draft.embedding, CLIENT_MODEL
    return ItemWrite(item, indexed_text(item), model, keep, speaker=indexed_speaker(item))


def check_vector(item: Item | ItemDraft, field: str) -> None:
    """Refuse a vector for an item that searches do not find."""
    if item.index == "":
        raise InvalidArgument(field, "cannot be given for an item whose index is empty")


def of_fields(draft: ItemDraft, fields: frozenset[str]) -> ItemDraft:
    """Return a draft of these fields alone, with valid content even if that is not among them."""
    taken = dataclasses.replace(draft)
    if "content" not in fields:
        taken.content = _ANY_CONTENT
    for name, attribute in _ATTRIBUTES.items():
        if name not in fields:
            setattr(taken, attribute, _DEFAULTS[attribute])
    return taken


def nothing_to_change(draft: ItemDraft, now: int) -> Item:
    """Return the empty item to which an update of a missing item is applied."""
    return Item(draft.id, "", TextPart(""), now, now)


def completed(request: RequestKey | None, complete: Callable[[Receipt], None]) -> RequestKey | None:
    return None if request is None else dataclasses.replace(request, complete=complete)


def degraded_as_kept(degraded: Sequence[Degradation]) -> list[tuple[int, str]]:
    return [(int(each.reason), each.message) for each in degraded]


def added_of(writes: Sequence[ItemWrite], receipt: Receipt, degraded: list[Degradation]) -> Added:
    """Return what was written; for an earlier, equal request with the degradations of then."""
    if receipt.replayed:
        degraded = degraded_then(receipt)
        return Added([write.item for write in writes], receipt, degraded)
    return Added(written_items(writes, receipt), receipt, degraded)


def written_items(writes: Sequence[ItemWrite], receipt: Receipt) -> list[Item]:
    """Return those of the intended items that were written."""
    if len(receipt.items) == len(writes):
        return [write.item for write in writes]
    written = {stamp.id for stamp in receipt.items}
    return [write.item for write in writes if write.item.id in written]


def degraded_then(receipt: Receipt) -> list[Degradation]:
    """Return the degradations reported to the original request of a receipt."""
    return [Degradation(DegradationReason(reason), message) for reason, message in receipt.degraded]


def stamped(item: Item, stamp: ItemStamp, provenance: Provenance | None) -> Item:
    return msgspec.structs.replace(
        item,
        provenance=provenance,
        id=stamp.id,
        revision=stamp.revision,
        position=stamp.position,
        create_us=stamp.create_us,
        update_us=stamp.update_us,
        expire_us=stamp.expire_us,
        wire=None,
        framed=None,
    )


def written_then(
    added: Added, drafts: Sequence[ItemDraft]
) -> Iterator[tuple[Item, ItemDraft, ItemStamp, Provenance]]:
    """Yield what the first execution of a request wrote, without the items that it skipped."""
    waiting = added.receipt.written()
    found = next(waiting, None)
    for item, draft in zip(added.items, drafts, strict=False):
        if found is not None and draft.id in ("", found[0].id):
            yield item, draft, *found
            found = next(waiting, None)
