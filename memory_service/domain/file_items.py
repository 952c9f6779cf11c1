"""Files and their fragments, and how they are stored as items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from memory_service.data_model import Facet, Item, ItemDraft, ItemKind, ProvenanceDraft, TextPart
from memory_service.domain.file_paths import FILE_TAG, tags_of
from memory_service.domain.file_text import FileText
from memory_service.domain.ids import file_fragment_id
from memory_service.domain.splitting import Piece
from memory_service.limits import Limits

_RESULT_BYTES = 600
"""Approximate size of a result without its text."""
FRAGMENT_NUMBER_MAX = (1 << 31) - 1
_Count = Annotated[int, msgspec.Meta(ge=0, le=FRAGMENT_NUMBER_MAX)]


class KeptFile(msgspec.Struct):
    """Data stored with the text of a file."""

    path: str
    fragments: Annotated[list[tuple[_Count, _Count]], msgspec.Meta(max_length=Limits.document_fragments_max)]
    """Number and start of each fragment, in code points. The number is the end of the fragment's id."""
    next: _Count = 0
    """The number of the next fragment: none is used twice."""
    size_bytes: _Count = 0
    """Size of the text in UTF-8, known without reading it."""


@dataclass(frozen=True, slots=True)
class File:
    """A file, and the item that stores it."""

    item: Item
    kept: KeptFile

    @property
    def path(self) -> str:
        """Its path."""
        return self.kept.path

    @property
    def text(self) -> str:
        """Its content, if that was read."""
        content = self.item.content
        return content.text if isinstance(content, TextPart) else ""

    @property
    def version(self) -> int:
        """The version: the revision at which it was written, which no other version has."""
        return self.item.revision

    def start_of(self, fragment: Item) -> int | None:
        """Return where a fragment starts in the text; None if this version does not have it."""
        number = fragment.id.rpartition(".")[2]
        starts = (start for one, start in self.kept.fragments if str(one) == number)
        return next(starts, None) if fragment.id == file_fragment_id(self.item.id, number) else None


@dataclass(slots=True)
class FileDraft:
    """The items to write for a version of a file, and the ids of fragments to remove."""

    drafts: list[ItemDraft]
    text: FileText
    removals: list[str] = field(default_factory=list)


def answer_bytes(fragment: Item) -> int:
    """Return the approximate size of a fragment in an answer."""
    text = fragment.content.text if isinstance(fragment.content, TextPart) else ""
    return len(text.encode()) + _RESULT_BYTES


def file_of(item: Item | None, at_us: int) -> File | None:
    """Return the file in an item; None if it has expired or is no file."""
    if item is None or item.facet is None or item.kind is not ItemKind.FILE or item.expired(at_us):
        return None
    try:
        return File(item, msgspec.convert(item.facet.attributes, KeptFile))
    except msgspec.ValidationError:
        return None


def draft_of(
    path: str,
    text: FileText,
    pieces: Sequence[Piece],
    *,
    file_id: str,
    current: File | None,
    fragments: Sequence[Item],
    reuse: bool,
    claims: ProvenanceDraft | None,
) -> FileDraft:
    """Return the items to write for the next version of a file: itself, then its new fragments.

    `fragments` are those of the current version. With `reuse`, those whose text is still there remain.
    """
    spare: dict[str, list[Item]] = {}
    for item in reversed(fragments) if reuse else ():
        if isinstance(item.content, TextPart):
            spare.setdefault(item.content.text, []).append(item)
    number = current.kept.next if current else 0
    kept, added, places = set(), [], []
    for piece in pieces:
        if known := spare.get(piece.text):
            item = known.pop()
            kept.add(item.id)
            places.append((int(item.id.rpartition(".")[2]), piece.start))
        else:
            added.append(_fragment(file_id, number, piece.text, claims))
            places.append((number, piece.start))
            number += 1
    kept_file = KeptFile(path, places, number, len(text.data))
    file = ItemDraft(
        TextPart(text.text),
        file_id,
        create_us=current.item.create_us if current else None,
        facet=Facet(ItemKind.FILE, tags_of(path), msgspec.to_builtins(kept_file)),
        expected_revision=current.version if current else 0,
        provenance=claims,
        nbytes=len(text.data),
    )
    # A number may have been used by a write that did not finish.
    removed = {item.id for item in fragments} - kept - {draft.id for draft in added}
    return FileDraft([file, *added], text, sorted(removed))


def _fragment(file_id: str, number: int, text: str, claims: ProvenanceDraft | None) -> ItemDraft:
    facet = Facet(ItemKind.FILE_FRAGMENT, {FILE_TAG: file_id})
    return ItemDraft(TextPart(text), file_fragment_id(file_id, number), facet=facet, provenance=claims)
