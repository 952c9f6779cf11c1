"""The text of an item, for embedding and search by words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from memory_service.data_model import (
    BinaryPart,
    ChatMessage,
    Content,
    DataPart,
    Item,
    ItemDraft,
    ItemKind,
    Json,
    Part,
    TextPart,
    ToolCallPart,
    ToolCallResult,
)

_CHARS_MAX = 64 * 1024
# Documents and files are found by their fragments, sessions by SessionService.
_NOT_SEARCHED = frozenset({ItemKind.DOCUMENT, ItemKind.FILE, ItemKind.SESSION})


def search_text(content: Content, kind: ItemKind = ItemKind.PLAIN) -> str:
    """Return the text of an item, including the speaker's name."""
    if kind in _NOT_SEARCHED:
        return ""
    if isinstance(content, TextPart):
        return content.text
    if isinstance(content, ChatMessage):
        said = _joined(text for part in content.parts for text in _texts(part))
        text = f"{content.name}: {said}" if content.name else said
    else:
        text = _joined(_texts(content))
    return text[:_CHARS_MAX]


def indexed_text(item: Item | ItemDraft) -> str:
    """Return the text by which searches find an item: its `index`, or the text of its content."""
    if item.index is not None:
        return item.index
    assert item.content is not None
    return search_text(item.content, item.facet.kind if item.facet else ItemKind.PLAIN)


def indexed_speaker(item: Item | ItemDraft) -> str:
    """Return the speaker's name if the content is searched; empty if there is none."""
    return "" if item.index is not None or item.content is None else speaker(item.content)


def _joined(texts: Iterable[str]) -> str:
    """Join texts by spaces, up to the length that is searched by words."""
    taken, chars = [], 0
    for text in texts:
        taken.append(text)
        chars += len(text) + 1
        if chars > _CHARS_MAX:
            break
    return " ".join(taken)


def told_by(content: Content) -> list[str]:
    """Return all texts in a content, whatever their length."""
    if isinstance(content, ChatMessage):
        named = [content.name] if content.name else []
        return [*named, *(text for part in content.parts for text in _told(part))]
    return list(_told(content))


def _told(part: Part) -> Iterator[str]:
    yield from _texts(part)
    if isinstance(part, BinaryPart):
        yield part.url or ""
        if part.mime_type.lower().startswith("text/"):
            yield part.content.decode(errors="replace")


def speaker(content: Content) -> str:
    """Return the speaker's name; empty if there is none."""
    return (content.name or "") if isinstance(content, ChatMessage) else ""


def _texts(part: Part) -> Iterator[str]:
    match part:
        case TextPart():
            yield part.text
        case DataPart():
            yield from leaves(part.data)
        case ToolCallPart():
            yield part.name
            yield from leaves(part.arguments)
        case ToolCallResult():
            yield part.name
            if part.result is not msgspec.UNSET:
                yield from leaves(part.result)
        case _:
            # A file: its name may say what it is.
            if part.name:
                yield part.name


def leaves(value: Json) -> Iterator[str]:
    """Yield keys, texts and numbers of a JSON value, in its order."""
    # One generator for all levels: nested ones would pass each value up through all of them.
    inside: list[Iterator[Json]] = [iter((value,))]
    while inside:
        for inner in inside[-1]:
            kind = type(inner)
            if kind is str:
                yield inner
            elif kind is int or kind is float:
                yield str(inner)
            elif not inner:
                continue
            elif kind is dict:
                inside.append(chain.from_iterable(inner.items()))
                break
            elif kind is list:
                inside.append(iter(inner))
                break
        else:
            inside.pop()
