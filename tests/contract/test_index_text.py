"""An item is found by its index in place of its content, or by nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from contract.builders import (
    CONTENTS,
    EVERYTHING,
    NOW,
    NS,
    PLENTY,
    SECOND,
    build_item,
    build_write,
    get_item,
    hits_by_id,
    scan_ids,
    search_hits,
    words_found,
)
from contract.invariants import assert_consistent
from memory_service.data_model import ItemWrite, Provenance, SearchQuery, SourceKind, TextPart, WritesBy
from memory_service.operations import AddItems
from memory_service.store import Store

INDEXES = [None, "", "kiwi", '"},{"index":"x', "Zo\u00eb \u6f22 \U0001f600 \\ \n \x01 \x00"]
MALLORY = Provenance("mallory", "key-1", SourceKind.WEB)


def said(item_id: str, text: str, index: str | None = None, later: int = 0, **fields: Any) -> ItemWrite:
    """Return a write of a turn of a conversation, found by its index if there is one."""
    searched = text if index is None else index
    item = build_item(item_id, text, session_id="s", update_us=NOW + later * SECOND, index=index, **fields)
    return ItemWrite(item, searched)


@pytest.mark.parametrize("index", INDEXES)
async def test_content_and_index_come_back_equal(store: Store, index: str | None) -> None:
    writes = [
        ItemWrite(build_item(name, content=content, index=index), "") for name, content in CONTENTS.items()
    ]
    await store.write(NS, [AddItems(writes)])
    for name, content in CONTENTS.items():
        kept = await get_item(store, name)
        (loaded,) = await (await store.read(NS)).load_items([kept.position])
        assert loaded is not None
        assert (kept.content, kept.index) == (loaded.content, loaded.index) == (content, index)


async def test_an_index_is_searched_in_place_of_the_content(store: Store) -> None:
    await store.add_items(NS, [said("a", "a plum", "a kiwi")])
    assert await words_found(store, "kiwi") == {"a"}
    assert await words_found(store, "plum") == set()
    assert (await get_item(store, "a")).content == TextPart("a plum")


async def test_an_item_with_an_empty_index_is_found_by_nothing(store: Store) -> None:
    await store.add_items(NS, [said("before", "kiwi"), said("it", "kiwi", ""), said("after", "kiwi")])
    for text in ("kiwi", "14 November 2023", "November"):  # NOW, in words, and what its neighbours say
        assert await words_found(store, text) == {"before", "after"}, text
    # Neither does it take the place of what is found.
    assert set(await search_hits(store, text="kiwi", candidates=2)) == {"before", "after"}
    assert await scan_ids(store) == ["before", "it", "after"]
    await assert_consistent(store)


async def test_it_is_still_a_turn_of_its_conversation(store: Store) -> None:
    await store.add_items(NS, [said("before", "kiwi"), said("it", "plum", ""), said("after", "fig")])
    position = (await get_item(store, "after")).position
    (around,) = await (await store.read(NS)).neighbours([position], 5, now_us=NOW)
    turns = await (await store.read(NS)).load_items(around.before)
    assert [turn.id for turn in turns if turn is not None] == ["before", "it"]
    assert await words_found(store, "kiwi") == {"before", "after"}


async def test_among_many_that_cannot_be_found_the_others_are(store: Store) -> None:
    writes = [said(f"i{n}", f"kiwi {n}", "" if n % 3 else None) for n in range(300)]
    await store.write(NS, [AddItems(writes)])
    expected = {f"i{n}" for n in range(0, 300, 3)}
    assert await words_found(store, "kiwi") == expected
    assert set(await search_hits(store, text="kiwi", candidates=100)) == expected
    assert await words_found(store, "kiwi", session_id="s") == expected
    hits = await search_hits(store, text="kiwi", candidates=PLENTY, min_position=150)
    assert set(hits) < expected
    await assert_consistent(store)


async def test_a_joint_search_does_not_find_it_either(store: Store) -> None:
    names = [NS, "people/bob"]
    for name in names:
        await store.add_items(name, [said("before", "kiwi"), said("it", "kiwi", ""), said("after", "fig")])
    first, second = [await store.read(name) for name in names]
    query = SearchQuery(EVERYTHING, 10, None, "kiwi")
    for name, hits in zip(names, await first.search_together([second], [query, query]), strict=True):
        assert set(await hits_by_id(store, name, hits)) == {"before", "after"}


async def test_a_new_version_may_be_found_by_other_words(store: Store) -> None:
    await store.add_items(NS, [said("a", "plum"), said("b", "lime")])
    for later, (index, kiwi, plum) in enumerate(
        (("kiwi", {"a", "b"}, set()), ("", set(), set()), (None, set(), {"a", "b"}), ("", set(), set())), 1
    ):
        await store.replace_item(NS, said("a", "plum", index, later))
        assert (await words_found(store, "kiwi"), await words_found(store, "plum")) == (kiwi, plum)
        assert (await get_item(store, "a")).index == index
        await assert_consistent(store)
    await store.delete_item(NS, "a", now_us=NOW)
    assert await words_found(store, "lime") == {"b"}
    await assert_consistent(store)


@pytest.mark.parametrize("before", [None, "", "kiwi"])
@pytest.mark.parametrize("after", [None, "", "fig"])
async def test_undo_restores_the_index(store: Store, before: str | None, after: str | None) -> None:
    await store.add_items(NS, [said("a", "plum", before)])
    known = await get_item(store, "a")
    found = [await words_found(store, word) for word in ("kiwi", "plum", "fig")]
    await store.replace_item(NS, said("a", "poison", after, 5, provenance=MALLORY))
    undone = await store.undo_items(NS, WritesBy(NOW + SECOND, "mallory"), 0, 10, dry_run=False)
    assert undone.restored_count == 1
    restored = await get_item(store, "a")
    assert (restored.index, restored.content) == (known.index, known.content)
    assert [await words_found(store, word) for word in ("kiwi", "plum", "fig")] == found
    assert await words_found(store, "poison") == set()
    same = {"revision": 0, "provenance": None, "wire": None, "framed": None}
    assert msgspec.structs.replace(restored, **same) == msgspec.structs.replace(known, **same)


async def test_items_with_vectors_are_compared_as_before(store: Store) -> None:
    await store.add_items(
        NS, [build_write("a", "plum", [1, 0], index="kiwi"), build_write("b", "fig", [0, 1])]
    )
    await store.add_items(NS, [said("c", "plum", "")])
    assert set(await search_hits(store, vector=[1, 0])) == {"a", "b"}
    hits = await search_hits(store, text="plum", vector=[1, 0])
    assert "c" not in hits
