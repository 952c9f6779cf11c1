"""A greedy owner delays only itself: in the commit queue, in the queue of long searches, on arrival."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import msgspec
import numpy as np
import pytest

from contract.builders import NOW, build_write
from memory_service.data_model import Hits, ItemFilter, SearchQuery
from memory_service.errors import Overloaded
from memory_service.indexes.search import Long, search, search_all
from memory_service.records.sqlite.commit_queue import CommitQueue
from memory_service.records.sqlite.connection import connect
from memory_service.records.sqlite.disk_space import DiskSpace, SpaceSettings
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.deadline import set_remaining_s
from memory_service.stores import SqliteStore
from memory_service.views.long_searches import LONG_POSTINGS

WORDS = "apple banana cherry damson elder fig grape hazel iris juniper kiwi lemon"
ITEMS = LONG_POSTINGS // len(WORDS.split()) + 1
BATCH = 1000
QUERY = SearchQuery(filter=ItemFilter(now_us=NOW), text=WORDS, candidates=10)
COMMIT = "commit"
WAITING_MAX = 16
GATEWAY = replace(ANYBODY, name="gateway")
OTHER = replace(ANYBODY, name="other")


class Commits:
    """A commit queue that waits until the test lets it begin, and records its work in order."""

    def __init__(self, folder: Path) -> None:
        self.done: list[str] = []
        self._begun, self._may_begin = Event(), Event()
        self._queue = CommitQueue(
            connect(folder / "records.db", writer=True),
            DiskSpace(folder, SpaceSettings()),
            lambda db: self.done.append(COMMIT),
            lambda: None,
            connect(folder / "records.db"),
            queued_writes_max=1000,
        )
        self._writes = [asyncio.ensure_future(self._queue.write(self._hold, lambda _: None, heavy=True))]

    def _hold(self, db: object) -> None:
        self._begun.set()
        self._may_begin.wait(60)

    async def begin(self) -> None:
        """Return when the next writes have to wait."""
        await asyncio.to_thread(self._begun.wait, 60)

    def write(self, owner: str, *, heavy: bool = False, caller: Caller = ANYBODY) -> None:
        write = self._queue.write(
            lambda db: self.done.append(owner), lambda _: None, owner=(caller.name, owner), heavy=heavy
        )
        self._writes.append(asyncio.ensure_future(write))

    async def finish(self) -> list[list[str]]:
        """Let all writes finish; return the groups that they were committed in, without the first."""
        await asyncio.sleep(0)
        self._may_begin.set()
        await asyncio.gather(*self._writes)
        await self._queue.close()
        groups: list[list[str]] = [[]]
        for what in self.done:
            if what == COMMIT:
                groups.append([])
            else:
                groups[-1].append(what)
        return groups[1:-1]


async def test_a_write_waits_for_few_of_somebody_else(tmp_path: Path) -> None:
    commits = Commits(tmp_path)
    await commits.begin()
    for _ in range(400):
        commits.write("greedy")
    for _ in range(3):
        commits.write("modest")
    groups = await commits.finish()
    assert groups[0][:6] == ["greedy", "modest"] * 3
    assert sum(map(len, groups)) == 403


async def test_callers_take_turns_and_so_do_the_namespaces_of_each(tmp_path: Path) -> None:
    commits = Commits(tmp_path)
    await commits.begin()
    for _ in range(20):
        commits.write("busy tenant", caller=GATEWAY)
    commits.write("quiet tenant", caller=GATEWAY)
    for _ in range(3):
        commits.write("other", caller=OTHER)
    groups = await commits.finish()
    assert groups[0][:6] == ["busy tenant", "other", "quiet tenant", "other", "busy tenant", "other"]


async def test_a_heavy_write_is_a_group_by_itself(tmp_path: Path) -> None:
    commits = Commits(tmp_path)
    await commits.begin()
    for _ in range(20):
        commits.write("greedy", heavy=True)
    for _ in range(3):
        commits.write("modest")
    groups = await commits.finish()
    assert groups[:6] == [["greedy"], ["modest"]] * 3
    assert groups[6:] == [["greedy"]] * 17


async def test_writes_that_are_not_heavy_share_a_group_up_to_one_that_is(tmp_path: Path) -> None:
    commits = Commits(tmp_path)
    await commits.begin()
    for name in "abc":
        commits.write(name)
    commits.write("heavy", heavy=True)
    for name in "ab":
        commits.write(name)
    assert await commits.finish() == [["a", "b", "c"], ["heavy"], ["a", "b"]]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two namespaces in which searches take long."""
    folder = tmp_path_factory.mktemp("filled")

    async def fill() -> None:
        store = SqliteStore(folder)
        await store.open()
        for namespace in ("greedy", "modest"):
            for start in range(0, ITEMS, BATCH):
                writes = [build_write(str(n), f"{WORDS} {n}") for n in range(start, start + BATCH)]
                await store.add_items(namespace, writes)
        await store.close()

    asyncio.run(fill())
    return folder


@pytest.fixture
async def store(filled: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(filled, waiting_searches_max=WAITING_MAX)
    await store.open()
    yield store
    await store.close()


class Searches:
    """Long searches and the order in which they ended."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.answered: list[str] = []
        self.refused: list[str] = []

    async def ask(self, namespace: str, caller_waits_s: float | None = None) -> Hits:
        set_remaining_s(caller_waits_s)
        try:
            hits = await (await self._store.read(namespace)).search(QUERY)
        except Overloaded:
            self.refused.append(namespace)
            raise
        self.answered.append(namespace)
        return hits


async def test_namespaces_take_turns_in_long_searches(store: SqliteStore) -> None:
    searches = Searches(store)
    # The views are loaded, one after the other.
    alone = [await searches.ask(namespace) for namespace in ("greedy", "modest")]
    searches.answered.clear()
    found = await asyncio.gather(*(searches.ask(n) for n in ["greedy"] * 10 + ["modest"] * 2))
    assert searches.answered[:5] == ["greedy", "greedy", "modest", "greedy", "modest"]
    assert found == [alone[0]] * 10 + [alone[1]] * 2


async def test_where_too_many_long_searches_wait_those_of_the_greedy_are_refused(store: SqliteStore) -> None:
    searches = Searches(store)
    for namespace in ("greedy", "modest"):
        await searches.ask(namespace)
    searches.answered.clear()
    asked = ["greedy"] * (WAITING_MAX + 3) + ["modest"] * 2
    await asyncio.gather(*(searches.ask(namespace) for namespace in asked), return_exceptions=True)
    # One is running; two found no room, and two more were displaced.
    assert searches.refused == ["greedy"] * 4
    assert searches.answered.count("modest") == 2
    assert len(searches.answered) == len(asked) - 4


async def test_a_long_search_that_could_not_begin_in_time_is_refused(store: SqliteStore) -> None:
    searches = Searches(store)
    await searches.ask("greedy")
    asked = searches.ask("greedy"), searches.ask("greedy", 1e-6)
    first, second = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(first, Hits)
    assert isinstance(second, Overloaded)


async def test_a_long_search_finds_what_a_short_one_does_by_words_and_by_vectors(store: SqliteStore) -> None:
    # No word of the query is in this item: only its vector leads to it.
    near, far = np.eye(8, dtype=np.float32)[:2]
    await store.add_items("modest", [build_write("near", "zebra", near)])
    await store.add_items("modest", [build_write("far", "zebra", far)])
    query = msgspec.structs.replace(QUERY, vector=near, nearest=1)
    found = await (await store.read("modest")).search(query)
    view = store.views.cache.peek("modest")
    assert view is not None
    assert isinstance(search_all(view, [query], LONG_POSTINGS)[0], Long)
    assert found == search(view, query)
    ((place, score),) = [
        (at, score) for at, score in enumerate(found.vector_scores or ()) if score is not None
    ]
    assert score == 1.0
    (item,) = await (await store.read("modest")).load_items([found.positions[place]])
    assert item is not None
    assert item.id == "near"


async def test_a_view_does_not_change_under_a_search(store: SqliteStore) -> None:
    await (await store.read("modest")).search(QUERY)
    view = store.views.cache.peek("modest")
    assert view is not None
    happened = []

    def change() -> None:
        view.remove([int(view.positions.view[0])])
        happened.append("changed")

    view.searched.acquire()
    changing = Thread(target=change)
    changing.start()
    # It has to wait, however long the search takes.
    changing.join(0.3)
    happened.append("searched")
    view.searched.release()
    changing.join()
    assert happened == ["searched", "changed"]
