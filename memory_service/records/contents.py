"""Contents of items as databases keep them: JSON, with the text to search in their place, if any.

The JSON of a content begins with its type. With a text to search, it begins with that.
"""

from __future__ import annotations

import msgspec

from memory_service.data_model import Content, Item

NO_CONTENT = '{"type":"text","text":""}'
"""In place of a content that is not read."""
_INDEXED = '{"index":'
_json = msgspec.json.Encoder().encode
_content = msgspec.json.Decoder(Content).decode


class _Indexed(msgspec.Struct):
    index: str


_indexed = msgspec.json.Decoder(_Indexed).decode


def encode_content(item: Item) -> bytes:
    """Return the stored form of an item's content and index."""
    content = _json(item.content)
    if item.index is None:
        return content
    return b"".join((_INDEXED.encode(), _json(item.index), b",", content[1:]))


def content_of(stored: str) -> tuple[Content, str | None]:
    """Return the content and the index of an item."""
    return _content(stored), _indexed(stored).index if stored.startswith(_INDEXED) else None
