"""Search: scores, channels, filters, and visibility of recent writes."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from contract.builders import (
    NOW,
    NS,
    PLENTY,
    SECOND,
    axis_vector,
    build_write,
    cosines,
    hits_by_id,
    random_vectors,
    search_hits,
    word_scores,
    words_found,
)
from memory_service.data_model import Hits, ItemFilter, ItemWrite, OnDuplicate, SearchQuery
from memory_service.store import Store


async def _add_vectors(store: Store, vectors: np.ndarray[Any, Any], **fields: Any) -> list[str]:
    ids = [f"v{n}" for n in range(len(vectors))]
    writes = [build_write(name, "kiwi", vector, **fields) for name, vector in zip(ids, vectors, strict=True)]
    await store.add_items(NS, writes)
    return ids


async def test_a_namespace_that_does_not_exist_has_no_hits(store: Store) -> None:
    assert await search_hits(store, vector=[1, 0], text="kiwi") == {}


async def test_a_vector_score_is_the_cosine_whatever_the_lengths(store: Store) -> None:
    vectors = random_vectors(50)
    ids = await _add_vectors(store, vectors)
    for query in random_vectors(5, stream=1):
        hits = await search_hits(store, vector=query, candidates=50)
        expected = dict(zip(ids, cosines(query, vectors), strict=True))
        assert {name: hit.vector_score for name, hit in hits.items()} == pytest.approx(expected, abs=1e-5)
        assert all(hit.lexical_score is None for hit in hits.values())


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e20, 1e30])
async def test_very_long_and_very_short_vectors_keep_their_cosine(store: Store, scale: float) -> None:
    # Their squares overflow float32.
    await store.add_items(
        NS,
        [build_write("near", "x", [scale, scale]), build_write("far", "x", [-scale, 0]), build_write("not")],
    )
    for query in ([1.0, 1.0], [scale, scale]):
        hits = await search_hits(store, vector=query)
        assert {name: hit.vector_score for name, hit in hits.items()} == pytest.approx(
            {"near": 1.0, "far": -(0.5**0.5)}, abs=1e-5
        )


async def test_opposite_vectors_are_found_too_when_there_is_room(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x", [1, 0]), build_write("b", "x", [-1, 0])])
    hits = await search_hits(store, vector=[1, 0])
    assert {name: hit.vector_score for name, hit in hits.items()} == pytest.approx({"a": 1, "b": -1})


async def test_no_candidates_are_no_hits(store: Store) -> None:
    await _add_vectors(store, random_vectors(3))
    assert await search_hits(store, vector=random_vectors(1)[0], text="kiwi", candidates=0) == {}


@pytest.mark.parametrize("count", [5, 60])
async def test_more_candidates_than_items_are_all_of_them(store: Store, count: int) -> None:
    ids = await _add_vectors(store, random_vectors(count))
    await store.flush()
    assert set(await search_hits(store, vector=random_vectors(1)[0], candidates=PLENTY)) == set(ids)
    await store.delete_item(NS, ids[0], now_us=NOW)
    assert set(await search_hits(store, vector=random_vectors(1)[0], candidates=count)) == set(ids[1:])


@pytest.mark.parametrize("count", [5, 60])
async def test_when_all_are_deleted_nothing_is_found_until_the_next_is_added(
    store: Store, count: int
) -> None:
    vectors = random_vectors(count)
    ids = await _add_vectors(store, vectors)
    await store.flush()
    for name in ids:
        await store.delete_item(NS, name, now_us=NOW)
    assert await search_hits(store, vector=vectors[0], text="kiwi") == {}
    await store.flush()
    assert await search_hits(store, vector=vectors[0]) == {}
    await store.add_items(NS, [build_write("next", "kiwi", vectors[1])])
    assert set(await search_hits(store, vector=vectors[0], text="kiwi")) == {"next"}


async def test_a_namespace_without_vectors_has_no_vector_hits(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "kiwi"), build_write("b", "plum")])
    assert await search_hits(store, vector=[1, 0]) == {}
    hits = await search_hits(store, vector=[1, 0], text="kiwi")
    assert set(hits) == {"a"}
    assert hits["a"].vector_score is None


async def test_every_hit_has_its_score_in_every_channel_asked(store: Store) -> None:
    await store.add_items(
        NS,
        [
            build_write("by vector", "plum", [1, 0]),
            build_write("by words", "kiwi", [0, 1]),
            build_write("by both", "kiwi", [1, 1]),
            build_write("without vector", "kiwi"),
            build_write("without match", "plum", [-1, -1]),
        ],
    )
    scores = await word_scores(store, "kiwi")
    hits = await search_hits(store, vector=[1, 0], text="kiwi", candidates=3)
    assert set(hits) == {"by vector", "by words", "by both", "without vector"}
    assert hits["without vector"].vector_score is None
    assert {
        name: hit.vector_score for name, hit in hits.items() if name != "without vector"
    } == pytest.approx({"by vector": 1.0, "by words": 0.0, "by both": 0.5**0.5}, abs=1e-6)
    assert hits["by vector"].lexical_score == 0.0
    assert {name: hit.lexical_score for name, hit in hits.items()} == pytest.approx(
        scores | {"by vector": 0.0}
    )


async def test_scores_of_what_the_other_channel_found_are_true_beyond_its_candidates(store: Store) -> None:
    # Each channel finds only one item; its score for the other channel's hit is below its own best.
    vectors = random_vectors(60)
    texts = [f"kiwi {'plum ' * (n % 7)}" for n in range(60)]
    await store.add_items(NS, [build_write(f"v{n}", texts[n], vectors[n]) for n in range(60)])
    await store.flush()
    scores = await word_scores(store, "plum")
    for query in random_vectors(5, stream=1):
        hits = await search_hits(store, vector=query, text="plum", candidates=1)
        exact = cosines(query, vectors)
        assert 1 <= len(hits) <= 2
        for name, hit in hits.items():
            assert hit.vector_score == pytest.approx(exact[int(name[1:])], abs=1e-5)
            assert hit.lexical_score == pytest.approx(scores.get(name, 0.0))


async def test_each_channel_gets_its_own_candidates(store: Store) -> None:
    vectors = [axis_vector(0)] * 5 + [axis_vector(1)] * 5
    texts = ["plum"] * 5 + ["kiwi"] * 5
    await store.add_items(NS, [build_write(f"i{n}", texts[n], vectors[n]) for n in range(10)])
    hits = await search_hits(store, vector=axis_vector(0), text="kiwi", candidates=4)
    assert sum(hit.vector_score == pytest.approx(1) for hit in hits.values()) == 4
    assert sum(hit.lexical_score != 0 for hit in hits.values()) == 4


async def test_filters_hold_in_both_channels(store: Store) -> None:
    vectors = random_vectors(12)
    for n in range(12):
        fields: dict[str, Any] = {
            "session_id": f"s{n % 3}",
            "labels": {"k": f"v{n % 2}"},
            "create_us": NOW + n,
        }
        await store.add_items(NS, [build_write(f"i{n}", "kiwi", vectors[n], **fields)])

    async def found(**filter_fields: Any) -> set[str]:
        by_vector = set(await search_hits(store, vector=vectors[0], candidates=PLENTY, **filter_fields))
        assert by_vector == await words_found(store, "kiwi", **filter_fields)
        return by_vector

    assert await found(session_id="s1") == {"i1", "i4", "i7", "i10"}
    assert await found(session_id="s1", labels=(("k", "v0"),)) == {"i4", "i10"}
    assert await found(start_us=NOW + 9, end_us=NOW + 11) == {"i9", "i10"}
    assert await found(session_id="none") == set()
    first = (await store.get_items(NS, ["i10"]))["i10"].position
    assert await found(min_position=first) == {"i10", "i11"}
    assert len(await found(max_position=first - 1)) == 10


async def test_a_filter_changes_no_score(store: Store) -> None:
    vectors = random_vectors(20)
    texts = [f"kiwi {'fig ' * (n % 5)}" for n in range(20)]
    await store.add_items(
        NS, [build_write(f"i{n}", texts[n], vectors[n], session_id=f"s{n % 2}") for n in range(20)]
    )
    query: dict[str, Any] = {"vector": vectors[3], "text": "kiwi fig", "candidates": PLENTY}
    everywhere = await search_hits(store, **query)
    within = await search_hits(store, session_id="s1", **query)
    assert set(within) == {f"i{n}" for n in range(1, 20, 2)}
    for name, hit in within.items():
        assert hit.lexical_score == pytest.approx(everywhere[name].lexical_score)
        assert hit.vector_score == pytest.approx(everywhere[name].vector_score)


@pytest.mark.parametrize("count", [10, 80])
async def test_expired_items_are_not_found_and_take_no_place(store: Store, count: int) -> None:
    # All of the nearest expire: a search that drops them after choosing its candidates finds nothing.
    later = NOW + SECOND
    expiring = [build_write(f"gone{n}", "kiwi kiwi", [1, n / 1000], expire_us=later) for n in range(count)]
    await store.add_items(NS, [*expiring, build_write("kept", "kiwi and plum", [0, 1], expire_us=later + 1)])
    await store.flush()
    queries: list[dict[str, Any]] = [{"vector": [1, 0]}, {"text": "kiwi"}, {"vector": [1, 0], "text": "kiwi"}]
    for query in queries:
        assert set(await search_hits(store, candidates=1, now_us=later, **query)) == {"kept"}
        assert "kept" not in await search_hits(store, candidates=1, **query)


async def test_an_added_item_is_found_at_once(store: Store) -> None:
    # Enough for the graph to be built and merged into meanwhile.
    for n, vector in enumerate(random_vectors(90)):
        await store.add_items(NS, [build_write(f"i{n}", f"word{n}", vector)])
        hits = await search_hits(store, vector=vector, text=f"word{n}", candidates=1)
        assert hits[f"i{n}"].vector_score == pytest.approx(1, abs=1e-5)
        assert (hits[f"i{n}"].lexical_score or 0) > 0


async def test_a_replaced_vector_is_found_at_once_and_the_old_one_never(store: Store) -> None:
    old, new = random_vectors(70), random_vectors(70, stream=1)
    ids = await _add_vectors(store, old)
    await store.flush()
    for n in range(0, 70, 3):
        await store.replace_item(NS, build_write(ids[n], "plum", new[n]))
        hits = await search_hits(store, vector=new[n], candidates=1)
        assert hits[ids[n]].vector_score == pytest.approx(1, abs=1e-5)
        for name, hit in (await search_hits(store, vector=old[n], candidates=3)).items():
            assert name != ids[n] or (hit.vector_score or 0) < 0.999


async def test_a_deleted_vector_is_gone_at_once(store: Store) -> None:
    vectors = random_vectors(70)
    ids = await _add_vectors(store, vectors)
    await store.flush()
    for n in range(0, 70, 3):
        await store.delete_item(NS, ids[n], now_us=NOW)
        assert ids[n] not in await search_hits(store, vector=vectors[n], candidates=5)


async def test_a_deleted_id_that_is_added_again_is_found_by_its_new_vector(store: Store) -> None:
    old, new = random_vectors(60), random_vectors(60, stream=1)
    ids = await _add_vectors(store, old)
    await store.flush()
    for n in range(0, 60, 7):
        await store.delete_item(NS, ids[n], now_us=NOW)
        await store.add_items(NS, [build_write(ids[n], "plum", new[n])])
    # Before and after the new ones are merged into the graph.
    for _ in range(2):
        for n in range(0, 60, 7):
            hits = await search_hits(store, vector=new[n], candidates=1)
            assert hits[ids[n]].vector_score == pytest.approx(1, abs=1e-5)
            stale = (await search_hits(store, vector=old[n], candidates=60))[ids[n]]
            assert (stale.vector_score or 0) < 0.999
        await store.flush()


async def test_an_item_that_changes_back_and_forth_is_found_once(store: Store) -> None:
    await _add_vectors(store, random_vectors(50, 4))
    for n in range(24):
        changed = [build_write("v0", "plum", axis_vector(n % 4))]
        await store.add_items(NS, changed, on_duplicate=OnDuplicate.REPLACE)
        hits = await search_hits(store, vector=axis_vector(n % 4), candidates=PLENTY)
        assert len(hits) == 50
        assert hits["v0"].vector_score == pytest.approx(1)
    await store.flush()
    assert len(await search_hits(store, vector=axis_vector(0), candidates=PLENTY)) == 50


async def test_an_answer_is_of_one_revision(store: Store) -> None:
    """Two items change together, between two versions that differ in words and in vector."""
    looks = {"red": [1.0, 0.0], "blue": [0.0, 1.0]}
    filler = [build_write(f"v{n}", "grey", [-1.0, -0.2 - 0.05 * n]) for n in range(40)]

    def pair(look: str) -> list[ItemWrite]:
        return [build_write(name, look, looks[look]) for name in ("a", "b")]

    await store.add_items(NS, [*filler, *pair("red")])
    answers: list[Hits] = []
    ended = asyncio.Event()

    async def look_on() -> None:
        query = SearchQuery(ItemFilter(now_us=NOW), PLENTY, np.array([1, 0], np.float32), "red")
        while not ended.is_set():
            answers.append(await (await store.read(NS)).search(query))
            # A store may answer without yielding to other tasks.
            await asyncio.sleep(0)

    watchers = [asyncio.create_task(look_on()) for _ in range(2)]
    for look in ["blue", "red"] * 12:
        await store.add_items(NS, pair(look), on_duplicate=OnDuplicate.REPLACE)
    ended.set()
    await asyncio.gather(*watchers)
    for answer in answers:
        pair = {name: hit for name, hit in (await hits_by_id(store, NS, answer)).items() if name in "ab"}
        red = [(hit.lexical_score or 0) > 0 for hit in pair.values()]
        assert red == [(hit.vector_score or 0) > 0.5 for hit in pair.values()]
        assert len(pair) == 2 and red in ([True] * 2, [False] * 2)
