"""What services store with their items: kinds and tags, conditional writes, removals, receipts."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from contract.builders import (
    NOW,
    NS,
    SECOND,
    axis_vector,
    build_request,
    build_write,
    get_item,
    hits_by_id,
    scan_ids,
    search_hits,
)
from memory_service.data_model import (
    CONVERSATION_KINDS,
    ChangeType,
    Facet,
    ItemFilter,
    ItemKind,
    ItemWrite,
    OnDuplicate,
    SearchQuery,
)
from memory_service.errors import Conflict, FailedPrecondition, InvalidArgument
from memory_service.store import Store

FRAGMENTS = frozenset({ItemKind.FRAGMENT})


def build_fragment(
    item_id: str, document: str, text: str = "kiwi", axis: int = 0, **fields: Any
) -> ItemWrite:
    """Return a write of a fragment of a document."""
    facet = Facet(ItemKind.FRAGMENT, {"document": document}, {"index": 1, "name": "\u00e9"})
    return build_write(item_id, text, axis_vector(axis), facet=facet, **fields)


@pytest.fixture
async def mixed(store: Store) -> Store:
    """A store with two plain items and three fragments of two documents."""
    await store.add_items(
        NS,
        [
            build_write("plain", "kiwi", axis_vector(0)),
            build_fragment("f1", "one"),
            build_fragment("f2", "two", axis=1),
            build_write("other", "plum", axis_vector(1), labels={"document": "one"}),
            build_fragment("f3", "one", "plum", axis=1),
        ],
    )
    return store


async def test_a_facet_comes_back_as_it_was(mixed: Store) -> None:
    assert (await get_item(mixed, "f1")).facet == Facet(
        ItemKind.FRAGMENT, {"document": "one"}, {"index": 1, "name": "\u00e9"}
    )
    assert (await get_item(mixed, "plain")).facet is None


async def test_kinds_filter_scans_and_searches(mixed: Store) -> None:
    assert await scan_ids(mixed, kinds=CONVERSATION_KINDS) == ["plain", "other"]
    assert await scan_ids(mixed, kinds=FRAGMENTS) == ["f1", "f2", "f3"]
    assert await scan_ids(mixed) == ["plain", "f1", "f2", "other", "f3"]
    query: dict[str, Any] = {"vector": axis_vector(0), "text": "kiwi"}
    assert set(await search_hits(mixed, kinds=CONVERSATION_KINDS, **query)) == {"plain", "other"}
    assert set(await search_hits(mixed, kinds=FRAGMENTS, **query)) == {"f1", "f2", "f3"}
    assert set(await search_hits(mixed, kinds=FRAGMENTS, vector=axis_vector(0))) == {"f1", "f2", "f3"}


async def test_tags_are_not_labels(mixed: Store) -> None:
    assert await scan_ids(mixed, tags=(("document", "one"),)) == ["f1", "f3"]
    assert await scan_ids(mixed, labels=(("document", "one"),)) == ["other"]
    found = await search_hits(mixed, vector=axis_vector(1), text="plum", tags=(("document", "one"),))
    assert set(found) == {"f1", "f3"}


async def test_a_replaced_item_has_its_new_kind_and_tags(mixed: Store) -> None:
    await mixed.add_items(NS, [build_fragment("f1", "two")], on_duplicate=OnDuplicate.REPLACE)
    await mixed.replace_item(NS, build_write("f3", "plum", axis_vector(1)))
    assert await scan_ids(mixed, tags=(("document", "one"),)) == []
    assert await scan_ids(mixed, tags=(("document", "two"),)) == ["f1", "f2"]
    assert await scan_ids(mixed, kinds=FRAGMENTS) == ["f1", "f2"]


async def test_when_the_last_of_a_kind_goes_no_filter_is_left_behind(mixed: Store) -> None:
    for name in ("f1", "f2", "f3"):
        await mixed.delete_item(NS, name, now_us=NOW)
    assert set(await search_hits(mixed, vector=axis_vector(0), kinds=CONVERSATION_KINDS)) == {
        "plain",
        "other",
    }
    await mixed.add_items(NS, [build_fragment("f4", "one")])
    assert set(await search_hits(mixed, vector=axis_vector(0), kinds=CONVERSATION_KINDS)) == {
        "plain",
        "other",
    }


# --- removals ---------------------------------------------------------------------------------


async def test_removals_and_writes_are_one_step(mixed: Store) -> None:
    before = await mixed.namespace(NS)
    assert before is not None
    receipt = await mixed.add_items(
        NS,
        [build_fragment("f4", "one")],
        removals=["f1", "gone", "f3", "f1"],
        on_duplicate=OnDuplicate.REPLACE,
    )
    assert receipt.removed_count == 2
    assert await scan_ids(mixed, kinds=FRAGMENTS) == ["f2", "f4"]
    assert set(await search_hits(mixed, text="plum")) == {"other"}
    changes = await mixed.read_changes(NS, before.revision, 10)
    assert [(c.type, c.subject) for c in changes] == [
        (ChangeType.ITEM_DELETED, "f1"),
        (ChangeType.ITEM_DELETED, "f3"),
        (ChangeType.ITEM_ADDED, "f4"),
    ]
    info = await mixed.namespace(NS)
    assert info is not None and (info.item_count, info.embedded_count) == (4, 4)


async def test_a_refused_write_removes_nothing(mixed: Store) -> None:
    with pytest.raises(Conflict):
        await mixed.add_items(
            NS, [_expecting(build_write("plain"), 77)], removals=["f1"], on_duplicate=OnDuplicate.REPLACE
        )
    assert await scan_ids(mixed, kinds=FRAGMENTS) == ["f1", "f2", "f3"]


# --- conditional writes -----------------------------------------------------------------------


def _expecting(write: ItemWrite, revision: int) -> ItemWrite:
    write.expected_revision = revision
    return write


async def test_a_write_may_ask_for_the_revision_that_it_replaces(mixed: Store) -> None:
    first = (await get_item(mixed, "plain")).revision
    replace: dict[str, Any] = {"on_duplicate": OnDuplicate.REPLACE}
    await mixed.add_items(NS, [_expecting(build_write("plain", "new"), first)], **replace)
    for stale in (first, 0):
        with pytest.raises(Conflict) as refused:
            await mixed.add_items(
                NS,
                [build_write("innocent"), _expecting(build_write("plain"), stale)],
                on_duplicate=OnDuplicate.REPLACE,
            )
        current = (await get_item(mixed, "plain")).revision
        assert refused.value.metadata["current_revision"] == str(current)
    assert "innocent" not in await scan_ids(mixed)


async def test_what_must_not_exist_may_have_expired(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "old", expire_us=NOW + SECOND)])
    later = _expecting(build_write("a", "new", update_us=NOW + 2 * SECOND), 0)
    await store.add_items(NS, [later], on_duplicate=OnDuplicate.REPLACE)
    with pytest.raises(Conflict):
        await store.add_items(NS, [_expecting(build_write("b"), 5)], on_duplicate=OnDuplicate.REPLACE)
    assert await scan_ids(store) == ["a"]


# --- receipts ---------------------------------------------------------------------------------


async def test_the_receipt_of_a_request_is_found_again(store: Store) -> None:
    request = build_request("r", b"body")
    assert await store.find_receipt(NS, request) is None
    written = await store.add_items(NS, [build_write("a"), build_write("b")], request=request)
    found = await store.find_receipt(NS, request)
    assert found is not None and found.replayed
    assert [stamp.id for stamp in found.items] == ["a", "b"]
    assert found.revision == written.revision
    assert await store.find_receipt(NS, build_request("another", b"body")) is None
    assert await store.find_receipt("elsewhere", request) is None
    with pytest.raises(FailedPrecondition):
        await store.find_receipt(NS, build_request("r", b"other body"))


# --- searches at the same time ----------------------------------------------------------------


async def test_each_of_many_searches_at_once_gets_its_own_answer(store: Store) -> None:
    vectors = np.random.default_rng(3).standard_normal((40, 4)).astype(np.float32)
    await store.add_items(
        NS, [build_write(f"i{n}", f"word{n}", v, session_id=f"s{n % 2}") for n, v in enumerate(vectors)]
    )
    await store.delete_item(NS, "i7", now_us=NOW)
    queries = [
        SearchQuery(
            ItemFilter(NOW, f"s{n % 2}" if n % 3 == 0 else ""),
            1 + n % 2,
            vector,
            f"word{n}" if n % 5 == 0 else None,
        )
        for n, vector in enumerate(vectors)
        if n != 7
    ]
    queries.insert(5, SearchQuery(ItemFilter(NOW), 3, np.ones(3, np.float32)))
    reading = await store.read(NS)
    answers = await asyncio.gather(*(reading.search(query) for query in queries), return_exceptions=True)
    assert isinstance(answers.pop(5), InvalidArgument)
    alone = [await (await store.read(NS)).search(query) for query in queries[:5] + queries[6:]]
    for at, (together, expected) in enumerate(zip(answers, alone, strict=True)):
        assert not isinstance(together, BaseException)
        number = at if at < 7 else at + 1
        assert f"i{number}" in await hits_by_id(store, NS, together)
        assert sorted(together.positions) == sorted(expected.positions)
