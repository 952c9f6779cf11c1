"""Items: written items come back complete and in order, or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from contract.builders import (
    CONTENTS,
    NOW,
    NS,
    PLENTY,
    SECOND,
    axis_vector,
    build_item,
    build_write,
    get_item,
    scan_ids,
    search_hits,
    words_found,
)
from contract.invariants import assert_consistent
from memory_service.data_model import Content, ItemWrite, OnDuplicate, TextPart
from memory_service.errors import AlreadyExists, Conflict, InvalidArgument, NotFound
from memory_service.store import Store

ODD_IDS = [
    "'; DROP TABLE items;--",
    "%",
    "_",
    "\u00e9",
    "e\u0301",
    "\U0001f600",
    "a/../b",
    "A",
    "a",
    "x" * 500,
]


@pytest.mark.parametrize("kind", CONTENTS)
async def test_content_of_every_kind_comes_back_equal(store: Store, kind: str) -> None:
    content: Content = CONTENTS[kind]
    await store.add_items(NS, [ItemWrite(build_item("i", content=content), "words")])
    kept = await get_item(store, "i")
    assert kept.content == content
    assert type(kept.content) is type(content)


async def test_every_field_comes_back_equal(store: Store) -> None:
    metadata = {"a": [1.5, None, True, {"b": "\u00e9"}], "": "", "none": None}
    written = build_write(
        "i",
        "text",
        [0.1, -2.5e-8, 3e7],
        session_id="s-1",
        create_us=NOW - 7,
        update_us=NOW + 3,
        expire_us=NOW + 9,
        labels={"topic": "travel", "": "empty key", "k": ""},
        metadata=metadata,
        importance=0.7,
    )
    receipt = await store.add_items(NS, [written])
    kept = await get_item(store, "i")
    assert (kept.id, kept.session_id, kept.content) == ("i", "s-1", TextPart("text"))
    assert (kept.create_us, kept.update_us, kept.expire_us) == (NOW - 7, NOW + 3, NOW + 9)
    assert kept.labels == {"topic": "travel", "": "empty key", "k": ""}
    assert kept.metadata == metadata
    assert kept.importance == 0.7
    stamp = receipt.items[0]
    assert (stamp.id, stamp.revision, stamp.position) == ("i", kept.revision, kept.position)
    assert (stamp.create_us, stamp.update_us, stamp.expire_us) == (NOW - 7, NOW + 3, NOW + 9)


@pytest.mark.parametrize("metadata", [None, {}])
async def test_absent_and_empty_metadata_differ(store: Store, metadata: dict[str, object] | None) -> None:
    await store.add_items(NS, [build_write("i", metadata=metadata)])
    assert (await get_item(store, "i")).metadata == metadata


async def test_embedding_comes_back_bit_for_bit(store: Store) -> None:
    # Neither normalised nor widened: the smallest and largest float32 reveal either.
    vector = np.array([1e-40, 3.4e38, -0.0, 0.1, 1 / 3], np.float32)
    await store.add_items(NS, [build_write("i", "x", vector)])
    kept = await get_item(store, "i", with_embedding=True)
    assert kept.embedding is not None and kept.embedding.dtype == np.float32
    assert kept.embedding.tobytes() == vector.tobytes()
    loaded = (await (await store.read(NS)).load_items([kept.position], with_embedding=True))[0]
    assert loaded is not None and loaded.embedding is not None
    assert loaded.embedding.tobytes() == vector.tobytes()


async def test_embedding_comes_only_when_asked_for(store: Store) -> None:
    await store.add_items(NS, [build_write("with", "x", axis_vector(0)), build_write("without", "x")])
    # First with it: a shared item must not carry the vector into a response without it.
    await store.get_items(NS, ["with"], with_embedding=True)
    kept = await store.get_items(NS, ["with", "without"])
    assert kept["with"].embedding is None and kept["with"].embedded
    assert kept["without"].embedding is None and not kept["without"].embedded
    asked = await store.get_items(NS, ["with", "without"], with_embedding=True)
    assert asked["with"].embedding is not None
    assert asked["without"].embedding is None and not asked["without"].embedded


async def test_items_are_in_the_order_of_writing_not_of_time_or_id(store: Store) -> None:
    await store.add_items(NS, [build_write("c", create_us=NOW), build_write("a", create_us=NOW - SECOND)])
    await store.add_items(NS, [build_write("b", create_us=NOW - 2 * SECOND)])
    assert await scan_ids(store) == ["c", "a", "b"]


async def test_each_item_has_a_revision_of_its_own_which_is_its_position(store: Store) -> None:
    first = await store.add_items(NS, [build_write("a"), build_write("b"), build_write("c")])
    second = await store.add_items(NS, [build_write("d")])
    stamps = [*first.items, *second.items]
    assert [stamp.id for stamp in stamps] == ["a", "b", "c", "d"]
    revisions = [stamp.revision for stamp in stamps]
    assert revisions == sorted(set(revisions)) and revisions[0] > 0
    assert [stamp.position for stamp in stamps] == revisions
    assert (first.revision, second.revision) == (revisions[2], revisions[3])


@pytest.mark.parametrize("odd_id", ODD_IDS)
async def test_ids_are_taken_as_they_are(store: Store, odd_id: str) -> None:
    await store.add_items(NS, [build_write(odd_id, "kiwi")])
    assert set(await store.get_items(NS, [odd_id])) == {odd_id}
    assert await words_found(store, "kiwi") == {odd_id}


async def test_ids_that_look_alike_are_different(store: Store) -> None:
    await store.add_items(NS, [build_write(odd_id) for odd_id in ODD_IDS])
    assert await scan_ids(store) == ODD_IDS


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (build_write("taken", "kiwi"), AlreadyExists),
        (build_write("wrong", "kiwi", [1.0, 2.0]), InvalidArgument),
        (build_write("first", "kiwi"), AlreadyExists),
    ],
    ids=["taken id", "wrong dimension", "repeated id"],
)
async def test_a_bad_item_keeps_its_whole_batch_out(
    store: Store, bad: ItemWrite, error: type[Exception]
) -> None:
    await store.add_items(NS, [build_write("taken", "old", axis_vector(0))])
    before = await store.namespace(NS)
    batch = [build_write("first", "kiwi", axis_vector(1)), bad, build_write("last", "kiwi")]
    with pytest.raises(error):
        await store.add_items(NS, batch)
    assert await store.namespace(NS) == before
    assert await scan_ids(store) == ["taken"]
    assert await words_found(store, "kiwi") == set()
    assert set(await search_hits(store, vector=axis_vector(1))) == {"taken"}
    assert len(await store.read_changes(NS, 0, PLENTY)) == 1


async def test_a_first_batch_that_fails_begins_no_namespace(store: Store) -> None:
    with pytest.raises(InvalidArgument):
        await store.add_items(NS, [build_write("a", "x", [1, 0]), build_write("b", "x", [1, 0, 0])])
    assert await store.namespace(NS) is None
    assert await store.scan_namespaces("", "", 10) == []
    # The failed batch did not fix the dimension either.
    await store.add_items(NS, [build_write("a", "x", [1, 0, 0])])


async def test_fail_names_the_taken_id(store: Store) -> None:
    await store.add_items(NS, [build_write("a")])
    with pytest.raises(AlreadyExists) as raised:
        await store.add_items(NS, [build_write("b"), build_write("a")])
    assert raised.value.metadata["id"] == "a"


async def test_skip_leaves_and_counts_what_exists(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "old")])
    batch = [build_write("a", "new"), build_write("b"), build_write("b", "again")]
    receipt = await store.add_items(NS, batch, on_duplicate=OnDuplicate.SKIP)
    assert [stamp.id for stamp in receipt.items] == ["b"]
    assert receipt.skipped_count == 2
    assert (await get_item(store, "a")).content == TextPart("old")
    assert (await get_item(store, "b")).content == TextPart("")
    assert await words_found(store, "new again") == set()


async def test_a_batch_that_is_skipped_whole_changes_nothing(store: Store) -> None:
    await store.add_items(NS, [build_write("a"), build_write("b")])
    before = await store.namespace(NS)
    batch = [build_write("b"), build_write("a")]
    receipt = await store.add_items(NS, batch, on_duplicate=OnDuplicate.SKIP)
    assert (receipt.items, receipt.skipped_count) == ([], 2)
    assert await store.namespace(NS) == before


async def test_replace_takes_the_place_of_what_exists(store: Store) -> None:
    first = await store.add_items(NS, [build_write("a", "old"), build_write("b")])
    batch = [build_write("c"), build_write("a", "new")]
    receipt = await store.add_items(NS, batch, on_duplicate=OnDuplicate.REPLACE)
    assert [stamp.id for stamp in receipt.items] == ["c", "a"]
    assert receipt.items[1].position == first.items[0].position
    assert receipt.items[1].revision > receipt.items[0].revision > first.revision
    assert receipt.skipped_count == 0
    assert await scan_ids(store) == ["a", "b", "c"]
    assert (await words_found(store, "old"), await words_found(store, "new")) == (set(), {"a"})


async def test_an_id_repeated_in_a_replacing_batch_ends_as_its_last(store: Store) -> None:
    batch = [
        build_write("a", "old", axis_vector(0)),
        build_write("b"),
        build_write("a", "new", axis_vector(1)),
    ]
    receipt = await store.add_items(NS, batch, on_duplicate=OnDuplicate.REPLACE)
    assert len({stamp.revision for stamp in receipt.items}) == 3
    assert receipt.items[2].position == receipt.items[0].position
    assert await scan_ids(store) == ["a", "b"]
    assert (await get_item(store, "a")).content == TextPart("new")
    assert (await words_found(store, "old"), await words_found(store, "new")) == (set(), {"a"})
    found = await search_hits(store, vector=axis_vector(1))
    assert found["a"].vector_score == pytest.approx(1)


async def test_get_leaves_out_what_does_not_exist(store: Store) -> None:
    assert await store.get_items(NS, ["a"]) == {}
    await store.add_items(NS, [build_write("a"), build_write("b")])
    assert set(await store.get_items(NS, ["b", "none", "b"])) == {"b"}
    assert await store.get_items(NS, []) == {}


async def test_load_keeps_the_order_asked_for_and_the_gaps(store: Store) -> None:
    assert await (await store.read(NS)).load_items([1]) == [None]
    stamps = (await store.add_items(NS, [build_write("a"), build_write("b"), build_write("c")])).items
    a, b, c = (stamp.position for stamp in stamps)
    await store.delete_item(NS, "b", now_us=NOW)
    loaded = await (await store.read(NS)).load_items([c, b, a, c + 1000, c])
    assert [item and item.id for item in loaded] == ["c", None, "a", None, "c"]
    assert await (await store.read(NS)).load_items([]) == []


async def test_replace_item_keeps_the_position_and_moves_the_revision(store: Store) -> None:
    stamps = (await store.add_items(NS, [build_write("a", "old"), build_write("b")])).items
    changed = build_write("a", "new", session_id="s", labels={"k": "v"}, update_us=NOW + 1)
    receipt = await store.replace_item(NS, changed)
    assert receipt.revision > stamps[1].revision
    assert [(stamp.id, stamp.revision) for stamp in receipt.items] == [("a", receipt.revision)]
    kept = await get_item(store, "a")
    assert (kept.position, kept.revision) == (stamps[0].position, receipt.revision)
    assert (kept.content, kept.session_id, kept.labels) == (TextPart("new"), "s", {"k": "v"})
    assert (await (await store.read(NS)).load_items([kept.position]))[0] == kept
    assert await scan_ids(store) == ["a", "b"]
    assert await scan_ids(store, session_id="s", labels=(("k", "v"),)) == ["a"]


async def test_replace_item_takes_its_vector_or_drops_it(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x", axis_vector(0))])
    await store.replace_item(NS, build_write("a", "x", axis_vector(1)))
    assert (await search_hits(store, vector=axis_vector(1)))["a"].vector_score == pytest.approx(1)
    await store.replace_item(NS, build_write("a", "x"))
    assert await search_hits(store, vector=axis_vector(1)) == {}
    assert not (await get_item(store, "a")).embedded


async def test_replace_item_gives_a_vector_to_one_that_had_none(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x")])
    await store.replace_item(NS, build_write("a", "x", axis_vector(2)))
    assert set(await search_hits(store, vector=axis_vector(2))) == {"a"}


@pytest.mark.parametrize("vector", [axis_vector(3), None], ids=["a vector", "no vector"])
async def test_keep_vector_keeps_what_there_is(store: Store, vector: np.ndarray | None) -> None:
    await store.add_items(NS, [build_write("other", "x", axis_vector(0)), build_write("a", "old", vector)])
    await store.replace_item(NS, build_write("a", "new", keep_vector=True))
    kept = await get_item(store, "a", with_embedding=True)
    assert kept.content == TextPart("new")
    assert kept.embedded == (vector is not None)
    assert (kept.embedding is None) == (vector is None)
    if vector is not None:
        np.testing.assert_array_equal(kept.embedding, vector)
    found = await search_hits(store, vector=axis_vector(3))
    assert set(found) == ({"other"} if vector is None else {"other", "a"})
    assert (await words_found(store, "old"), await words_found(store, "new")) == (set(), {"a"})


async def test_an_added_replacement_can_keep_the_vector_too(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "old", axis_vector(3))])
    batch = [build_write("a", "new", keep_vector=True)]
    await store.add_items(NS, batch, on_duplicate=OnDuplicate.REPLACE)
    assert (await search_hits(store, vector=axis_vector(3)))["a"].vector_score == pytest.approx(1)
    await assert_consistent(store)


async def test_what_the_api_keeps_of_an_item_is_not_kept_for_what_replaced_it(store: Store) -> None:
    stamp = (await store.add_items(NS, [build_write("a", "old", axis_vector(0))])).items[0]
    loaded = (await (await store.read(NS)).load_items([stamp.position]))[0]
    assert loaded is not None
    loaded.wire = b"old"
    with_embedding = (await (await store.read(NS)).load_items([stamp.position], with_embedding=True))[0]
    assert with_embedding is not None and with_embedding.wire is None
    await store.replace_item(NS, build_write("a", "new"))
    loaded = (await (await store.read(NS)).load_items([stamp.position]))[0]
    assert loaded is not None and loaded.wire is None


async def test_replace_item_needs_one(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.replace_item(NS, build_write("a"))
    assert await store.namespace(NS) is None
    await store.add_items(NS, [build_write("a", expire_us=NOW + SECOND)])
    with pytest.raises(NotFound):
        await store.replace_item(NS, build_write("a", update_us=NOW + SECOND))
    await store.replace_item(NS, build_write("a", update_us=NOW + SECOND - 1))


async def test_replace_item_compares_the_revision(store: Store) -> None:
    stamp = (await store.add_items(NS, [build_write("a", "one")])).items[0]
    second = await store.replace_item(NS, build_write("a", "two"), expected_revision=stamp.revision)
    with pytest.raises(Conflict) as raised:
        await store.replace_item(NS, build_write("a", "three"), expected_revision=stamp.revision)
    assert raised.value.metadata["current_revision"] == str(second.revision)
    assert (await get_item(store, "a")).content == TextPart("two")
    info = await store.namespace(NS)
    assert info is not None and info.revision == second.revision


async def test_delete_takes_an_item_from_everywhere(store: Store) -> None:
    await store.add_items(NS, [build_write(name, f"kiwi {name}", axis_vector(0)) for name in ("a", "b")])
    position = (await get_item(store, "a")).position
    await store.delete_item(NS, "a", now_us=NOW)
    assert await store.get_items(NS, ["a"]) == {}
    assert await (await store.read(NS)).load_items([position]) == [None]
    assert await scan_ids(store) == ["b"]
    assert await words_found(store, "kiwi") == {"b"}
    assert set(await search_hits(store, vector=axis_vector(0))) == {"b"}


async def test_delete_needs_an_item(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.delete_item(NS, "a", now_us=NOW)
    assert await store.namespace(NS) is None
    await store.add_items(NS, [build_write("a", expire_us=NOW + SECOND), build_write("b")])
    with pytest.raises(NotFound):
        await store.delete_item(NS, "a", now_us=NOW + SECOND)
    await store.delete_item(NS, "b", now_us=NOW)
    with pytest.raises(NotFound):
        await store.delete_item(NS, "b", now_us=NOW)


async def test_delete_compares_the_revision(store: Store) -> None:
    first = await store.add_items(NS, [build_write("a")])
    second = await store.replace_item(NS, build_write("a"))
    with pytest.raises(Conflict):
        await store.delete_item(NS, "a", now_us=NOW, expected_revision=first.revision)
    assert await scan_ids(store) == ["a"]
    await store.delete_item(NS, "a", now_us=NOW, expected_revision=second.revision)
    assert await scan_ids(store) == []


async def test_a_deleted_id_can_be_added_again_at_the_end(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "old"), build_write("b")])
    deleted = await store.delete_item(NS, "a", now_us=NOW)
    stamp = (await store.add_items(NS, [build_write("a", "new")])).items[0]
    assert stamp.revision == stamp.position > deleted.revision
    assert await scan_ids(store) == ["b", "a"]
    assert (await words_found(store, "old"), await words_found(store, "new")) == (set(), {"a"})


@pytest.mark.parametrize("on_duplicate", list(OnDuplicate))
async def test_an_expired_id_can_be_added_again(store: Store, on_duplicate: OnDuplicate) -> None:
    expiring = build_write("a", "old", axis_vector(0), expire_us=NOW + SECOND)
    await store.add_items(NS, [expiring, build_write("b", "kept", axis_vector(1))])
    later = NOW + SECOND
    again = build_write("a", "new", axis_vector(2), update_us=later)
    receipt = await store.add_items(NS, [again], on_duplicate=on_duplicate)
    assert receipt.skipped_count == 0
    assert receipt.items[0].position == receipt.items[0].revision
    assert await scan_ids(store, now_us=later) == ["b", "a"]
    assert await words_found(store, "old", now_us=later) == set()
    assert await words_found(store, "new", now_us=later) == {"a"}
    found = await search_hits(store, vector=axis_vector(2), now_us=later)
    assert found["a"].vector_score == pytest.approx(1)
    info = await store.namespace(NS)
    assert info is not None and (info.item_count, info.embedded_count) == (2, 2)
    await assert_consistent(store)


async def test_an_item_is_taken_until_the_moment_it_expires(store: Store) -> None:
    await store.add_items(NS, [build_write("a", expire_us=NOW + SECOND)])
    with pytest.raises(AlreadyExists):
        await store.add_items(NS, [build_write("a", update_us=NOW + SECOND - 1)])


async def test_get_returns_expired_items_too(store: Store) -> None:
    await store.add_items(NS, [build_write("a", expire_us=NOW - SECOND, update_us=NOW - 2 * SECOND)])
    assert set(await store.get_items(NS, ["a"])) == {"a"}
