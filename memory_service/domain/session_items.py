"""Sessions, and the item that keeps what is said about one: its title, labels and metadata."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from memory_service.data_model import DataPart, Facet, Item, ItemDraft, ItemKind, Json, SessionCounts
from memory_service.domain.ids import session_item_id

_TITLE = "title"


class KeptSession(msgspec.Struct, omit_defaults=True):
    """What a session was copied from; empty: nothing."""

    forked_session_id: str = ""
    forked_item_id: str = ""
    forked_revision: int = 0


@dataclass(slots=True)
class SessionDraft:
    """New values of a session, as the caller sent them."""

    session_id: str
    title: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Json] | None = None
    nbytes: int = 0


@dataclass(slots=True)
class Session:
    """A session: what its items say about it, and the item with what was said about it, if any."""

    session_id: str
    item_count: int = 0
    first_us: int | None = None
    last_us: int | None = None
    kept: Item | None = None
    participants: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, counts: SessionCounts, kept: Item | None) -> Session:
        """Return a session with these counts."""
        if not counts.item_count:
            return cls(counts.session_id, kept=kept)
        return cls(counts.session_id, counts.item_count, counts.first_us, counts.last_us, kept)

    @property
    def title(self) -> str:
        """The title; empty if there is none."""
        return title_of(self.kept)

    @property
    def version(self) -> int:
        """The version of title, labels and metadata; 0 if none was ever set."""
        return self.kept.revision if self.kept else 0

    @property
    def origin(self) -> KeptSession | None:
        """What it was copied from; None if it was not copied."""
        if self.kept is None or self.kept.facet is None:
            return None
        try:
            kept = msgspec.convert(self.kept.facet.attributes, KeptSession)
        except msgspec.ValidationError:
            return None
        return kept if kept.forked_session_id else None


def title_of(kept: Item | None) -> str:
    """Return the title in a session's own item."""
    title = kept.content.data.get(_TITLE) if kept and isinstance(kept.content, DataPart) else None
    return title if isinstance(title, str) else ""


def kept_of(item: Item | None, session_id: str, at_us: int) -> Item | None:
    """Return the item if it is that of a session, and has not expired."""
    if item is None or item.kind is not ItemKind.SESSION or item.session_id != session_id:
        return None
    return None if item.expired(at_us) else item


def changed(draft: SessionDraft, fields: frozenset[str], current: Item | None) -> ItemDraft:
    """Return the next version of a session's own item, with these fields of a draft.

    It is written only if the present version is `current`.
    """
    before = SessionDraft(draft.session_id)
    if current is not None:
        before = SessionDraft(draft.session_id, title_of(current), current.labels, current.metadata)
    title, labels, metadata = (
        getattr(draft if name in fields else before, name) for name in (_TITLE, "labels", "metadata")
    )
    return ItemDraft(
        DataPart({_TITLE: title} if title else {}),
        session_item_id(draft.session_id),
        draft.session_id,
        labels=dict(labels),
        metadata=metadata,
        create_us=current.create_us if current else None,
        expire_us=current.expire_us if current else None,
        nbytes=draft.nbytes,
        facet=current.facet if current else Facet(ItemKind.SESSION),
        expected_revision=current.revision if current else 0,
    )
