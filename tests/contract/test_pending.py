"""Items that wait for their vectors, and namespaces that move to another model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from contract.builders import (
    MODEL,
    NOW,
    NS,
    PLENTY,
    SECOND,
    axis_vector,
    build_pending,
    build_write,
    found_by_vector,
    get_item,
    random_vectors,
    recall,
    search_hits,
    words_found,
)
from contract.conftest import Reopen, Stores
from contract.invariants import assert_consistent
from contract.older_formats import make_older
from memory_service.data_model import (
    CLIENT_MODEL,
    ItemFilter,
    NamespaceInfo,
    OnDuplicate,
    SearchQuery,
    Vector,
    VectorFill,
)
from memory_service.errors import InvalidArgument, NotFound
from memory_service.records.base import ModelMismatch
from memory_service.store import Store

OTHER = "local:b"


async def info_of(store: Store, namespace: str = NS) -> NamespaceInfo:
    info = await store.namespace(namespace)
    assert info is not None
    return info


async def waiting(store: Store, after: int = 0, limit: int = PLENTY) -> list[str]:
    return [item.id for item in await store.pending_items(NS, after, limit)]


async def counts(store: Store) -> tuple[int, int]:
    """Return how many items have a vector, and how many wait for one."""
    info = await info_of(store)
    return info.embedded_count, info.pending_count


async def fill_of(store: Store, item_id: str, vector: Vector | None) -> VectorFill:
    item = await get_item(store, item_id)
    return VectorFill(item.position, item.revision, vector)


async def fill(store: Store, vectors: dict[str, Vector | None], model: str = MODEL) -> int:
    """Fill in these vectors for items, as they are now."""
    fills = [await fill_of(store, item_id, vector) for item_id, vector in vectors.items()]
    return await store.fill_vectors(NS, (await info_of(store)).uid, model, fills)


async def move(
    store: Store, model: str = OTHER, dimension: int = 3, *, replace_client_vectors: bool = False
) -> NamespaceInfo:
    return await store.begin_reembedding(NS, model, dimension, replace_client_vectors=replace_client_vectors)


# --- to wait ---------------------------------------------------------------------------------


async def test_a_pending_item_is_found_by_its_words_alone(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "kiwi", axis_vector(0), model=MODEL)])
    await store.add_items(NS, [build_pending("b", "kiwi"), build_pending("c", "")])
    assert await words_found(store, "kiwi") == {"a", "b"}
    assert await found_by_vector(store, axis_vector(0)) == {"a"}
    hits = await search_hits(store, text="kiwi", vector=axis_vector(0))
    assert hits["b"].vector_score is None and hits["a"].vector_score == pytest.approx(1)
    assert await waiting(store) == ["b", "c"]
    assert await counts(store) == (1, 2)
    assert not (await get_item(store, "b")).embedded
    await assert_consistent(store)


async def test_the_first_pending_item_sets_dimension_and_model(store: Store) -> None:
    await store.add_items(NS, [build_pending("a", "x", dimension=3)])
    info = await info_of(store)
    assert (info.dimension, info.model) == (3, MODEL)
    with pytest.raises(InvalidArgument):
        await store.add_items(NS, [build_write("b", "x", [1, 0])])
    with pytest.raises(ModelMismatch):
        await store.add_items(NS, [build_write("b", "x", [1, 0, 0], model=OTHER)])


async def test_a_dimension_that_is_not_known_is_that_of_the_first_vector(store: Store) -> None:
    await store.add_items(NS, [build_pending("a", "x", dimension=0), build_pending("b", "x", dimension=0)])
    assert ((await info_of(store)).dimension, (await info_of(store)).model) == (0, MODEL)
    assert await fill(store, {"a": axis_vector(0, 3)}) == 1
    assert (await info_of(store)).dimension == 3
    with pytest.raises(InvalidArgument):
        await fill(store, {"b": axis_vector(0, 2)})


async def test_an_item_does_not_wait_for_a_model_that_is_not_the_namespaces(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x", axis_vector(0), model=OTHER)])
    await store.add_items(NS, [build_pending("b", "x"), build_pending("c", "x", model=OTHER, dimension=3)])
    await store.replace_item(NS, build_pending("a", "y"))
    assert await waiting(store) == []
    assert await counts(store) == (0, 0)
    await assert_consistent(store)


async def test_what_waits_is_told_in_order_and_page_by_page(store: Store) -> None:
    await store.add_items(NS, [build_pending(f"i{n}", "x") for n in range(10)])
    await store.add_items(NS, [build_write("v", "x", axis_vector(0), model=MODEL)])
    first = await store.pending_items(NS, 0, 4)
    assert [item.id for item in first] == ["i0", "i1", "i2", "i3"]
    assert await waiting(store, first[-1].position) == [f"i{n}" for n in range(4, 10)]
    assert await store.pending_items("nowhere", 0, 4) == []


async def test_namespaces_that_wait_are_told_by_name(store: Store) -> None:
    for name in ("b", "a", "d", "c"):
        await store.add_items(name, [build_pending("i", "x")])
    await store.add_items("none", [build_write("i", "x")])
    await store.delete_item("d", "i", now_us=NOW)
    assert await store.namespaces_with_pending("", 2) == ["a", "b"]
    assert await store.namespaces_with_pending("b", 2) == ["c"]
    await store.add_items("bb", [build_pending("i", "x", model="local:b")])
    assert await store.namespaces_with_pending("a", PLENTY, model=MODEL) == ["b", "c"]
    assert await store.namespaces_with_pending("", PLENTY, model="local:b") == ["bb"]


async def test_a_write_with_a_vector_ends_the_wait_and_one_that_keeps_it_does_not(store: Store) -> None:
    await store.add_items(NS, [build_pending("a", "x"), build_pending("b", "x"), build_pending("c", "x")])
    await store.replace_item(NS, build_write("a", "x", axis_vector(0), model=MODEL))
    await store.replace_item(NS, build_write("b", "y", keep_vector=True))
    await store.replace_item(NS, build_write("c", ""))
    assert await waiting(store) == ["b"]
    assert await counts(store) == (1, 1)
    await store.replace_item(NS, build_pending("a", "z"))
    assert await waiting(store) == ["a", "b"]
    assert await found_by_vector(store, axis_vector(0)) == set()
    await assert_consistent(store)


async def test_what_is_removed_waits_no_more(store: Store) -> None:
    writes = [build_pending(item_id, "x") for item_id in ("a", "b", "c")]
    await store.add_items(NS, [*writes, build_pending("d", "x", expire_us=NOW + SECOND)])
    await store.delete_item(NS, "a", now_us=NOW)
    await store.add_items(NS, [build_write("e")], removals=["b"])
    await store.remove_expired(NOW + SECOND, 0, PLENTY)
    assert await waiting(store) == ["c"]
    await assert_consistent(store)
    await store.reset(NS)
    assert await waiting(store) == [] and await counts(store) == (0, 0)
    assert await store.namespaces_with_pending("", PLENTY) == []


# --- to be filled in -------------------------------------------------------------------------


async def test_a_vector_that_is_filled_in_is_found_at_once_and_is_no_change(store: Store) -> None:
    await store.add_items(NS, [build_pending("a", "kiwi"), build_pending("b", "plum")])
    before, item = await info_of(store), await get_item(store, "a")
    assert await found_by_vector(store, axis_vector(1)) == set()
    assert await fill(store, {"a": axis_vector(1)}) == 1
    assert await found_by_vector(store, axis_vector(1)) == {"a"}
    assert (await search_hits(store, text="kiwi", vector=axis_vector(1)))["a"].vector_score == pytest.approx(
        1
    )
    after, filled = await info_of(store), await get_item(store, "a", with_embedding=True)
    assert filled.embedded and filled.embedding is not None
    assert filled.embedding.tolist() == axis_vector(1).tolist()
    (loaded,) = await (await store.read(NS)).load_items([item.position])
    assert loaded is not None and loaded.embedded
    assert (filled.revision, filled.update_us) == (item.revision, item.update_us)
    assert after.revision == before.revision
    assert await store.read_changes(NS, before.revision, PLENTY) == []
    assert await counts(store) == (1, 1)
    await assert_consistent(store)


async def test_a_fill_of_what_is_not_as_it_was_is_passed_over(store: Store) -> None:
    await store.add_items(NS, [build_pending(item_id, "x") for item_id in "abcd"])
    fills = [await fill_of(store, item_id, axis_vector(0)) for item_id in "abcd"]
    await store.replace_item(NS, build_pending("a", "y"))
    await store.replace_item(NS, build_write("b", "y", axis_vector(1), model=MODEL))
    await store.delete_item(NS, "c", now_us=NOW)
    uid = (await info_of(store)).uid
    assert await store.fill_vectors(NS, uid, MODEL, fills) == 1
    assert await store.fill_vectors(NS, uid, MODEL, fills) == 0
    assert await waiting(store) == ["a"]
    assert await found_by_vector(store, axis_vector(0)) == {"b", "d"}
    assert (await search_hits(store, vector=axis_vector(1)))["b"].vector_score == pytest.approx(1)
    await assert_consistent(store)


async def test_a_fill_for_a_namespace_that_began_anew_is_passed_over(store: Store) -> None:
    await store.add_items(NS, [build_pending("a", "x")])
    uid, old = (await info_of(store)).uid, await fill_of(store, "a", axis_vector(0))
    await store.delete_namespace(NS)
    assert await store.fill_vectors(NS, uid, MODEL, [old]) == 0
    await store.add_items(NS, [build_pending("a", "another")])
    again = await fill_of(store, "a", None)
    assert (again.position, again.revision) == (old.position, old.revision)
    assert await store.fill_vectors(NS, uid, MODEL, [old]) == 0
    assert await waiting(store) == ["a"]


async def test_a_wait_can_end_without_a_vector(store: Store) -> None:
    await store.add_items(NS, [build_pending("a", "x"), build_pending("b", "x")])
    assert await fill(store, {"a": None}) == 1
    assert await waiting(store) == ["b"]
    assert await counts(store) == (0, 1)
    await assert_consistent(store)


async def test_vectors_of_another_model_or_dimension_are_not_filled_in(store: Store) -> None:
    await store.add_items(NS, [build_pending("a", "x"), build_pending("b", "x")])
    with pytest.raises(ModelMismatch):
        await fill(store, {"a": axis_vector(0)}, model=OTHER)
    with pytest.raises(InvalidArgument) as raised:
        await fill(store, {"a": axis_vector(0), "b": axis_vector(0, 3)})
    assert raised.value.field == "vector"
    assert await waiting(store) == ["a", "b"]
    assert await found_by_vector(store, axis_vector(0)) == set()


async def test_fills_and_writes_at_the_same_time_agree(store: Store) -> None:
    ids = [f"i{n}" for n in range(60)]
    await store.add_items(NS, [build_pending(item_id, "x") for item_id in ids])
    fills = [await fill_of(store, item_id, axis_vector(0)) for item_id in ids]
    uid, everything = (await info_of(store)).uid, ItemFilter(now_us=NOW)
    reading = await store.read(NS)
    await asyncio.gather(
        *(store.fill_vectors(NS, uid, MODEL, fills[n : n + 10]) for n in range(0, 60, 10)),
        *(store.replace_item(NS, build_pending(item_id, "y")) for item_id in ids[::3]),
        *(store.delete_item(NS, item_id, now_us=NOW) for item_id in ids[1::3]),
        # Items that they find may be gone before they are loaded.
        *(reading.search(SearchQuery(everything, PLENTY, axis_vector(0))) for _ in range(5)),
    )
    assert await waiting(store) == ids[::3]
    assert await found_by_vector(store, axis_vector(0)) == set(ids[2::3])
    await assert_consistent(store)


async def test_what_waits_and_what_was_filled_in_outlive_the_store(
    durable_store: Store, reopen: Reopen
) -> None:
    await durable_store.add_items(NS, [build_pending(item_id, "kiwi") for item_id in "abc"])
    await fill(durable_store, {"b": axis_vector(1), "c": None})
    store = await reopen()
    assert await waiting(store) == ["a"]
    assert await store.namespaces_with_pending("", PLENTY) == [NS]
    assert await found_by_vector(store, axis_vector(1)) == {"b"}
    assert await words_found(store, "kiwi") == {"a", "b", "c"}
    await assert_consistent(store)


async def test_what_is_filled_in_while_an_index_is_read_is_found_afterwards(
    durable_store: Store, reopen: Reopen
) -> None:
    # Reading an index of that size takes longer than a write.
    names = [f"n{at}" for at in range(4)]
    for name in names:
        writes = [build_write(f"i{n}", f"word {n}") for n in range(1500)]
        await durable_store.add_items(name, [*writes, build_pending("a", "kiwi")])
    store = await reopen()
    for name in names:
        item, info = await get_item(store, "a", name), await info_of(store, name)
        fills = [VectorFill(item.position, item.revision, axis_vector(0))]
        _, done = await asyncio.gather(
            found_by_vector(store, axis_vector(0), name), store.fill_vectors(name, info.uid, MODEL, fills)
        )
        assert done == 1
        assert await found_by_vector(store, axis_vector(0), name) == {"a"}


# --- to move to another model ----------------------------------------------------------------


async def add_vectors(store: Store, vectors: Sequence[Vector], model: str = MODEL) -> list[str]:
    ids = [f"i{n:03}" for n in range(len(vectors))]
    writes = [build_write(i, f"word {i}", v, model=model) for i, v in zip(ids, vectors, strict=True)]
    await store.add_items(NS, writes)
    return ids


async def test_a_move_gives_up_all_vectors_and_changes_no_item(store: Store) -> None:
    ids = await add_vectors(store, random_vectors(100, 4))
    assert await found_by_vector(store, axis_vector(0)) == set(ids)
    before, item = await info_of(store), await get_item(store, ids[0])
    info = await move(store)
    assert info == await info_of(store)
    assert (info.model, info.dimension, info.embedded_count, info.pending_count) == (OTHER, 3, 0, 100)
    assert await waiting(store) == ids
    assert await found_by_vector(store, axis_vector(0, 3)) == set()
    hits = await search_hits(store, text="word", vector=axis_vector(0, 3), candidates=PLENTY)
    assert set(hits) == set(ids) and {hit.vector_score for hit in hits.values()} == {None}
    with pytest.raises(InvalidArgument):
        await search_hits(store, vector=axis_vector(0, 4))
    now = await get_item(store, ids[0], with_embedding=True)
    assert now.embedding is None and not now.embedded
    (loaded,) = await (await store.read(NS)).load_items([item.position], with_embedding=True)
    assert loaded is not None and loaded.embedding is None and not loaded.embedded
    assert (now.revision, info.revision) == (item.revision, before.revision)
    assert await store.read_changes(NS, before.revision, PLENTY) == []
    await assert_consistent(store)


async def test_a_move_is_done_when_all_are_filled_in(store: Store) -> None:
    ids = await add_vectors(store, random_vectors(100, 4))
    await store.flush()
    await move(store, dimension=16)
    vectors = random_vectors(100, 16)
    live = dict(zip(ids, vectors, strict=True))
    for n in range(0, 100, 20):
        assert await fill(store, {i: live[i] for i in ids[n : n + 20]}, OTHER) == 20
        assert await found_by_vector(store, vectors[0]) == set(ids[: n + 20])
    assert await counts(store) == (100, 0)
    assert (await recall(store, live, random_vectors(20, 16, 1))).is_as_promised
    await assert_consistent(store)


async def test_writes_during_a_move_are_of_the_new_model(store: Store) -> None:
    ids = await add_vectors(store, random_vectors(4, 4))
    await move(store)
    with pytest.raises(ModelMismatch):
        await store.add_items(NS, [build_write("n", "x", axis_vector(0, 3), model=MODEL)])
    await store.add_items(NS, [build_write("n", "x", axis_vector(0, 3), model=OTHER)])
    await store.add_items(NS, [build_write("m", "x", axis_vector(0, 3))])
    await store.add_items(NS, [build_pending("p", "x", model=OTHER, dimension=3)])
    await store.replace_item(NS, build_write(ids[0], "x", axis_vector(0, 3), model=OTHER))
    await store.replace_item(NS, build_write(ids[1], "y", keep_vector=True))
    await store.replace_item(NS, build_write(ids[2], ""))
    assert await found_by_vector(store, axis_vector(0, 3)) == {"n", "m", ids[0]}
    assert await waiting(store) == [ids[1], ids[3], "p"]
    await assert_consistent(store)


async def test_what_is_filled_in_after_a_move_and_a_reset_is_found(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "kiwi", axis_vector(0), model=MODEL)])
    await move(store)
    await store.reset(NS)
    await store.add_items(NS, [build_pending("b", "plum", dimension=4)])
    assert await fill(store, {"b": axis_vector(2)}) == 1
    assert await found_by_vector(store, axis_vector(2)) == {"b"}


async def test_a_namespace_that_is_of_the_model_is_left_alone(store: Store) -> None:
    ids = await add_vectors(store, random_vectors(3, 4))
    before = await info_of(store)
    assert await move(store, MODEL, 4) == before
    assert await move(store, MODEL, 0) == before
    await move(store)
    await fill(store, {ids[0]: axis_vector(0, 3)}, OTHER)
    assert (await move(store)).pending_count == 2
    assert await found_by_vector(store, axis_vector(0, 3)) == {ids[0]}
    assert (await move(store, OTHER, 5)).pending_count == 3
    await assert_consistent(store)


async def test_vectors_of_clients_are_given_up_only_if_that_is_wanted(store: Store) -> None:
    ids = await add_vectors(store, random_vectors(3, 4), CLIENT_MODEL)
    with pytest.raises(ModelMismatch):
        await move(store)
    assert await found_by_vector(store, axis_vector(0)) == set(ids)
    await move(store, replace_client_vectors=True)
    assert await waiting(store) == ids
    await assert_consistent(store)


async def test_a_namespace_that_does_not_exist_cannot_move(store: Store) -> None:
    with pytest.raises(NotFound):
        await move(store)


async def test_items_that_never_had_a_vector_wait_for_one_of_the_new_model(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x"), build_pending("b", "x")])
    await store.add_items(NS, [build_write("c", "")], on_duplicate=OnDuplicate.SKIP)
    assert await waiting(store) == ["b"]
    await move(store)
    assert await waiting(store) == ["a", "b", "c"]
    await fill(store, {"a": axis_vector(0, 3), "b": axis_vector(1, 3), "c": None}, OTHER)
    assert await counts(store) == (2, 0)
    await store.add_items(NS, [build_pending("d", "x", model=OTHER, dimension=3)])
    assert await waiting(store) == ["d"]
    await assert_consistent(store)


async def test_a_move_goes_on_in_the_next_process_and_uses_no_old_index(
    durable_store: Store, reopen: Reopen
) -> None:
    store = durable_store
    ids = await add_vectors(store, random_vectors(100, 4))
    await found_by_vector(store, axis_vector(0))
    await store.flush()
    # The dimension stays the same: only the model distinguishes old vectors from new ones.
    await move(store, dimension=4)
    store = await reopen()
    assert await found_by_vector(store, axis_vector(0)) == set()
    assert await waiting(store) == ids
    new = dict(zip(ids, random_vectors(100, 4, 1), strict=True))
    await fill(store, {i: new[i] for i in ids[:60]}, OTHER)
    await store.flush()
    store = await reopen()
    assert await found_by_vector(store, axis_vector(0)) == set(ids[:60])
    assert await waiting(store) == ids[60:]
    await fill(store, {i: new[i] for i in ids[60:]}, OTHER)
    store = await reopen()
    assert await counts(store) == (100, 0)
    assert (await recall(store, new, random_vectors(20, 4, 2))).is_as_promised
    await assert_consistent(store)


async def test_moves_fills_and_searches_at_the_same_time_never_mix(store: Store) -> None:
    ids = await add_vectors(store, random_vectors(100, 3))
    new = [axis_vector(0, 3)] * 100
    await store.flush()

    async def look() -> None:
        for _ in range(10):
            hits = await search_hits(store, vector=axis_vector(0, 3), candidates=PLENTY)
            scores = {round(hit.vector_score or 0, 4) for hit in hits.values()}
            # All vectors of the old model, or all of the new one, which equal the query's.
            assert (len(hits) == 100 and len(scores) > 1) or scores <= {1.0}

    async def fill_all() -> None:
        await move(store)
        for n in range(0, 100, 10):
            await fill(store, dict(zip(ids[n : n + 10], new, strict=False)), OTHER)

    await asyncio.gather(look(), fill_all(), look(), store.flush())
    assert await found_by_vector(store, axis_vector(0, 3)) == set(ids)
    await assert_consistent(store)


# --- older data ------------------------------------------------------------------------------


async def test_data_from_before_vectors_could_wait_is_kept(
    file_store: Store, stores: Stores, reopen: Reopen
) -> None:
    ids = await add_vectors(file_store, random_vectors(100, 4))
    await file_store.add_items(NS, [build_write("none", "kiwi")])
    live = dict(zip(ids, random_vectors(100, 4), strict=True))
    await file_store.flush()
    before = await info_of(file_store)
    await stores.close()
    make_older(stores.data_dir, 2)
    store = await reopen()
    assert await info_of(store) == before
    assert (await recall(store, live, random_vectors(20, 4, 1))).is_as_promised
    assert await waiting(store) == []
    await store.add_items(NS, [build_pending("new", "kiwi")])
    assert await waiting(store) == ["new"]
    await move(store)
    assert await waiting(store) == [*ids, "none", "new"]
    await assert_consistent(store)
