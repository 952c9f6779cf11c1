"""Conversion of memories from and to protobuf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memory_service.deciders.base import Category, Importance
from memory_service.domain.facts.outcomes import FactDraft, OnContradiction
from memory_service.domain.facts.reading import UserMemoryReading, Wanted
from memory_service.domain.facts.user_memory import Fact, Source, UserMemory
from memory_service.domain.provenance import provenance_bytes
from memory_service.errors import InvalidArgument
from memory_service.runtime.clock import now_us
from memory_service.server.provenance import fill_known, to_trust
from memory_service.server.values import fill_struct, fill_time, to_dict, to_labels, to_us, ttl_us
from memory_service.v1 import user_memory_pb2 as pb

# Size of a memory in a response, besides its texts, labels and metadata.
_OVERHEAD_BYTES = 400


_CATEGORIES = frozenset(Category)


def to_category(field: str, number: int) -> Category:
    """Return the category for a number."""
    try:
        return Category(number)
    except ValueError:
        problem = "is required" if not number else f"has no value {number}"
        raise InvalidArgument(field, problem) from None


def to_categories(numbers: Sequence[int]) -> list[Category]:
    """Return the categories in a list."""
    # A list may have hundreds of thousands, of which at most eight are distinct.
    different = dict.fromkeys(numbers)
    for number in different:
        if number not in _CATEGORIES:
            to_category(f"categories[{list(numbers).index(number)}]", number)
    return [Category(number) for number in different]


def to_on_contradiction(number: int) -> OnContradiction:
    """Return how to handle a contradiction."""
    try:
        return OnContradiction(number or OnContradiction.SUPERSEDE)
    except ValueError:
        raise InvalidArgument("on_contradiction", f"has no value {number}") from None


def to_fact_draft(request: pb.SaveMemoryRequest) -> FactDraft:
    """Return the fact to be saved."""
    source = request.source
    draft = FactDraft(
        request.content.strip(),
        to_category("category", request.category),
        request.reasoning.strip(),
        Source(item_ids=list(source.item_ids), quote=source.quote, actor=source.actor),
        source.session_id,
        request.explicit_request,
        to_on_contradiction(request.on_contradiction),
        labels=to_labels("labels", request.labels),
        keep_wording=request.keep_wording,
    )
    if request.HasField("valid_from_time"):
        draft.valid_from_us = to_us("valid_from_time", request.valid_from_time)
    if request.HasField("ttl"):
        draft.ttl_us = ttl_us("ttl", request.ttl)
    if request.HasField("metadata"):
        draft.metadata = to_dict("metadata", request.metadata)
    return draft


def to_memory(message: pb.UserMemory, fields: frozenset[str]) -> UserMemory:
    """Return the new values of a memory; fields that `fields` does not name are ignored."""
    category = Category.CONTEXT
    if "category" in fields:
        category = to_category("memory.category", message.category)
    nothing = Importance(0.0, (), (), 0.0)
    fact = Fact(category, message.reasoning.strip(), nothing, 0)
    if message.HasField("valid_from_time"):
        fact.valid_from_us = to_us("memory.valid_from_time", message.valid_from_time)
    elif "valid_from_time" in fields:
        raise InvalidArgument("memory.valid_from_time", "is required")
    if message.HasField("valid_until_time"):
        fact.valid_until_us = to_us("memory.valid_until_time", message.valid_until_time)
    memory = UserMemory(
        message.id, message.content.strip(), fact, labels=to_labels("memory.labels", message.labels)
    )
    if message.HasField("metadata"):
        memory.metadata = to_dict("memory.metadata", message.metadata)
    if message.HasField("expire_time"):
        memory.expire_us = to_us("memory.expire_time", message.expire_time)
    return memory


def to_wanted(
    message: pb.SearchMemoriesRequest | pb.ListMemoriesRequest | pb.GetPreloadedMemoriesRequest,
) -> Wanted:
    """Return the filter for memories that all three requests share."""
    wanted = Wanted(to_categories(message.categories), labels=to_labels("labels", message.labels))
    if message.HasField("as_of_time"):
        wanted.as_of_us = to_us("as_of_time", message.as_of_time)
    if message.HasField("min_importance"):
        wanted.min_importance = message.min_importance
    wanted.min_trust, wanted.sources = to_trust(message)
    return wanted


# --- to protobuf ------------------------------------------------------------------------------


def memory_bytes(memory: UserMemory) -> int:
    """Return the approximate size of a memory in a response."""
    fact = memory.fact
    texts = (memory.content, fact.original_content, fact.reasoning, fact.source.quote)
    ids = (*fact.supersedes, *fact.source.item_ids, *fact.source.memory_ids)
    pairs = sum(len(key) + len(value) + 8 for key, value in memory.labels.items())
    metadata = len(repr(memory.metadata)) if memory.metadata else 0
    known = provenance_bytes(memory.provenance) + sum(len(i) + 4 for i in ids)
    return _OVERHEAD_BYTES + 4 * sum(map(len, texts)) + known + 4 * (pairs + metadata)


class UserMemoryFilling:
    """Fills protobuf memories; `reading` computes their current importance."""

    def __init__(self, reading: UserMemoryReading) -> None:
        self._reading = reading

    def fill(self, target: pb.UserMemory, memory: UserMemory) -> None:
        """Set a protobuf memory."""
        memory = memory.settled(now_us())
        fact = memory.fact
        target.id, target.content, target.reasoning = memory.id, memory.content, fact.reasoning
        target.category = int(fact.category)  # type: ignore[assignment]
        target.status = int(fact.status)  # type: ignore[assignment]
        target.version, target.revision = fact.version, memory.revision
        target.superseded_by, target.original_content = fact.superseded_by, fact.original_content
        target.supersedes.extend(fact.supersedes)
        _fill_times(target, memory)
        target.labels.update(memory.labels)
        if memory.metadata is not None:
            fill_struct(target.metadata, memory.metadata)
        _fill_source(target.source, memory)
        if (known := memory.provenance) is not None:
            fill_known(target.provenance, known, known.source, memory.update_us)
        self._fill_importance(target.importance, memory)

    def fill_all(self, targets: Iterable[pb.UserMemory], memories: Sequence[UserMemory]) -> None:
        """Set several protobuf memories."""
        add = targets.add  # type: ignore[attr-defined]
        for memory in memories:
            self.fill(add(), memory)

    def _fill_importance(self, target: pb.Importance, memory: UserMemory) -> None:
        rated = memory.fact.importance
        target.base, target.score = rated.base, rated.score
        target.decay_factor = self._reading.decay(memory)
        target.current_score = rated.score * target.decay_factor
        target.decided_by = int(memory.fact.importance_by)  # type: ignore[assignment]
        for adjustment in rated.boosts:
            target.boosts.add(name=adjustment.name, amount=adjustment.amount, reason=adjustment.reason)
        for adjustment in rated.reductions:
            target.reductions.add(name=adjustment.name, amount=adjustment.amount, reason=adjustment.reason)


def _fill_times(target: pb.UserMemory, memory: UserMemory) -> None:
    fill_time(target.valid_from_time, memory.fact.valid_from_us)
    if memory.fact.valid_until_us is not None:
        fill_time(target.valid_until_time, memory.fact.valid_until_us)
    if memory.create_us:
        fill_time(target.create_time, memory.create_us)
        fill_time(target.update_time, memory.update_us)
    if memory.expire_us is not None:
        fill_time(target.expire_time, memory.expire_us)


def _fill_source(target: pb.MemorySource, memory: UserMemory) -> None:
    source = memory.fact.source
    target.origin = int(source.origin)  # type: ignore[assignment]
    target.session_id = memory.session_id
    target.item_ids.extend(source.item_ids)
    target.quote, target.actor, target.model = source.quote, source.actor, source.model
    target.memory_ids.extend(source.memory_ids)
