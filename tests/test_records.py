"""Records cost no more than their contents."""

from __future__ import annotations

import gc

import pytest

from memory_service.data_model import (
    ChatMessage,
    Content,
    DataPart,
    Facet,
    Item,
    ItemKind,
    Provenance,
    Role,
    TextPart,
    ToolCallPart,
    ToolCallResult,
)


def item_of(content: Content) -> Item:
    return Item(
        "a",
        "",
        content,
        create_us=0,
        update_us=0,
        facet=Facet(ItemKind.MESSAGE, {"tag": "x"}, {"list": [1]}),
        provenance=Provenance("ada"),
    )


@pytest.mark.parametrize(
    "content",
    [
        TextPart("tea"),
        DataPart({"a": [1]}),
        ToolCallResult(result=[1]),
        ChatMessage(Role.USER, [TextPart("tea"), ToolCallPart("1", "brew", {"a": [1]})]),
    ],
)
def test_kept_items_are_nothing_to_the_garbage_collector(content: Content) -> None:
    item = item_of(content)
    parts = content.parts if isinstance(content, ChatMessage) else []
    for record in (item, content, item.facet, item.provenance, *parts):
        assert not gc.is_tracked(record)


def test_no_two_items_share_their_labels() -> None:
    one, other = item_of(TextPart("tea")), item_of(TextPart("tea"))
    one.labels["a"] = "b"
    assert other.labels == {}
    assert one != other
