"""Namespaces: contents, names that must not be confused, and how they end."""

from __future__ import annotations

import pytest

from contract.builders import (
    EVERYTHING,
    NOW,
    NS,
    PLENTY,
    SECOND,
    axis_vector,
    build_state,
    build_write,
    random_vectors,
    scan_ids,
    search_hits,
    words_found,
)
from memory_service.data_model import ChangeType, IndexInfo, NamespaceInfo
from memory_service.errors import NotFound
from memory_service.store import Store

# In the order of their UTF-8 bytes. Some are prefixes of others, some differ only by case, by
# normalisation, or by what a pattern or a path would make of them.
NAMES = [
    "%", "../a", "A", "_", "a", "a%", "a/", "a/../a", "a/b", "a/b/c", "aa", "a_", "b", "e\u0301", "\u00e9",
    "\u00e9/a", "\uffff", "\U0001f600", "\U0010ffff", "\U0010ffffa",
]  # fmt: skip


async def _info(store: Store, namespace: str = NS) -> NamespaceInfo:
    info = await store.namespace(namespace)
    assert info is not None
    return info


async def _fill(store: Store, namespace: str = NS) -> None:
    writes = [build_write(name, f"kiwi {name}", axis_vector(n)) for n, name in enumerate(("a", "b", "c"))]
    await store.add_items(namespace, writes)
    await store.save_state(namespace, build_state("k"))
    await store.save_state(namespace, build_state("l"))


async def _assert_holds_nothing(store: Store, namespace: str = NS) -> None:
    assert await (await store.read(namespace)).scan(EVERYTHING, -1, newest=False) == []
    assert await store.get_items(namespace, ["a", "b", "c"], with_embedding=True) == {}
    assert await (await store.read(namespace)).load_items(range(20)) == [None] * 20
    assert await words_found(store, "kiwi", namespace) == set()
    assert await search_hits(store, namespace, vector=axis_vector(0)) == {}
    assert await store.load_states(namespace, ["k", "l"]) == {}
    assert await store.scan_states(namespace, "", PLENTY, now_us=NOW) == []


async def _names(store: Store, prefix: str = "", after: str = "", limit: int = PLENTY) -> list[str]:
    return [info.name for info in await store.scan_namespaces(prefix, after, limit)]


async def test_a_namespace_begins_with_its_first_write_not_with_a_read(store: Store) -> None:
    await _assert_holds_nothing(store)
    assert await store.read_changes(NS, 0, PLENTY) == []
    assert not (await store.index_info(NS)).loaded
    assert await store.namespace(NS) is None
    assert await _names(store) == []
    await store.save_state(NS, build_state("k"))
    assert (await _info(store)).name == NS


async def test_what_a_process_has_written_it_has_seen(store: Store) -> None:
    assert await store.namespace(NS, fresh=False) is None
    await _fill(store)
    assert await store.namespace(NS, fresh=False) == await store.namespace(NS)
    await store.reset(NS)
    assert await store.namespace(NS, fresh=False) == await store.namespace(NS)
    await store.delete_namespace(NS)
    assert await store.namespace(NS, fresh=False) is None


async def test_info_counts_what_is_there(store: Store) -> None:
    await _fill(store)
    await store.add_items(NS, [build_write("d"), build_write("e", "x", axis_vector(3))])
    await store.delete_item(NS, "a", now_us=NOW)
    await store.replace_item(NS, build_write("b", "x"))
    await store.replace_item(NS, build_write("c", "x", keep_vector=True))
    receipt = await store.delete_state(NS, "k", now_us=NOW)
    info = await _info(store)
    assert (info.item_count, info.embedded_count, info.state_count) == (4, 2, 1)
    assert (info.revision, info.dimension) == (receipt.revision, 4)
    assert await store.scan_namespaces("", "", 10) == [info]


async def test_index_info_tells_how_vectors_are_searched_and_loads_nothing(store: Store) -> None:
    for start in range(0, 60, 20):
        vectors = random_vectors(20, stream=start)
        await store.add_items(NS, [build_write(f"i{start + n}", "x", vectors[n]) for n in range(20)])
    await store.delete_item(NS, "i7", now_us=NOW)
    await store.flush()
    before = await store.index_info(NS)
    assert await store.index_info(NS) == before
    if not before.loaded:
        assert before == IndexInfo()
        return
    assert before.graph_count + before.exact_count == 59
    assert before.memory_bytes > 0
    assert before.kind == ("hnsw" if before.graph_count else "exact")
    assert (before.ef_search > 0) == (before.kind == "hnsw")


async def test_the_time_of_the_first_write_stays(store: Store) -> None:
    await store.add_items(NS, [build_write("a")])
    created = (await _info(store)).create_us
    await store.add_items(NS, [build_write("b", create_us=NOW + SECOND, update_us=NOW + SECOND)])
    assert (await _info(store)).create_us == created


async def test_namespaces_are_listed_by_the_bytes_of_their_names(store: Store) -> None:
    for name in reversed(NAMES):
        await store.save_state(name, build_state("k"))
    ordered = sorted(NAMES, key=str.encode)
    assert await _names(store) == ordered
    for at, name in enumerate(ordered):
        assert await _names(store, after=name, limit=2) == ordered[at + 1 : at + 3]


async def test_a_prefix_is_taken_as_it_is(store: Store) -> None:
    for name in NAMES:
        await store.save_state(name, build_state("k"))
    for prefix in [*NAMES, "a/b/", "none", "\u00e9/"]:
        expected = sorted((name for name in NAMES if name.startswith(prefix)), key=str.encode)
        assert await _names(store, prefix) == expected, prefix
        assert await _names(store, prefix, after=prefix, limit=1) == [n for n in expected if n != prefix][:1]


async def test_a_page_may_begin_outside_of_the_prefix(store: Store) -> None:
    for name in ("a", "b/1", "b/2", "c"):
        await store.save_state(name, build_state("k"))
    assert await _names(store, "b/", after="a") == ["b/1", "b/2"]
    assert await _names(store, "b/", after="c") == []
    assert await _names(store, "b/", after="b/1") == ["b/2"]
    assert await _names(store, "b/", limit=0) == []


async def test_namespaces_do_not_see_each_other(store: Store) -> None:
    for n, name in enumerate(NAMES):
        await store.add_items(
            name, [build_write("a", f"kiwi fig{n}", axis_vector(n % 4)), build_write(f"in {name}")]
        )
        await store.save_state(name, build_state("k", n))
    for n, name in enumerate(NAMES):
        assert await scan_ids(store, name) == ["a", f"in {name}"]
        assert await words_found(store, "kiwi", name) == {"a"}
        assert await words_found(store, f"fig{n}", name) == {"a"}
        found = await search_hits(store, name, vector=axis_vector(n % 4))
        assert found["a"].vector_score == pytest.approx(1)
        assert (await store.load_states(name, ["k"]))["k"].value_json == str(n).encode()
        assert len(await store.read_changes(name, 0, PLENTY)) == 3


@pytest.mark.parametrize("end", ["reset", "delete"])
async def test_the_end_of_one_namespace_leaves_the_others(store: Store, end: str) -> None:
    for name in NAMES:
        await _fill(store, name)
    others = [name for name in NAMES if name != "a"]
    before = [await store.namespace(name) for name in others]
    await (store.reset("a") if end == "reset" else store.delete_namespace("a"))
    await _assert_holds_nothing(store, "a")
    assert [await store.namespace(name) for name in others] == before
    for name in others:
        assert await words_found(store, "kiwi", name) == {"a", "b", "c"}
        assert set(await search_hits(store, name, vector=axis_vector(0))) == {"a", "b", "c"}


async def test_revisions_of_namespaces_are_their_own(store: Store) -> None:
    alone = [(await store.add_items("one", [build_write(f"i{n}")])).revision for n in range(3)]
    mixed = []
    for n in range(3):
        await store.add_items("noise", [build_write(f"i{n}")])
        mixed.append((await store.add_items("two", [build_write(f"i{n}")])).revision)
    assert mixed == alone


async def test_reset_leaves_nothing_and_counts_it(store: Store) -> None:
    await _fill(store)
    revision = (await _info(store)).revision
    receipt = await store.reset(NS)
    assert (receipt.removed_count, receipt.removed_state_count) == (3, 2)
    await _assert_holds_nothing(store)
    info = await _info(store)
    assert (info.item_count, info.state_count, info.embedded_count) == (0, 0, 0)
    assert info.revision == receipt.revision > revision
    changes = await store.read_changes(NS, 0, PLENTY)
    assert [change.type for change in changes] == [ChangeType.RESET]


async def test_revisions_go_on_after_a_reset(store: Store) -> None:
    await _fill(store)
    reset = await store.reset(NS)
    stamp = (await store.add_items(NS, [build_write("a")])).items[0]
    assert stamp.revision == stamp.position > reset.revision


async def test_what_is_written_after_a_reset_is_found_and_nothing_else(store: Store) -> None:
    await _fill(store)
    await store.reset(NS)
    await store.add_items(NS, [build_write("b", "plum", axis_vector(0))])
    assert await scan_ids(store) == ["b"]
    assert await words_found(store, "kiwi plum") == {"b"}
    assert set(await search_hits(store, vector=axis_vector(1))) == {"b"}


async def test_resetting_twice_is_two_changes(store: Store) -> None:
    await _fill(store)
    first = await store.reset(NS)
    second = await store.reset(NS)
    assert second.revision > first.revision
    assert (second.removed_count, second.removed_state_count) == (0, 0)
    assert [change.revision for change in await store.read_changes(NS, 0, PLENTY)] == [second.revision]


async def test_delete_leaves_no_trace(store: Store) -> None:
    await _fill(store)
    receipt = await store.delete_namespace(NS)
    assert (receipt.removed_count, receipt.removed_state_count) == (3, 2)
    await _assert_holds_nothing(store)
    assert await store.namespace(NS) is None
    assert await _names(store) == []
    assert await store.read_changes(NS, 0, PLENTY) == []


async def test_delete_needs_a_namespace(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.delete_namespace(NS)
    await _fill(store)
    await store.delete_namespace(NS)
    with pytest.raises(NotFound):
        await store.delete_namespace(NS)


async def test_a_namespace_begins_anew_after_deletion(store: Store) -> None:
    await _fill(store)
    old = await _info(store)
    first = (await store.read_changes(NS, 0, 1))[0]
    await store.delete_namespace(NS)
    stamp = (await store.add_items(NS, [build_write("z", "plum", [1.0, 0.0], model="local:b")])).items[0]
    assert stamp.revision == first.revision
    new = await _info(store)
    assert new.uid != old.uid
    assert (new.item_count, new.state_count, new.dimension, new.model) == (1, 0, 2, "local:b")
    assert await words_found(store, "kiwi plum") == {"z"}
    assert set(await search_hits(store, vector=[0.0, 1.0])) == {"z"}


async def test_uids_are_never_reused(store: Store) -> None:
    uids = set()
    for _ in range(3):
        for name in ("one", "two"):
            await store.save_state(name, build_state("k"))
            uids.add((await _info(store, name)).uid)
        await store.delete_namespace("two")
        await store.delete_namespace("one")
    assert len(uids) == 6


async def test_removing_the_expired_takes_only_them(store: Store) -> None:
    later = NOW + SECOND
    await store.add_items(
        "one", [build_write("a", "kiwi", axis_vector(0), expire_us=later), build_write("b")]
    )
    await store.add_items("two", [build_write("a", "kiwi", axis_vector(0), expire_us=later + 1)])
    await store.save_state("one", build_state("k", expire_us=later))
    await store.save_state("three", build_state("k", expire_us=later))
    await store.save_state("three", build_state("l"))
    assert await store.remove_expired(later - 1, 0, PLENTY) == 0
    assert await store.remove_expired(later, 0, PLENTY) == 3
    assert await store.remove_expired(later, 0, PLENTY) == 0
    # Reading at a time when all were alive shows only what was not removed.
    assert await scan_ids(store, "one") == ["b"]
    assert await store.get_items("one", ["a"]) == {}
    assert await words_found(store, "kiwi", "one") == set()
    assert await search_hits(store, "one", vector=axis_vector(0)) == {}
    assert await words_found(store, "kiwi", "two") == {"a"}
    assert await store.load_states("one", ["k"]) == {}
    assert set(await store.load_states("three", ["k", "l"])) == {"l"}
    info = await _info(store, "one")
    assert (info.item_count, info.embedded_count, info.state_count) == (1, 0, 0)


async def test_removing_the_expired_stops_at_its_limit(store: Store) -> None:
    later = NOW + SECOND
    for name in ("one", "two"):
        await store.add_items(name, [build_write(f"i{n}", expire_us=later) for n in range(5)])
        for n in range(3):
            await store.save_state(name, build_state(f"k{n}", expire_us=later))
    removed: list[int] = []
    while not removed or removed[-1]:
        removed.append(await store.remove_expired(later, 0, 6))
    assert removed == [6, 6, 4, 0]
    infos = [await _info(store, name) for name in ("one", "two")]
    assert [(info.item_count, info.state_count) for info in infos] == [(0, 0), (0, 0)]


async def test_an_emptied_namespace_is_still_there(store: Store) -> None:
    await store.add_items(NS, [build_write("a")])
    receipt = await store.delete_item(NS, "a", now_us=NOW)
    info = await _info(store)
    assert (info.item_count, info.revision) == (0, receipt.revision)
