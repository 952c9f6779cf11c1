"""Which searches count as long, and that their results in a thread equal those on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from contract.builders import EVERYTHING, build_write
from memory_service.data_model import ItemFilter, SearchQuery
from memory_service.indexes.search import Long, begin_long, search, search_all
from memory_service.indexes.settings import IndexSettings
from memory_service.indexes.view import NamespaceView
from memory_service.indexes.word_scoring import Scratch
from memory_service.stores import SqliteStore

ITEMS = 2000
# One in this many is in the session "rare", the others are in "common".
RARE = 20
WORK = 4000
RNG = np.random.default_rng(7)
VECTORS = RNG.standard_normal((ITEMS, 16)).astype(np.float32)
TEXT = SearchQuery(EVERYTHING, 10, text="apple banana")
NEAREST = SearchQuery(EVERYTHING, 10, vector=VECTORS[3])
BOTH = msgspec.structs.replace(TEXT, vector=VECTORS[3], nearest=10)
OF_MANY = msgspec.structs.replace(EVERYTHING, session_id="common")
OF_FEW = msgspec.structs.replace(EVERYTHING, session_id="rare")
Replace = dict[str, int | ItemFilter]


# The graph is searched if more than four times as many match as are wanted.
SETTINGS = IndexSettings(exact_vectors_max=32, tail_vectors_max=8)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    words = ("apple", "banana", "cherry", "damson")

    async def fill() -> None:
        store = SqliteStore(folder, SETTINGS)
        await store.open()
        for start in range(0, ITEMS, 500):
            writes = [
                build_write(
                    str(n), f"{words[n % 4]} {n}", VECTORS[n], session_id="common" if n % RARE else "rare"
                )
                for n in range(start, start + 500)
            ]
            await store.add_items("orchard", writes)
        await store.flush()
        await store.close()

    asyncio.run(fill())
    return folder


@pytest.fixture
async def view(filled: Path) -> AsyncIterator[NamespaceView]:
    """A view with a graph over all its vectors."""
    store = SqliteStore(filled, SETTINGS)
    await store.open()
    await (await store.read("orchard")).search(TEXT)
    view = store.views.cache.peek("orchard")
    assert view is not None
    assert view.vectors is not None
    assert view.vectors.graph_count == ITEMS
    yield view
    await store.close()


@pytest.mark.parametrize(
    ("query", "more"),
    [
        (TEXT, {"candidates": 1000}),
        (NEAREST, {"candidates": 400}),
        (BOTH, {"nearest": 400}),
        # The graph is asked for many more results than are wanted.
        (NEAREST, {"filter": OF_FEW}),
    ],
    ids=["many candidates", "many of the nearest", "many of the nearest beside words", "few of many match"],
)
def test_a_search_takes_long_for_what_it_does_and_not_for_its_words_alone(
    view: NamespaceView, query: SearchQuery, more: Replace
) -> None:
    short, long = query, msgspec.structs.replace(query, **more)
    assert search_all(view, [short], WORK) == [search(view, short)]
    assert isinstance(search_all(view, [long], WORK)[0], Long)


@pytest.mark.parametrize("wanted", [EVERYTHING, OF_MANY, OF_FEW], ids=["all", "many", "few"])
@pytest.mark.parametrize("query", [TEXT, NEAREST, BOTH], ids=["words", "vector", "both"])
@pytest.mark.parametrize("described", [False, True])
def test_a_long_search_finds_what_a_short_one_does(
    view: NamespaceView, query: SearchQuery, wanted: ItemFilter, described: bool
) -> None:
    asked = msgspec.structs.replace(query, filter=wanted, described=described)
    terms = None if asked.text is None else view.analyzer.query_terms(asked.text)
    found = begin_long(view, asked, Long(terms)).finish(Scratch())
    assert found == search(view, asked)
    assert found.positions
