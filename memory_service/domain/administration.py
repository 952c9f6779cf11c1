"""Server information, and maintenance of the data."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from memory_service.data_model import IndexInfo, NamespaceInfo, Receipt
from memory_service.domain.checks import Checks
from memory_service.domain.embedding import TextEmbedding
from memory_service.domain.page_tokens import PageTokens
from memory_service.errors import FailedPrecondition, MemoryServiceError, NotFound, Overloaded
from memory_service.namespaces import Patterns
from memory_service.records.base import BackupReport
from memory_service.runtime.caller import present_caller
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.yielding import aside
from memory_service.store import Store

_SWEPT_AT_ONCE = 1000
_SWEEP = "sweep"
# A server that missed this many sweeps is considered gone. Doubled: expired data stays longer after a crash;
# halved: a server that is busy for some seconds loses its turn to another without need.
_SWEEPS_MISSED = 4
_ANY_TEXT = "text"
_log = EventLog(__name__)


@dataclass
class BackupProgress:
    """The progress of a backup."""

    name: str
    done_bytes: int = 0
    total_bytes: int = 0


class Administration:
    """Administers the server's data as a whole."""

    def __init__(
        self,
        store: Store,
        embedding: TextEmbedding,
        checks: Checks,
        tokens: PageTokens,
        sweep_s: float = 5.0,
    ) -> None:
        """`sweep_s` is the time between two removals of expired data."""
        self._store = store
        self._embedding = embedding
        self._checks = checks
        self._tokens = tokens
        self._sweep_s = sweep_s
        self._backing_up: BackupProgress | None = None

    async def list_namespaces(
        self, prefix: str, page_size: int, page_token: str
    ) -> tuple[list[NamespaceInfo], str]:
        """Return a page of the namespaces that the caller may see, by name, and the token of the next."""
        if prefix:
            self._checks.name("prefix", prefix, self._checks.limits.namespace_name_bytes_max)
        size = self._checks.page_size(page_size)
        caller = present_caller()
        scope = ("namespaces", prefix, caller.namespaces)
        after = str(self._tokens.read(scope, page_token)[0]) if page_token else ""
        found = await self._allowed_namespaces(caller.allowed, prefix, after, size + 1)
        token = self._tokens.make(scope, [found[size - 1].name]) if len(found) > size else ""
        return found[:size], token

    async def _allowed_namespaces(
        self, allowed: Patterns, prefix: str, after: str, limit: int
    ) -> list[NamespaceInfo]:
        """Return the namespaces with a prefix that a credential's patterns allow, in the order of the
        store.
        """
        found = dict[str, NamespaceInfo]()
        for name in allowed.names:
            info = await self._store.namespace(name) if name.startswith(prefix) and name > after else None
            if info is not None:
                found[name] = info
        for begin in allowed.prefixes:
            # A wanted name starts with both, so the longer one begins with the shorter one.
            if begin.startswith(prefix) or prefix.startswith(begin):
                for info in await self._store.scan_namespaces(max(prefix, begin, key=len), after, limit):
                    found[info.name] = info
        return [found[name] for name in sorted(found)][:limit]

    async def stats(self, namespace: str) -> tuple[NamespaceInfo, IndexInfo]:
        """Return the statistics of a namespace. Raises NotFound."""
        self._checks.namespace(namespace)
        info = await self._store.namespace(namespace)
        if info is None:
            raise NotFound.namespace(namespace)
        return info, await self._store.index_info(namespace)

    async def byte_count(self, namespace: str) -> int:
        """Return how many bytes callers have stored in a namespace."""
        return await self._store.namespace_bytes(namespace)

    async def reembed(self, namespace: str, *, replace_client_vectors: bool) -> NamespaceInfo:
        """Move a namespace to the server's embedder; return its new state.

        Its items are embedded in the background. Raises NotFound, FailedPrecondition if there is no embedder
        or clients supplied the vectors, and Unavailable if the embedder does not answer, so that existing
        vectors are not given up for nothing.
        """
        self._checks.namespace(namespace)
        if self._embedding.embedder is None:
            raise FailedPrecondition.embedder_required("the server has no embedder")
        info = await self._store.namespace(namespace)
        if info is None:
            raise NotFound.namespace(namespace)
        known = info.model and self._embedding.dimension
        if not known or self._embedding.obstacle(info) is not None:
            # This also reveals the dimension, if only the provider knows it.
            await self._embedding.vectors([_ANY_TEXT])
        info = await self._store.begin_reembedding(
            namespace,
            self._embedding.model,
            self._embedding.dimension,
            replace_client_vectors=replace_client_vectors,
            by=present_caller(),
        )
        if info.pending_count:
            self._embedding.waiting.add(namespace)
        return info

    async def delete_namespace(self, namespace: str) -> Receipt:
        """Remove a namespace. Raises NotFound."""
        self._checks.namespace(namespace)
        return await self._store.delete_namespace(namespace, by=present_caller())

    async def flush(self) -> float:
        """Bring the files into the form that opens fastest; return the seconds it took."""
        began = time.monotonic()
        await self._store.flush()
        return time.monotonic() - began

    @property
    def backup_progress(self) -> BackupProgress | None:
        """Return the progress of a running backup, to callers that may make backups.

        It reveals the total size of all records.
        """
        return self._backing_up if present_caller().administers_server else None

    async def backup(self, name: str) -> tuple[BackupReport, float]:
        """Write a backup; return a report and the seconds it took.

        It continues if its caller goes away, and blocks other backups until it is done: it runs in a thread,
        which cannot be stopped.
        """
        name = name or datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self._checks.backup_name(name)
        if self._backing_up is not None:
            raise Overloaded("concurrent_backups_max", 1, retry_after_s=5.0)
        began = time.monotonic()
        progress = self._backing_up = BackupProgress(name)

        def report(done_bytes: int, total_bytes: int) -> None:
            progress.done_bytes, progress.total_bytes = done_bytes, total_bytes

        writing = asyncio.create_task(self._store.backup(name, report))
        writing.add_done_callback(self._end_backup)
        return await aside(asyncio.shield(writing)), time.monotonic() - began

    def _end_backup(self, writing: asyncio.Task[BackupReport]) -> None:
        self._backing_up = None
        if not writing.cancelled():
            # Nothing else retrieves the exception if the caller is gone.
            writing.exception()

    @contextlib.asynccontextmanager
    async def sweeping(self):  # type: ignore[no-untyped-def]
        """Remove expired data periodically, as long as the context lasts."""
        task = asyncio.create_task(self._sweep())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._sweep_s)
            try:
                while await self._sweep_once():
                    pass
            except MemoryServiceError as error:
                _log.warning("sweep_failed", reason=error.reason)
            except Exception as error:
                # An unexpected error must not stop sweeping until the next start.
                _log.error("sweep_failed", exc_info=error)

    async def _sweep_once(self) -> int:
        """Remove some expired data, unless another server does so; return how much it was.

        Uses the clock that all servers share: a server whose own is ahead would remove what others still
        show.
        """
        now = await self._store.claim(_SWEEP, _SWEEPS_MISSED * self._sweep_s)
        if now is None:
            return 0
        remembered_us = self._checks.limits.request_memory_hours * 3600 * 1_000_000
        return await self._store.remove_expired(now, now - remembered_us, _SWEPT_AT_ONCE)
