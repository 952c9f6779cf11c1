"""Validates imported service data of items: it must be data that the service could have stored."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

from memory_service.data_model import Facet, ItemKind
from memory_service.domain.documents import KeptDocument, KeptFragment
from memory_service.domain.facts.imported import MEMORY_CHARS_MAX, VERSION_MAX, ImportedFact
from memory_service.domain.file_items import FRAGMENT_NUMBER_MAX, KeptFile
from memory_service.domain.file_paths import PATH_BYTES_MAX, fault_of_path, tags_of
from memory_service.domain.interactions import SENDER_BYTES_MAX
from memory_service.domain.session_items import KeptSession
from memory_service.errors import InvalidArgument
from memory_service.limits import Limits

FACET_BYTES_MAX = 64 * 1024
_TAGS_MAX = 8
_TAG_KEY_CHARS_MAX = 64
# A tag holds an id, a session or a sender, none of which is longer.
_TAG_CHARS_MAX = 256
_TEXTS = frozenset(
    {ItemKind.USER_MEMORY, ItemKind.DOCUMENT, ItemKind.FRAGMENT, ItemKind.FILE, ItemKind.FILE_FRAGMENT}
)
_PATH = re.compile(r"`\$\.?([\w.\[\]]*)`$")
_TagKey = Annotated[str, msgspec.Meta(max_length=_TAG_KEY_CHARS_MAX)]
_Tag = Annotated[str, msgspec.Meta(max_length=_TAG_CHARS_MAX)]
_Tags = Annotated[dict[_TagKey, _Tag], msgspec.Meta(max_length=_TAGS_MAX)]
_Id = Annotated[str, msgspec.Meta(max_length=Limits.id_bytes_max)]
_Version = Annotated[int, msgspec.Meta(ge=1, le=VERSION_MAX)]


class _Document(KeptDocument, omit_defaults=True, kw_only=True):
    version: _Version
    title: Annotated[str, msgspec.Meta(max_length=Limits.document_title_bytes_max)] = ""
    source: Annotated[str, msgspec.Meta(max_length=Limits.document_source_bytes_max)] = ""
    source_item_id: _Id = ""

    def __post_init__(self) -> None:
        _check_bytes(self.title, Limits.document_title_bytes_max)
        _check_bytes(self.source, Limits.document_source_bytes_max)


class _Fragment(KeptFragment, kw_only=True):
    document_id: _Id
    document_version: _Version


class _Interaction(msgspec.Struct):
    sender: Annotated[str, msgspec.Meta(max_length=SENDER_BYTES_MAX)] = ""

    def __post_init__(self) -> None:
        _check_bytes(self.sender, SENDER_BYTES_MAX)


class _Reflection(_Interaction):
    interaction_ids: Annotated[list[_Id], msgspec.Meta(max_length=Limits.source_ids_max)] = []


class _Session(KeptSession, omit_defaults=True):
    forked_session_id: Annotated[str, msgspec.Meta(max_length=Limits.session_id_bytes_max)] = ""
    forked_item_id: _Id = ""
    forked_revision: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)] = 0


class _OfSession(msgspec.Struct):
    attributes: _Session = msgspec.field(default_factory=_Session)
    tags: _Tags = {}


class _OfFact(msgspec.Struct):
    attributes: ImportedFact
    tags: _Tags = {}


class _OfDocument(msgspec.Struct):
    attributes: _Document
    tags: _Tags = {}


class _File(KeptFile, kw_only=True):
    path: Annotated[str, msgspec.Meta(max_length=PATH_BYTES_MAX)]
    next: Annotated[int, msgspec.Meta(ge=0, le=FRAGMENT_NUMBER_MAX // 2)] = 0
    """Half of the numbers remain for changes after the import."""

    def __post_init__(self) -> None:
        if fault_of_path(self.path):
            raise ValueError("is not a path")
        numbers = {number for number, _ in self.fragments}
        if len(numbers) < len(self.fragments) or self.next <= max(numbers, default=-1):
            raise ValueError("gives a number to two fragments")


class _OfFile(msgspec.Struct):
    attributes: _File

    @property
    def tags(self) -> dict[str, str]:
        return tags_of(self.attributes.path)


class _OfFileFragment(msgspec.Struct):
    tags: dict[Literal["file"], _Id]
    attributes: dict[str, str] = {}


class _OfFragment(msgspec.Struct):
    attributes: _Fragment
    tags: _Tags = {}


class _OfInteraction(msgspec.Struct):
    attributes: _Interaction = msgspec.field(default_factory=_Interaction)
    tags: _Tags = {}


class _OfReflection(msgspec.Struct):
    attributes: _Reflection = msgspec.field(default_factory=_Reflection)
    tags: _Tags = {}


_READERS: dict[ItemKind, msgspec.json.Decoder[Any]] = {
    ItemKind.MESSAGE: msgspec.json.Decoder(_OfInteraction),
    ItemKind.RESPONSE: msgspec.json.Decoder(_OfInteraction),
    ItemKind.REFLECTION: msgspec.json.Decoder(_OfReflection),
    ItemKind.USER_MEMORY: msgspec.json.Decoder(_OfFact),
    ItemKind.DOCUMENT: msgspec.json.Decoder(_OfDocument),
    ItemKind.FRAGMENT: msgspec.json.Decoder(_OfFragment),
    ItemKind.SESSION: msgspec.json.Decoder(_OfSession),
    ItemKind.FILE: msgspec.json.Decoder(_OfFile),
    ItemKind.FILE_FRAGMENT: msgspec.json.Decoder(_OfFileFragment),
}


def read_facet(field: str, kind: ItemKind, facet_json: str, text: str | None) -> Facet:
    """Return the data to store with an imported item, without fields that its service does not know.

    `text` is that of the item, None for other content. Raises InvalidArgument.
    """
    named = f"{field}.facet_json"
    if len(facet_json) > FACET_BYTES_MAX:
        raise InvalidArgument(named, f"has more than {FACET_BYTES_MAX} bytes")
    if kind in _TEXTS and text is None:
        raise InvalidArgument(f"{field}.text", "is required")
    if kind is ItemKind.USER_MEMORY and len(text or "") > MEMORY_CHARS_MAX:
        raise InvalidArgument(f"{field}.text", f"of a memory has more than {MEMORY_CHARS_MAX} characters")
    try:
        found = _READERS[kind].decode(facet_json or "{}")
        said = msgspec.json.decode(facet_json or "{}").get("attributes", {})
    except (ValueError, RecursionError) as error:
        # The rest of the message may quote the request.
        at = _PATH.search(str(error))
        raise InvalidArgument(named, f"is not what an export wrote{f', at {at[1]}' if at else ''}") from None
    attributes = _known_of(said, msgspec.to_builtins(found.attributes))
    if kind is ItemKind.FILE:
        attributes["size_bytes"] = len((text or "").encode())
    return Facet(kind, found.tags, attributes)


def _known_of(said: Any, known: Any) -> Any:
    """Return the known part of the imported data, in its own order: it is exported unchanged."""
    if isinstance(said, dict):
        return {key: _known_of(value, known[key]) for key, value in said.items() if key in known}
    if isinstance(said, list):
        return [_known_of(*pair) for pair in zip(said, known, strict=True)]
    return known


def _check_bytes(text: str, bytes_max: int) -> None:
    if len(text.encode()) > bytes_max:
        raise ValueError(f"has more than {bytes_max} bytes")
