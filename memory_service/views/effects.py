"""What a write to the database changes in the view of its namespace."""

from __future__ import annotations

from memory_service.data_model import ItemWrite, NamespaceInfo
from memory_service.indexes.view import Entry, NamespaceView
from memory_service.records.rules import index_labels
from memory_service.records.sqlite.commit_queue import HEAVY_ITEMS
from memory_service.records.sqlite.ledger import Outcome
from memory_service.records.sqlite.schema import vector_key
from memory_service.views.cache import Effect


def effect_of(outcome: Outcome, info: NamespaceInfo) -> Effect:
    """Return what a write changes in the view of its namespace."""
    epoch = info.vector_epoch
    added = [_entry(write, terms, epoch) for write, terms in outcome.added]
    replaced = [(_entry(write, terms, epoch), write.keep_vector) for write, terms in outcome.replaced]
    added_positions = {entry.position for entry in added}

    def effect(view: NamespaceView) -> None:
        if outcome.moved:
            view.give_up_vectors(epoch, info.dimension)
        for fill in outcome.filled:
            if fill.vector is not None and view.vector_epoch == epoch:
                view.fill_vector(fill.position, fill.vector, vector_key(epoch, fill.revision))
        view.remove(outcome.removed)
        # Before others are added, which would have to be indexed for it, all in one piece.
        for entry, keep_vector in replaced:
            if entry.position not in added_positions:
                view.replace(entry, keep_vector=keep_vector)
        if len(added) > HEAVY_ITEMS:
            # Who writes so many has them indexed in parts: see `ViewCache.index_added`.
            view.add_many(added)
        else:
            for entry in added:
                view.add(entry)
        for entry, keep_vector in replaced:
            if entry.position in added_positions:
                view.replace(entry, keep_vector=keep_vector)

    return effect


def _entry(write: ItemWrite, terms: bytes, epoch: int) -> Entry:
    item = write.item
    return Entry(
        item.position,
        vector_key(epoch, item.revision),
        item.session_id,
        item.create_us,
        item.expire_us,
        index_labels(item.labels, item.facet),
        item.kind,
        terms,
        item.embedding,
        item,
    )
