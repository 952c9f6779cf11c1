"""Interactions as items: the data stored with each, and how it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from memory_service.data_model import ANSWERED_TAG, ChatMessage, Facet, Item, ItemKind, TextPart
from memory_service.domain.search_text import search_text

DEFAULT_AGENT = "system"
"""The default sender of responses and reflections."""
PARTY_TAG = "party"
"""On a message and its responses: the sender of the message."""
LINK_TAG = ANSWERED_TAG
"""On a response: the id of the message that it answers."""
CONTENT_TAG = "content"
"""On a message: a digest of its content."""
SESSION_TAG = "session"
"""On a reflection: its session, or "" for none, which no other filter can express."""


def message_facet(sender: str, content: str) -> Facet:
    """Return the data stored with a message."""
    tags = {PARTY_TAG: sender, CONTENT_TAG: digest(content)}
    return Facet(ItemKind.MESSAGE, tags, {"sender": sender})


def response_facet(sender: str) -> Facet:
    """Return the data stored with a response that answers no message."""
    return Facet(ItemKind.RESPONSE, {}, {"sender": sender})


def reflection_facet(sender: str, session_id: str, interaction_ids: Sequence[str]) -> Facet:
    """Return the data stored with a reflection."""
    attributes = {"sender": sender, "interaction_ids": list(interaction_ids)}
    return Facet(ItemKind.REFLECTION, {SESSION_TAG: session_id}, attributes)


def current_facet(item: Item) -> Facet | None:
    """Return the service's data of an item after a change of content or session."""
    if item.facet is None:
        return None
    if item.kind is ItemKind.MESSAGE:
        changed = {CONTENT_TAG: digest(text_of(item))}
    elif item.kind is ItemKind.REFLECTION:
        changed = {SESSION_TAG: item.session_id}
    else:
        return item.facet
    return Facet(item.kind, {**item.facet.tags, **changed}, item.facet.attributes)


def digest(content: str) -> str:
    """Return a digest of a content; lookups by it must also compare the content."""
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def text_of(item: Item) -> str:
    """Return the text of an interaction."""
    content = item.content
    if isinstance(content, TextPart):
        return content.text
    if isinstance(content, ChatMessage):
        texts = [part.text for part in content.parts if isinstance(part, TextPart)]
        if texts:
            return "\n".join(texts)
    # Not written by this service: an update may give an item any content.
    return search_text(content)


def sender_of(item: Item) -> str:
    """Return the sender."""
    sender = item.facet.attributes.get("sender") if item.facet else None
    return sender if isinstance(sender, str) and sender else DEFAULT_AGENT


def link_of(item: Item) -> str:
    """Return the id of the message that a response answers; "" for none."""
    return item.facet.tags.get(LINK_TAG, "") if item.facet and item.kind is ItemKind.RESPONSE else ""


def subjects_of(item: Item) -> list[str]:
    """Return the ids of the interactions that a reflection is about."""
    ids = item.facet.attributes.get("interaction_ids") if item.facet else None
    return [each for each in ids if isinstance(each, str)] if isinstance(ids, list) else []
