"""Views in memory: changes that are published while a view is read are not lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contract.builders import build_write
from memory_service.data_model import Item, ItemKind, NamespaceInfo, TextPart
from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.settings import IndexSettings
from memory_service.indexes.view import Entry, NamespaceView
from memory_service.records.effects import Effect
from memory_service.records.row_source import Rows, RowSource
from memory_service.records.sqlite.commit_queue import HEAVY_ITEMS
from memory_service.stores import SqliteStore
from memory_service.views.cache import ViewCache
from memory_service.views.snapshots import Snapshots


class Source(RowSource):
    records_format = 1

    async def read_rows(self, namespace: str, work: Callable[[Rows], Any]) -> Any:
        raise AssertionError("nothing is read")

    async def keep_manifest(self, uid: int, manifest: str) -> bool:
        return True


def entry(position: int) -> Entry:
    item = Item(f"item {position}", "", TextPart("tea"), create_us=0, update_us=0)
    return Entry(position, position, "", 0, None, {}, ItemKind.PLAIN, b"", None, item)


async def test_uses_that_are_told_while_a_view_is_read_reach_it(tmp_path: Path) -> None:
    analyzer, settings = Analyzer(), IndexSettings()
    read = NamespaceView(analyzer, settings)
    read.add([entry(1)])
    read.revision = 1
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Source):
        async def read_rows(self, namespace: str, work: Callable[[Rows], Any]) -> Any:
            begun.set()
            await go_on.wait()
            return 1, read

    cache = ViewCache(settings, Snapshots(tmp_path / "indexes", 1), analyzer, Slow())
    reading = asyncio.create_task(cache.get("a"))
    await begun.wait()
    # A count of a missing item, one that the read already includes, and the last.
    for told in ({7: 1}, {1: 4}, {1: 5}):
        cache.publish("a", Effect(use_counts=told))
    go_on.set()
    view = await reading
    assert view is not None
    assert view.use_counts.view.tolist() == [5]
    cache.publish("a", Effect(use_counts={1: 4}))
    assert view.use_counts.view.tolist() == [5]
    cache.publish("a", Effect(use_counts={1: 6}))
    assert view.use_counts.view.tolist() == [6]
    assert view.revision == 1
    await cache.close()


@pytest.mark.parametrize("count", [HEAVY_ITEMS, HEAVY_ITEMS + 1, 500])
async def test_what_a_write_added_is_indexed_when_it_is_answered(tmp_path: Path, count: int) -> None:
    store = SqliteStore(tmp_path)
    await store.open()
    await store.add_items("a", [build_write(str(number), "tea") for number in range(count)])
    view = store.views.cache.peek("a")
    assert view is not None
    assert len(view.positions) > count - HEAVY_ITEMS
    assert not view.index_some()
    assert len(view.positions) == count
    await store.close()


async def test_many_items_are_indexed_in_parts_between_which_others_come(tmp_path: Path) -> None:
    cache = ViewCache(IndexSettings(), Snapshots(tmp_path / "indexes", 1), Analyzer(), Source())
    cache.begin(NamespaceInfo("a", 1, 0, 0, 0, 0, 0, "", 0))
    cache.publish("a", Effect([entry(number) for number in range(300)], revision=300))
    view = cache.peek("a")
    assert view is not None
    indexed = [len(view.positions)]
    indexing = asyncio.create_task(cache.index_added("a"))
    while not indexing.done():
        await asyncio.sleep(0)
        indexed.append(len(view.positions))
    assert indexed[0] == 0
    assert indexed[-1] == 300
    assert len(set(indexed)) > 4
    await cache.close()
