"""A fact about a user, and the item that stores it."""

from __future__ import annotations

import enum
from typing import Annotated, Any

import msgspec

from memory_service.data_model import (
    UNATTRIBUTED,
    Facet,
    Item,
    ItemDraft,
    ItemKind,
    Json,
    Provenance,
    ProvenanceDraft,
    SourceKind,
    TextPart,
)
from memory_service.deciders.base import Category, Importance
from memory_service.decisions import DecidedBy

# The range of a Timestamp: the years 1 to 9999.
_Time = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000_000, lt=253_402_300_800_000_000)]
# The next version is sent too, and must fit into 64 bits.
_Version = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_TOP_SCORE = 10
"""A fact rated this high or higher has the greatest importance of an item."""


class Status(enum.IntEnum):
    """Whether a memory still holds; the numbers equal the proto's."""

    ACTIVE = 1
    SUPERSEDED = 2
    MERGED = 3


class Origin(enum.IntEnum):
    """How a memory came about; the numbers equal the proto's."""

    SAVED = 1
    EXTRACTED = 2
    CONSOLIDATED = 3


class Source(msgspec.Struct):
    """Where a memory came from; its session is that of its item."""

    origin: Origin = Origin.SAVED
    item_ids: list[str] = []
    quote: str = ""
    actor: str = ""
    memory_ids: list[str] = []
    model: str = ""


class Fact(msgspec.Struct):
    """The stored data of a memory besides its content.

    `valid_until_us` is the first moment at which it no longer holds.
    """

    category: Category
    reasoning: str
    importance: Importance
    valid_from_us: _Time
    importance_by: DecidedBy = DecidedBy.RULES
    version: _Version = 1
    status: Status = Status.ACTIVE
    valid_until_us: _Time | None = None
    superseded_by: str = ""
    supersedes: list[str] = []
    original_content: str = ""
    source: Source = msgspec.field(default_factory=Source)


class UserMemory(msgspec.Struct):
    """A memory as it is stored. `update_us`, `create_us` and `revision` are those of its item."""

    id: str
    content: str
    fact: Fact
    session_id: str = ""
    labels: dict[str, str] = {}
    metadata: dict[str, Json] | None = None
    create_us: int = 0
    update_us: int = 0
    expire_us: int | None = None
    revision: int = 0
    provenance: Provenance | None = None
    """As stored or to be stored; None also before it is known."""

    @property
    def trust(self) -> float:
        """How far to trust it, 0 to 1."""
        return (self.provenance or UNATTRIBUTED).trust

    def expired(self, time_us: int) -> bool:
        """Return whether it has expired by a time."""
        return self.expire_us is not None and self.expire_us <= time_us

    def holds_at(self, time_us: int) -> bool:
        """Return whether it held at a time, according to what is known now."""
        fact = self.fact
        if fact.status is Status.MERGED or time_us < fact.valid_from_us:
            return False
        return fact.valid_until_us is None or time_us < fact.valid_until_us

    def settled(self, time_us: int) -> UserMemory:
        """Return it with its status at a time. A memory that will end later is still active."""
        fact = self.fact
        if fact.status is Status.MERGED:
            return self
        ended = fact.valid_until_us is not None and fact.valid_until_us <= time_us
        status = Status.SUPERSEDED if ended else Status.ACTIVE
        if status is fact.status:
            return self
        return msgspec.structs.replace(self, fact=msgspec.structs.replace(fact, status=status))

    def changed(self, content: str | None = None, **changes: Any) -> UserMemory:
        """Return its next version."""
        fact = msgspec.structs.replace(self.fact, version=self.fact.version + 1, **changes)
        return msgspec.structs.replace(self, fact=fact, content=self.content if content is None else content)


def memory_of(item: Item) -> UserMemory | None:
    """Return the memory in an item; None if an import stored something else there."""
    if item.kind is not ItemKind.USER_MEMORY or item.facet is None or not isinstance(item.content, TextPart):
        return None
    try:
        fact = msgspec.convert(item.facet.attributes, Fact)
    except msgspec.ValidationError:
        return None
    return UserMemory(
        item.id,
        item.content.text,
        fact,
        item.session_id,
        item.labels,
        item.metadata,
        item.create_us,
        item.update_us,
        item.expire_us,
        item.revision,
        item.provenance,
    )


def draft_of(memory: UserMemory, *, keep_vector: bool = False) -> ItemDraft:
    """Return the write of a memory: on condition that its item is unchanged since it was read; new if it has
    no revision. `keep_vector`: its content has not changed.
    """
    fact = memory.fact
    tags = {"category": fact.category.name.lower(), "status": fact.status.name.lower()}
    if fact.superseded_by:
        tags["superseded_by"] = fact.superseded_by
    draft = ItemDraft(
        TextPart(memory.content),
        memory.id,
        memory.session_id,
        create_us=memory.create_us,
        expire_us=memory.expire_us,
        labels=memory.labels,
        metadata=memory.metadata,
        facet=Facet(ItemKind.USER_MEMORY, tags, msgspec.to_builtins(fact)),
        importance=min(max(fact.importance.score / _TOP_SCORE, 0.0), 1.0),
    )
    draft.keep_vector, draft.expected_revision = keep_vector, memory.revision
    draft.provenance = _said_of(memory)
    return draft


def _said_of(memory: UserMemory) -> ProvenanceDraft | None:
    """Return the claims about a memory's origin: its sources', or the previous version's. It is trusted no
    more than these.
    """
    if memory.revision:
        known = memory.provenance
        if known is None:
            return None
        return ProvenanceDraft(
            known.source, known.source_uri, known.parent_ids, known.model, known.trust, lenient=True
        )
    source = memory.fact.source
    parents = (*source.item_ids, *source.memory_ids)
    if source.origin is Origin.SAVED and not parents:
        return None
    return ProvenanceDraft(SourceKind.DERIVED, "", parents, source.model, lenient=True)
