"""A joint search of several namespaces finds what a search of one namespace with all items would."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from contract.builders import EVERYTHING, NS, SECOND, build_write, random_vectors
from memory_service.data_model import Hits, ItemWrite, SearchQuery
from memory_service.store import Store

_WORDS = [f"word{n}" for n in range(60)]
_NAMES = [f"joint/{n}" for n in range(4)]
_WHOLE = "joint/whole"


def _writes(count: int) -> list[ItemWrite]:
    chance, vectors = random.Random(5), random_vectors(count)
    return [
        build_write(
            f"i{n}",
            " ".join(chance.choices(_WORDS, k=chance.randint(1, 12))),
            vector if n % 5 else None,
            session_id=f"s{n % len(_NAMES)}-{n // 24}",
            create_us=EVERYTHING.now_us + n * SECOND,
        )
        for n, vector in enumerate(vectors)
    ]


async def _fill(store: Store, count: int = 240) -> None:
    """Write items to namespaces in turn, and all of them to one."""
    for n, name in enumerate(_NAMES):
        await store.add_items(name, _writes(count)[n :: len(_NAMES)])
    await store.add_items(_WHOLE, _writes(count))


async def _together(store: Store, query: SearchQuery, names: list[str] = _NAMES) -> dict[str, Any]:
    """Return the scores of the hits of a joint search, by item."""
    readings = [await store.read(name) for name in names]
    found = await readings[0].search_together(readings[1:], [query] * len(names))
    rows: dict[str, Any] = {}
    for reading, hits in zip(readings, found, strict=True):
        rows |= await _rows(reading, hits)
    return rows


async def _rows(reading: Any, hits: Hits) -> dict[str, Any]:
    items = await reading.load_items(hits.positions)
    columns = (hits.vector_scores, hits.lexical_scores, hits.word_shares, hits.create_us)
    return {
        item.id: [None if column is None else column[at] for column in columns]
        for at, item in enumerate(items)
    }


async def _alone(store: Store, query: SearchQuery) -> dict[str, Any]:
    reading = await store.read(_WHOLE)
    return await _rows(reading, await reading.search(query))


@pytest.mark.parametrize("channels", ["words", "vector", "both"])
@pytest.mark.parametrize("candidates", [5, 40, 1000])
async def test_it_finds_what_one_namespace_with_all_would(
    store: Store, channels: str, candidates: int
) -> None:
    await _fill(store)
    chance = random.Random(6)
    for vector in random_vectors(8, stream=1):
        query = SearchQuery(
            EVERYTHING,
            candidates,
            None if channels == "words" else vector,
            None if channels == "vector" else " ".join(chance.choices(_WORDS, k=4)),
            described=True,
        )
        together, alone = await _together(store, query), await _alone(store, query)
        assert together.keys() == alone.keys()
        for name, row in alone.items():
            assert together[name] == pytest.approx(row, abs=1e-5), name


async def test_filters_and_neighbour_weights_hold(store: Store) -> None:
    await _fill(store)
    of_session = msgspec.structs.replace(EVERYTHING, session_id="s1-2")
    for wanted, weight in ((of_session, 1.0), (EVERYTHING, 0.5), (EVERYTHING, 0.0)):
        query = SearchQuery(wanted, 30, None, "word1 word2 word3", neighbour_weight=weight)
        together, alone = await _together(store, query), await _alone(store, query)
        assert together.keys() == alone.keys() and together
        assert all(together[name] == pytest.approx(row, abs=1e-5) for name, row in alone.items())


async def test_deleted_items_do_not_count(store: Store) -> None:
    await _fill(store, 80)
    for n in range(0, 80, 3):
        for name in (_NAMES[n % len(_NAMES)], _WHOLE):
            await store.delete_item(name, f"i{n}", now_us=EVERYTHING.now_us)
    query = SearchQuery(EVERYTHING, 20, None, "word1 word2 word3")
    together, alone = await _together(store, query), await _alone(store, query)
    assert together.keys() == alone.keys() and together
    assert all(together[name] == pytest.approx(row, abs=1e-5) for name, row in alone.items())


async def test_sessions_of_one_name_are_separate(store: Store) -> None:
    await store.add_items(_NAMES[0], [build_write("a", "kiwi", session_id="s")])
    await store.add_items(_NAMES[1], [build_write("b", "fig", session_id="s")])
    assert (await _together(store, SearchQuery(EVERYTHING, 9, None, "kiwi"), _NAMES[:2])).keys() == {"a"}


async def test_a_query_may_lack_its_vector_for_a_namespace(store: Store) -> None:
    await store.add_items(_NAMES[0], [build_write("near", "fig", [1, 0])])
    await store.add_items(_NAMES[1], [build_write("other", "kiwi", [1, 0, 0])])
    query = SearchQuery(EVERYTHING, 9, random_vectors(1, 2)[0], "kiwi")
    readings = [await store.read(name) for name in _NAMES[:2]]
    bare = msgspec.structs.replace(query, vector=None)
    near, other = await readings[0].search_together(readings[1:], [query, bare])
    assert len(near.positions) == 1 and near.vector_scores is not None
    assert len(other.positions) == 1 and other.vector_scores is None


async def test_the_share_of_words_counts_rare_ones_more_and_neighbours_less(store: Store) -> None:
    writes = [build_write(f"common{n}", "plum") for n in range(20)]
    await store.add_items(NS, [*writes, build_write("rare", "kiwi"), build_write("both", "plum kiwi")])
    await store.add_items(
        NS, [build_write("q", "kiwi plum", session_id="s"), build_write("a", "yes", session_id="s")]
    )
    reading = await store.read(NS)
    found = await _rows(reading, await reading.search(SearchQuery(EVERYTHING, 99, None, "kiwi plum")))
    shares = {name: row[2] for name, row in found.items()}
    assert shares["both"] == shares["q"] == pytest.approx(1)
    assert 1 > shares["a"] > shares["rare"] > 0.5 > shares["common0"] > 0
    assert shares["rare"] + shares["common0"] == pytest.approx(1)
    of_stop_words = await reading.search(SearchQuery(EVERYTHING, 99, None, "who are you"))
    assert of_stop_words.word_shares is None
