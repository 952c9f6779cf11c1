"""Documents and fragments, and how they are stored as items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

import msgspec

from memory_service.data_model import (
    Facet,
    Item,
    ItemDraft,
    ItemKind,
    ItemStamp,
    Json,
    Provenance,
    ProvenanceDraft,
    TextPart,
)
from memory_service.domain.ids import new_id
from memory_service.domain.splitting import Piece
from memory_service.limits import Limits
from memory_service.runtime.clock import now_us

DOCUMENT_TAG = "document"
"""Tag of a fragment: the id of its document."""
_PREVIEW_CHARS = 100
_FRAGMENT_KEY_CHARS_MAX = 128
_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
# The next version is sent too, and must fit into 64 bits.
_Version = Annotated[int, msgspec.Meta(ge=1, le=1 << 62)]
_Kept = TypeVar("_Kept", bound=msgspec.Struct)


class KeptDocument(msgspec.Struct, omit_defaults=True):
    """Data stored with the text of a document."""

    version: _Version
    fragments: Annotated[str, msgspec.Meta(max_length=_FRAGMENT_KEY_CHARS_MAX)]
    """The prefix of its fragments' ids; the fragment's index follows."""
    fragment_count: Annotated[int, msgspec.Meta(ge=0, le=Limits.document_fragments_max)]
    title: str = ""
    source: str = ""
    source_item_id: str = ""


class KeptFragment(msgspec.Struct):
    """Data stored with the text of a fragment; offsets as in the proto."""

    document_id: str
    document_version: _Version
    index: _Count
    start: _Count
    end: _Count
    start_byte: _Count
    end_byte: _Count


@dataclass(frozen=True, slots=True)
class Document:
    """A document, and the item that stores it."""

    item: Item
    kept: KeptDocument

    @property
    def text(self) -> str:
        """The whole text."""
        content = self.item.content
        return content.text if isinstance(content, TextPart) else ""

    @property
    def preview(self) -> str:
        """The beginning of the text."""
        text = self.text
        return text if len(text) <= _PREVIEW_CHARS else text[:_PREVIEW_CHARS] + "..."

    def fragment_ids(self, start: int = 0, end: int | None = None) -> list[str]:
        """Return the ids that its fragments should have, in order; an import may lack some."""
        last = self.kept.fragment_count if end is None else min(end, self.kept.fragment_count)
        return [f"{self.kept.fragments}.{index}" for index in range(start, last)]


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment, and the item that stores it."""

    item: Item
    kept: KeptFragment

    @property
    def text(self) -> str:
        """Its text."""
        content = self.item.content
        return content.text if isinstance(content, TextPart) else ""

    def is_of(self, document: Document) -> bool:
        """Return whether it is a piece of this version of this document."""
        return self.item.id == f"{document.kept.fragments}.{self.kept.index}"


@dataclass(slots=True)
class DocumentDraft:
    """A document as the caller sent it; None where the choice is the server's."""

    text: str
    id: str = ""
    title: str = ""
    source: str = ""
    source_item_id: str = ""
    session_id: str = ""
    create_us: int | None = None
    expire_us: int | None = None
    ttl_us: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Json] | None = None
    nbytes: int = 0
    """Size of the document as the caller sent it."""


def document_of(item: Item | None, at_us: int) -> Document | None:
    """Return the document in an item; None if it has expired or is no document."""
    if item is None or item.kind is not ItemKind.DOCUMENT or item.expired(at_us):
        return None
    kept = _kept(item, KeptDocument)
    return Document(item, kept) if kept else None


def fragment_of(item: Item | None, at_us: int) -> Fragment | None:
    """Return the fragment in an item; None if it has expired or is no fragment."""
    if item is None or item.kind is not ItemKind.FRAGMENT or item.expired(at_us):
        return None
    kept = _kept(item, KeptFragment)
    return Fragment(item, kept) if kept else None


def _kept(item: Item, kind: type[_Kept]) -> _Kept | None:
    """Return the service's data in an item; None if an import stored something else."""
    assert item.facet is not None
    if not isinstance(item.content, TextPart):
        return None
    try:
        return msgspec.convert(item.facet.attributes, kind)
    except msgspec.ValidationError:
        return None


def drafts_of(
    draft: DocumentDraft,
    pieces: Sequence[Piece],
    *,
    document_id: str,
    version: int,
    expected_revision: int | None,
) -> list[ItemDraft]:
    """Return the items to write for a document: itself, then its fragments."""
    # The ids contain the version, so that they identify the write.
    fragments = f"{new_id(now_us())}.{version}"
    kept = KeptDocument(version, fragments, len(pieces), draft.title, draft.source, draft.source_item_id)
    document = ItemDraft(
        TextPart(draft.text), document_id, draft.session_id, draft.create_us, draft.expire_us, draft.ttl_us,
        draft.labels, draft.metadata, nbytes=draft.nbytes,
        facet=Facet(ItemKind.DOCUMENT, attributes=msgspec.to_builtins(kept)),
        expected_revision=expected_revision, provenance=_said_of(draft),
    )  # fmt: skip
    return [document, *(_fragment(draft, document_id, version, fragments, *at) for at in enumerate(pieces))]


def _fragment(
    draft: DocumentDraft, document_id: str, version: int, prefix: str, index: int, piece: Piece
) -> ItemDraft:
    kept = KeptFragment(document_id, version, index, piece.start, piece.end, piece.start_byte, piece.end_byte)
    return ItemDraft(
        TextPart(piece.text), f"{prefix}.{index}", draft.session_id, draft.create_us, draft.expire_us,
        draft.ttl_us, draft.labels,
        facet=Facet(ItemKind.FRAGMENT, {DOCUMENT_TAG: document_id}, msgspec.to_builtins(kept)),
        provenance=_said_of(draft),
    )  # fmt: skip


def _said_of(draft: DocumentDraft) -> ProvenanceDraft | None:
    """Return the claims about a document's source: derived from a message, it is trusted no more than
    that.
    """
    if not draft.source_item_id:
        return None
    return ProvenanceDraft(parent_ids=(draft.source_item_id,), lenient=True)


def document_of_stamps(
    draft: DocumentDraft, stamps: Sequence[ItemStamp], provenance: Provenance | None
) -> Document:
    """Return the document that an earlier, equal request wrote, from its receipt."""
    stamp = stamps[0]
    prefix, _, _ = stamps[1].id.rpartition(".")
    version = int(prefix.rpartition(".")[2])
    kept = KeptDocument(version, prefix, len(stamps) - 1, draft.title, draft.source, draft.source_item_id)
    item = Item(
        stamp.id, draft.session_id, TextPart(draft.text), stamp.create_us, stamp.update_us, stamp.expire_us,
        draft.labels, draft.metadata, facet=Facet(ItemKind.DOCUMENT, attributes=msgspec.to_builtins(kept)),
        provenance=provenance, revision=stamp.revision, position=stamp.position,
    )  # fmt: skip
    return Document(item, kept)
