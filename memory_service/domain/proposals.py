"""Converts writes to proposals for the write policy, with all their texts, whatever field they are in."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from memory_service.data_model import (
    UNATTRIBUTED,
    ChatMessage,
    Content,
    DataPart,
    Item,
    ItemDraft,
    ItemKind,
    Provenance,
    StateWrite,
    ToolCallPart,
    ToolCallResult,
    implied_source,
)
from memory_service.deciders.base import Category
from memory_service.domain.documents import DOCUMENT_TAG
from memory_service.domain.facts.user_memory import Status
from memory_service.domain.file_paths import FILE_TAGS
from memory_service.domain.ids import is_made
from memory_service.domain.interaction_items import CONTENT_TAG, LINK_TAG, PARTY_TAG, SESSION_TAG
from memory_service.domain.provenance import provenance_of_caller
from memory_service.domain.search_text import leaves, told_by
from memory_service.policies.base import Proposal
from memory_service.runtime.clock import now_us

# Tags that services set themselves; an import may bring tags with other keys and values.
_OUR_TAGS = frozenset(
    {PARTY_TAG, LINK_TAG, CONTENT_TAG, SESSION_TAG, DOCUMENT_TAG, "category", "status", "superseded_by"}
    | FILE_TAGS
)
_OUR_VALUES = frozenset(member.name.lower() for members in (Category, Status) for member in members)
_NO_TEXTS = frozenset({int, float, bool, type(None)})
# Fields with JSON, which `told_by` returns in full.
_TOLD = {DataPart: "data", ToolCallPart: "arguments", ToolCallResult: "result"}
_DIGEST = re.compile(r"[0-9a-f]{32}")


def proposal_of_draft(namespace: str, draft: ItemDraft, provenance: Provenance | None) -> Proposal:
    """Return the proposal of an item to be added."""
    assert draft.content is not None
    return _proposal(namespace, draft, draft.content, provenance, draft.provenance)


def proposal_of_item(namespace: str, item: Item) -> Proposal:
    """Return the proposal of the next version of an item."""
    said = item.provenance or UNATTRIBUTED
    return _proposal(namespace, item, item.content, item.provenance, said.parent_ids)


def proposal_of_state(namespace: str, state: StateWrite) -> Proposal:
    """Return the proposal of a state."""
    known = state.provenance or provenance_of_caller() or UNATTRIBUTED
    told = leaves(msgspec.json.decode(state.value_json))
    text = "\n".join((state.key, state.description or "", *told))
    return Proposal(namespace, text, provenance=known)


def _proposal(
    namespace: str, item: Item | ItemDraft, content: Content, provenance: Provenance | None, whence: Any
) -> Proposal:
    """Return the proposal of an item; `whence` has its writer's claims about its source."""
    facet, now = item.facet, now_us()
    kind = facet.kind if facet else ItemKind.PLAIN
    known = provenance or UNATTRIBUTED
    # Include a service's data of the item: a title, a quote, a reasoning.
    kept = leaves(facet.attributes) if facet else ()
    instead = [item.index] if item.index else []
    told = [*told_by(content), *instead, *(text for text in kept if not is_made(text, now))]
    named = (item.id, item.session_id, content, list(_of_tags(facet.tags)) if facet else (), whence)
    return Proposal(
        namespace,
        "\n".join(told),
        kind,
        content.role if isinstance(content, ChatMessage) else None,
        item.session_id,
        item.labels,
        item.metadata,
        known,
        known.source or implied_source(kind, content),
        _names(named, told, now),
    )


def _of_tags(tags: Mapping[str, str]) -> Iterator[str]:
    for key, value in tags.items():
        if key not in _OUR_TAGS:
            yield key
        if value not in _OUR_VALUES and not (key == CONTENT_TAG and _DIGEST.fullmatch(value)):
            yield value


def _names(record: Any, told: Sequence[str], now: int) -> tuple[str, ...]:
    """Return the texts in a record that are not among `told`."""
    known = {"", *told}
    found = dict.fromkeys(text for text in _texts(record) if text not in known)
    return tuple(text for text in found if not is_made(text, now))


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a record, whatever field they are in, so that new fields are included."""
    # One generator for all levels, and no work for numbers: there may be hundreds of thousands.
    above = [value]
    while above:
        value = above.pop()
        if isinstance(value, enum.Enum):
            continue
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            inner = chain.from_iterable(value.items())
            above += [each for each in inner if type(each) not in _NO_TEXTS][::-1]
        elif isinstance(value, list | tuple):
            above += [each for each in value if each and type(each) not in _NO_TEXTS][::-1]
        elif isinstance(value, msgspec.Struct):
            told = _TOLD.get(type(value))
            above += [getattr(value, name) for name in reversed(value.__struct_fields__) if name != told]
