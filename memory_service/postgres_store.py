"""The PostgreSQL store: records that servers share, and in-memory views that each server keeps up to date.

Before a view answers, the server checks the namespace's latest revision, once for all waiting calls, and
reads what the view lacks from the journal. A view that cannot catch up this way is dropped and loaded again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

from memory_service.data_model import IndexInfo, Item, NamespaceInfo
from memory_service.errors import Unavailable
from memory_service.indexes.settings import IndexSettings
from memory_service.reading import Reading
from memory_service.records.base import HISTORY_US, CannotOpen
from memory_service.records.effects import Effect
from memory_service.records.item_cache import ItemCache
from memory_service.records.postgres.checks import Checked, Checks
from memory_service.records.postgres.journal import Mark, read_missed
from memory_service.records.postgres.page import EMPTIED, MOVED, Page
from memory_service.records.postgres.records import PostgresRecords
from memory_service.records.postgres.row_source import PostgresRows
from memory_service.records.postgres.snapshots import keep_manifest
from memory_service.records.row_source import Rows
from memory_service.runtime.files import write_whole
from memory_service.runtime.log_causes import cause_of
from memory_service.store import Store
from memory_service.views.finding import Views
from memory_service.views.snapshots import Snapshots

T = TypeVar("T")

_MARKS_MIN = 64
"""Above this, marks of evicted views are dropped. Doubled: twice as many useless ones are kept."""


class PostgresStore(PostgresRecords, Store):
    """Records in a PostgreSQL database, with views of them in memory."""

    def __init__(
        self,
        dsn: str,
        settings: IndexSettings | None = None,
        *,
        cache_dir: Path,
        schema: str = "memory_service",
        history_us: int = HISTORY_US,
        namespace_bytes_max: int = 0,
        queued_writes_max: int = 10_000,
        waiting_searches_max: int = 64,
    ) -> None:
        """`dsn` is a libpq connection string; `cache_dir` holds files that may be lost.

        `namespace_bytes_max` 0: no limit.
        """
        super().__init__(
            dsn,
            schema=schema,
            history_us=history_us,
            namespace_bytes_max=namespace_bytes_max,
            queued_writes_max=queued_writes_max,
        )
        self._checks = Checks(self._database)
        self._settings = settings or IndexSettings()
        self._items = ItemCache(self._settings.items_bytes_max)
        self._readings = 0
        self._cache_dir = cache_dir
        self._waiting_searches_max = waiting_searches_max
        # The mark of each view that is loaded or loading, including what was published since.
        self._marks: dict[str, Mark] = {}
        self._marks_max = _MARKS_MIN
        # Views that are loading, until their mark is known; None: it could not be determined.
        self._reading: dict[str, asyncio.Future[Mark | None]] = {}
        self._catching_up: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def open(self) -> None:
        await super().open()
        try:
            self._snapshots = Snapshots(self._cache_dir / "indexes", self.records_format, None)
            self._cache = _name_of(self._cache_dir)
            self.views = Views(self, self._settings, self._snapshots, self._waiting_searches_max)
            await self.views.open()
        except (Unavailable, OSError) as error:
            await super().close()
            raise CannotOpen(f"cannot open {self._cache_dir}: {cause_of(error)}") from error

    async def close(self) -> None:
        self.refuse()
        await self.views.close()
        await self._checks.close()
        await super().close()

    async def flush(self) -> None:
        await self.views.settle()

    async def read(self, namespace: str) -> Reading:
        checked = await self._checks.check(namespace)
        if not self._is_newer_known(namespace, checked):
            self._remember(namespace, checked.info)
        if checked.info is None:
            if (mark := self._marks.get(namespace)) is not None:
                self._snapshots.remove(mark.uid)
            self._drop(namespace)
        elif not await self._is_current(namespace, checked):
            async with self._catching_up.setdefault(namespace, asyncio.Lock()):
                while not await self._is_current(namespace, checked):
                    if await self._catch_up(namespace):
                        break
        return self.views.read(namespace, checked.info)

    async def index_info(self, namespace: str) -> IndexInfo:
        return self.views.index_info(namespace)

    def _is_newer_known(self, namespace: str, checked: Checked) -> bool:
        """Whether this process has committed something newer than a check found."""
        mark = self._marks.get(namespace)
        return mark is not None and mark.number >= checked.number

    async def _is_current(self, namespace: str, checked: Checked) -> bool:
        """Whether the namespace's view, if there is one, is as new as the records in a check."""
        while (reading := self._reading.get(namespace)) is not None:
            await asyncio.shield(reading)
        if not self._has_view(namespace):
            return True
        mark, info = self._marks.get(namespace), checked.info
        if mark is None or info is None or mark.uid != info.uid:
            return False
        if (mark.seq, mark.stamp) == (checked.seq, checked.stamp):
            return True
        # Concurrent checks. A higher number alone may belong to a history that was lost.
        return mark.seq > checked.seq and mark.number >= checked.number

    def _has_view(self, namespace: str) -> bool:
        cache = self.views.cache
        return cache.peek(namespace) is not None or cache.is_loading(namespace)

    async def _catch_up(self, namespace: str) -> bool:
        """Update a view from the journal or drop it; return False if another call did so meanwhile."""
        mark = self._marks.get(namespace)
        missed = mark and await read_missed(self._database, namespace, mark, self._checks.number)
        if self._marks.get(namespace) is not mark:
            return False
        if not missed:
            self._drop(namespace)
            return True
        for effect in missed.effects:
            self._put(namespace, missed.mark, effect)
        return True

    def _put(self, namespace: str, mark: Mark, effect: Effect) -> None:
        """Apply the changes up to `mark` to a view and to the cached items."""
        for position in (*effect.removed, *(fill[0] for fill in effect.filled)):
            self._items.discard(mark.key_of(position))
        for entry in (*effect.added, *(entry for entry, _ in effect.replaced)):
            self._items.put_written(mark.key_of(entry.position), entry.item)
        self._follower.publish(namespace, effect)
        self._marks[namespace] = mark

    def _forget_marks(self) -> None:
        """Forget the marks of evicted views once they outnumber those of loaded views."""
        if len(self._marks) > self._marks_max:
            self._marks = {name: mark for name, mark in self._marks.items() if self._has_view(name)}
            self._marks_max = 2 * len(self._marks) + _MARKS_MIN

    def _drop(self, namespace: str) -> None:
        self._marks.pop(namespace, None)
        self.views.cache.drop(namespace)

    async def keep_manifest(self, uid: int, manifest: str) -> bool:
        for name, mark in self._marks.items():
            if mark.uid == uid:
                return await keep_manifest(self._database, self._cache, name, mark, manifest)
        return False

    async def load_items(
        self,
        info: NamespaceInfo,
        positions: Sequence[int],
        *,
        with_embedding: bool,
        with_content: bool = True,
    ) -> list[Item | None]:
        mark = self._marks.get(info.name)
        has_view = mark is not None and mark.uid == info.uid and self.views.cache.peek(info.name) is not None
        if mark is None or not has_view or with_embedding:
            return await super().load_items(
                info, positions, with_embedding=with_embedding, with_content=with_content
            )
        keys = list(map(mark.key_of, positions))
        items = self._items.get_all(keys)
        missing = [at for at, item in enumerate(items) if item is None]
        wanted = [positions[at] for at in missing]
        loaded = await super().load_items(info, wanted, with_embedding=False, with_content=with_content)
        for at, item in zip(missing, loaded, strict=True):
            items[at] = item
            # Something newer may have been published meanwhile.
            if item is not None and with_content and self._marks.get(info.name) is mark:
                self._items.put(keys[at], item)
        return items

    async def read_rows(self, namespace: str, work: Callable[[Rows], T]) -> T | None:
        if self.views.cache.peek(namespace) is not None:
            # The view is loaded; only its columns are read.
            return await self._read_columns(namespace, work)
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Mark | None] = loop.create_future()
        self._forget_marks()
        self._marks.pop(namespace, None)
        self._reading[namespace] = found
        self._readings += 1
        reading = self._readings

        def note(mark: Mark) -> None:
            if not found.done():
                self._marks[namespace] = mark._replace(number=self._checks.number)
                self._end_reading(namespace, found, mark)

        def look(rows: PostgresRows) -> T:
            info = rows.info
            loop.call_soon_threadsafe(note, Mark(info.uid, rows.seq, rows.stamp, info.revision, 0, reading))
            return work(rows)

        try:
            return await self._read_rows(namespace, look)
        finally:
            self._end_reading(namespace, found, None)

    async def _read_columns(self, namespace: str, work: Callable[[Rows], T]) -> T | None:
        seen: list[Checked] = []

        def look(rows: PostgresRows) -> T:
            seen.append(Checked(0, rows.info, rows.seq, rows.stamp))
            return work(rows)

        read = await self._read_rows(namespace, look)
        # Return the columns only when the view is at least as new.
        async with self._catching_up.setdefault(namespace, asyncio.Lock()):
            while not (seen and (mark := self._marks.get(namespace)) and mark.seq >= seen[0].seq):
                if await self._catch_up(namespace):
                    break
        return read

    def _end_reading(self, namespace: str, found: asyncio.Future[Mark | None], mark: Mark | None) -> None:
        if self._reading.get(namespace) is found:
            del self._reading[namespace]
        if not found.done():
            found.set_result(mark)

    def _committed(self, page: Page) -> None:
        """Apply what this process committed to the view, if it lacks nothing else."""
        name, book, mark = page.name, page.book, self._marks.get(page.name)
        assert book is not None
        if page.deleted or page.pending.flags & (EMPTIED | MOVED):
            self._snapshots.remove(book.uid)
            self._drop(name)
            return
        before = (book.uid, page.seq_before, page.stamp_before)
        if mark is None or name in self._reading or (mark.uid, mark.seq, mark.stamp) != before:
            return
        effect = _effect_of(page, mark)
        if effect is None:
            return
        number = self._checks.number
        self._put(name, Mark(book.uid, book.seq, book.stamp, book.revision, number, mark.reading), effect)


def _name_of(cache_dir: Path) -> str:
    """Return a name that distinguishes the files of a folder from those of others, also on other machines."""
    path = cache_dir / "name"
    if not path.exists():
        write_whole(path, secrets.token_hex(8).encode())
    return path.read_text()


def _effect_of(page: Page, mark: Mark) -> Effect | None:
    """Return the effect of a group on the items of a namespace; None: the view reads it from the journal."""
    book, pending = page.book, page.pending
    assert book is not None
    read_again = pending.fills or pending.uses or pending.refreshed or pending.moved
    if read_again or len(pending.entries) < len(pending.items):
        return None
    effect = Effect(
        uid=book.uid, revision=book.revision, vector_epoch=book.vector_epoch, dimension=book.dimension
    )
    for position in sorted(pending.entries):
        entry = pending.entries[position]
        if position > mark.revision:
            effect.added.append(entry)
        else:
            effect.replaced.append((entry, pending.items[position].keeps_vector))
    effect.removed = [position for position in pending.removed if position <= mark.revision]
    return effect
