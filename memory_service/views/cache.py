"""The views in memory: loaded on first use, kept up to date, dropped when memory is short.

All methods are for the event loop. Long work runs in two threads: one reads records to build views, one links
vectors into graphs and saves snapshots.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor

from memory_service.data_model import NamespaceInfo
from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.frozen_view import ViewCopy
from memory_service.indexes.jobs import Job
from memory_service.indexes.settings import IndexSettings
from memory_service.indexes.vectors import VectorIndex
from memory_service.indexes.view import NamespaceView
from memory_service.predicates import Field
from memory_service.records.effects import Effect
from memory_service.records.row_source import RowSource
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.failpoints import reach
from memory_service.runtime.yielding import aside, give_way
from memory_service.views.loading import load_view, read_columns
from memory_service.views.refresh import stale_after
from memory_service.views.snapshots import Snapshot, Snapshots

_log = EventLog(__name__)

_WEIGH_AFTER_WRITES = 256
_SAVE_AT_GROWTH = 1.5


class _Held:
    """A view with its state in the cache."""

    def __init__(self, namespace: str, uid: int, view: NamespaceView) -> None:
        self.namespace = namespace
        self.uid = uid
        self.view = view
        self.nbytes = 0
        self._weigh_at = 0
        self.weigh()
        self.job: asyncio.Future[None] | None = None
        self.columns_task: asyncio.Task[None] | None = None
        self.saved = False
        # Set when the view reaches another revision, or is dropped.
        self.moved = asyncio.Event()

    def weigh(self) -> int:
        """Measure the memory of the view; return the difference from the last time."""
        before = self.nbytes
        self.nbytes = self.view.nbytes
        written = self.view.written_count
        # Measuring takes longer than a write: the next time is after a third more writes, at least 8, at most
        # _WEIGH_AFTER_WRITES.
        self._weigh_at = written + min(max(written // 3, 8), _WEIGH_AFTER_WRITES)
        return self.nbytes - before

    @property
    def weigh_due(self) -> bool:
        """Whether enough was written since the last time for the size to differ."""
        return self.view.written_count >= self._weigh_at

    async def idle(self) -> None:
        """Wait until the indexing thread has no work for the view."""
        while self.job is not None:
            await asyncio.wait([self.job])

    @property
    def unsaved(self) -> bool:
        """Whether the graph has grown since it was saved, or the rest has changed much."""
        view, vectors = self.view, self.view.vectors
        if vectors is None or vectors.graph is None:
            return False
        columns_due = view.saved_revision < 0 or (
            view.revision - view.saved_revision > stale_after(view.live_count) // 2
        )
        return vectors.graph_count > view.saved_slot_count or columns_due

    @property
    def save_due(self) -> bool:
        """Whether it has grown so much that it should be saved without a request."""
        vectors = self.view.vectors
        return (
            self.unsaved
            and vectors is not None
            and (vectors.graph_count > _SAVE_AT_GROWTH * self.view.saved_slot_count)
        )


class ViewCache:
    """Views by namespace, in order of last use."""

    def __init__(
        self,
        settings: IndexSettings,
        snapshots: Snapshots,
        analyzer: Analyzer,
        source: RowSource,
    ) -> None:
        self._settings = settings
        self._snapshots = snapshots
        self._analyzer = analyzer
        self._source = source
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._nbytes = 0
        self._loading: dict[str, asyncio.Task[NamespaceView | None]] = {}
        # Commits during the loading of a view, which may or may not contain them. None: load it again,
        # because the namespace was created, deleted or reset.
        self._buffered: dict[str, list[Effect] | None] = {}
        self._indexer = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._closing = False

    def peek(self, namespace: str) -> NamespaceView | None:
        """Return a view if it is in memory."""
        held = self._held.get(namespace)
        return held.view if held else None

    def is_loading(self, namespace: str) -> bool:
        """Return whether a view is being loaded."""
        return namespace in self._loading

    def get_loaded(self, namespace: str) -> NamespaceView | None:
        """Return a view if it is in memory, and count that as a use."""
        held = self._held.get(namespace)
        if held is None:
            return None
        self._held.move_to_end(namespace)
        return held.view

    async def get(self, namespace: str, fields: Sequence[Field] = ()) -> NamespaceView | None:
        """Return the view of a namespace, loading it if necessary; None if there is no namespace.

        It has the columns of these fields until the caller awaits anything, or while it uses them.
        """
        while True:
            view = self.get_loaded(namespace)
            if view is None:
                if namespace not in self._loading:
                    self._loading[namespace] = asyncio.ensure_future(self._load(namespace, fields))
                # One caller's cancellation must not cancel the load for others.
                view = await aside(asyncio.shield(self._loading[namespace]))
            if view is None or not view.columns.lacking(fields):
                return view
            held = self._held.get(namespace)
            if held is None or held.view is not view:
                continue  # Another caller loaded it without these columns, and it is already dropped.
            if held.columns_task is None:
                held.columns_task = asyncio.ensure_future(self._make_columns(held, fields))
            await aside(asyncio.shield(held.columns_task))

    async def _load(self, namespace: str, fields: Sequence[Field]) -> NamespaceView | None:
        try:
            while True:
                self._buffered[namespace] = effects = list[Effect]()
                loaded = await self._source.read_rows(
                    namespace,
                    lambda rows: (
                        rows.info.uid,
                        load_view(rows, self._snapshots, self._analyzer, self._settings, fields),
                    ),
                )
                if self._buffered.pop(namespace) is None:
                    continue
                if loaded is None:
                    return None
                uid, view = loaded
                for effect in effects:
                    effect.apply(view)
                self._hold(namespace, uid, view)
                return view
        finally:
            self._buffered.pop(namespace, None)
            self._loading.pop(namespace, None)

    async def _make_columns(self, held: _Held, fields: Sequence[Field]) -> None:
        """Add the missing columns of these fields to a view, unless it is dropped in the meantime."""
        columns = held.view.columns
        lacking = columns.lacking(fields)
        columns.begin(lacking)
        try:
            read = await self._source.read_rows(
                held.namespace,
                lambda rows: read_columns(rows, lacking) if rows.info.uid == held.uid else None,
            )
            # The records may be ahead of the view by a commit that is about to be published.
            while self._is_held(held) and (read is None or held.view.revision < read.revision):
                held.moved.clear()
                await held.moved.wait()
            if read is not None and self._is_held(held):
                held.view.index_pending()
                columns.finish(read, held.view.positions.view)
                columns.trim(fields)
                self._weigh(held)
                self._evict()
        finally:
            columns.give_up(lacking)
            held.columns_task = None

    def begin(self, info: NamespaceInfo) -> None:
        """Add an empty view for a namespace that was just created or reset."""
        self.drop(info.name)
        if info.name in self._buffered:
            return
        view = NamespaceView(self._analyzer, self._settings)
        # Vectors from before the reset stay void.
        view.vector_epoch = info.vector_epoch
        self._hold(info.name, info.uid, view)

    def _hold(self, namespace: str, uid: int, view: NamespaceView) -> None:
        held = _Held(namespace, uid, view)
        self._held[namespace] = held
        self._nbytes += held.nbytes
        self._maintain(held)
        self._evict()

    def publish(self, namespace: str, effect: Effect) -> None:
        """Apply a commit to the view, if it is in memory. Call in the order of commits."""
        if (buffered := self._buffered.get(namespace)) is not None:
            buffered.append(effect)
        held = self._held.get(namespace)
        if held is None or not effect.apply(held.view):
            return
        held.moved.set()
        self._maintain(held)
        if held.weigh_due:
            self._weigh(held)
            self._evict()

    async def index_added(self, namespace: str) -> None:
        """Index published entries in parts, so that short calls can run in between."""
        held = self._held.get(namespace)
        while held is not None and self._is_held(held) and held.view.index_some():
            await give_way()
        if held is not None and self._is_held(held):
            self._maintain(held)

    def drop(self, namespace: str) -> None:
        """Drop the view of a namespace whose records were replaced."""
        if namespace in self._buffered:
            self._buffered[namespace] = None
        held = self._held.pop(namespace, None)
        if held is not None:
            self._nbytes -= held.nbytes
            held.moved.set()

    def _weigh(self, held: _Held) -> None:
        self._nbytes += held.weigh()

    def _evict(self) -> None:
        """Drop views until the rest fits into the budget.

        The last used one stays even if it is larger: otherwise each search would load it again. A budget of 0
        keeps none.
        """
        if self._nbytes <= self._settings.views_bytes_max:
            return
        may_go = list(self._held.items())
        if self._settings.views_bytes_max:
            may_go.pop()
        for namespace, held in may_go:
            if self._nbytes <= self._settings.views_bytes_max:
                return
            if held.job is not None:
                continue
            if held.unsaved:
                # Eviction continues with this view when the snapshot is written.
                self._save(held)
            else:
                self.drop(namespace)

    # --- work in the indexing thread ------------------------------------------------------------

    def _maintain(self, held: _Held) -> None:
        """Start pending work on a view, one job at a time."""
        if held.job is not None or self._closing:
            return
        if (job := held.view.plan()) is not None:
            self._run(held, self._do(job, held.view))
        elif held.save_due:
            self._save(held)
        elif held.view.wasteful:
            self.drop(held.namespace)

    def _run(self, held: _Held, work: Coroutine[None, None, None]) -> None:
        """Run one job for a view, then check for the next."""

        async def run() -> None:
            try:
                await work
            finally:
                held.job = None
                if self._is_held(held):
                    self._weigh(held)
                    self._maintain(held)
                    self._evict()

        held.job = asyncio.ensure_future(run())

    async def _do(self, job: Job, view: NamespaceView) -> None:
        try:
            result = await asyncio.get_running_loop().run_in_executor(self._indexer, job.work)
        except Exception as error:
            _log.error("index_job_failed", exc_info=error)
            view.wait_until_searched()
            job.fail()
        else:
            view.wait_until_searched()
            job.finish(result)

    def _is_held(self, held: _Held) -> bool:
        return self._held.get(held.namespace) is held

    def _save(self, held: _Held) -> None:
        """Save the graph of a view."""
        view = held.view
        if view.vectors is None or view.vectors.graph is None:
            return
        count = view.vectors.graph_count
        copy = ViewCopy.of(view)
        snapshot = Snapshot(view.vectors.graph, copy.slot_keys[:count], copy)
        self._run(held, self._save_snapshot(held, snapshot, view.vectors, copy.revision))

    async def _save_snapshot(
        self, held: _Held, snapshot: Snapshot, vectors: VectorIndex, revision: int
    ) -> None:
        uid = held.uid
        try:
            manifest = await asyncio.get_running_loop().run_in_executor(
                self._indexer, self._snapshots.save, uid, revision, snapshot
            )
            reach("snapshot.before_manifest")
            wanted = self._is_held(held) and held.view.vectors is vectors
            if wanted and await self._source.keep_manifest(uid, manifest):
                reach("snapshot.after_manifest")
                self._snapshots.remove(uid, keep=manifest)
                held.saved = True
                reach("snapshot.after_removal")
            else:
                # The namespace is gone, or its vectors were given up: no file may stay.
                self._snapshots.discard(manifest)
        except Exception as error:
            # The next start builds the graph from the records.
            _log.error("index_snapshot_failed", exc_info=error)
        if held.view.vectors is vectors:
            held.view.saved_slot_count = len(snapshot.slot_keys)
            held.view.saved_revision = revision

    async def settle(self) -> None:
        """Link all outstanding vectors into their graphs, and save all snapshots."""
        for namespace in list(self._held):
            held = self._held.get(namespace)
            while held is not None and self._is_held(held) and self._work_left(held):
                await held.idle()

    async def save_again(self, uids: set[int]) -> set[int]:
        """Save the graphs of these namespaces that are in memory; return the uids of those saved."""
        saved = set()
        for held in [held for held in self._held.values() if held.uid in uids]:
            await held.idle()
            if not self._is_held(held):
                continue
            held.saved = False
            self._save(held)
            await held.idle()
            if held.saved:
                saved.add(held.uid)
        return saved

    def _work_left(self, held: _Held) -> bool:
        """Start the next job for a view; return False if there is none."""
        if held.job is None:
            held.view.index_pending()
            if (job := held.view.settle()) is not None:
                self._run(held, self._do(job, held.view))
            elif held.unsaved:
                self._save(held)
        return held.job is not None

    async def close(self) -> None:
        """Save the graphs that have grown, and stop."""
        self._closing = True
        for held in list(self._held.values()):
            await held.idle()
            if held.unsaved:
                self._save(held)
            await held.idle()
        making = [held.columns_task for held in self._held.values() if held.columns_task is not None]
        for task in [*self._loading.values(), *making]:
            await asyncio.wait([task])
        self._indexer.shutdown()
