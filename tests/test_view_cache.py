"""Views in memory: what is told while a view is read is not lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.settings import IndexSettings
from memory_service.indexes.view import Entry, NamespaceView
from memory_service.records import Item, ItemKind, NamespaceInfo, TextPart
from memory_service.stores.hnsw.snapshots import Snapshots
from memory_service.stores.hnsw.view_cache import ViewCache


async def test_uses_that_are_told_while_a_view_is_read_reach_it(tmp_path: Path) -> None:
    analyzer, settings = Analyzer(), IndexSettings()
    read = NamespaceView(analyzer, settings)
    item = Item("a", "", TextPart("tea"), create_us=0, update_us=0)
    read.add(Entry(1, 1, "", 0, None, {}, ItemKind.PLAIN, {}, None, item))
    read.revision = 1
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(work: object) -> tuple[NamespaceInfo, NamespaceView]:
        begun.set()
        await go_on.wait()
        return NamespaceInfo("a", 1, 1, 1, 0, 0, 0, "", 0), read

    async def record(uid: int, manifest: str) -> bool:
        return True

    cache = ViewCache(settings, Snapshots(tmp_path / "indexes"), analyzer, slowly, record)
    reading = asyncio.create_task(cache.get("a"))
    await begun.wait()
    # One of no item, one that was read before it was told, and the last.
    for told in ({7: 1}, {1: 4}, {1: 5}):
        cache.publish_uses("a", told)
    go_on.set()
    view = await reading
    assert view is not None
    assert view.use_counts.view.tolist() == [5]
    cache.publish_uses("a", {1: 4})
    assert view.use_counts.view.tolist() == [5]
    cache.publish_uses("a", {1: 6})
    assert view.use_counts.view.tolist() == [6]
    assert view.revision == 1
    await cache.close()
