"""The whole store and its life cycle."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from memory_service.errors import MemoryServiceError, Unsupported
from memory_service.records.base import BackupReport, Capabilities, Records
from memory_service.records.postgres.change_log import PostgresChangeLog
from memory_service.records.postgres.claims import PostgresClaims
from memory_service.records.postgres.item_store import PostgresItemStore
from memory_service.records.postgres.namespace_store import PostgresNamespaceStore
from memory_service.records.postgres.opening import prepare_database
from memory_service.records.postgres.pending_store import PostgresPendingStore
from memory_service.records.postgres.quarantine_store import PostgresQuarantineStore
from memory_service.records.postgres.reach import PostgresReach
from memory_service.records.postgres.row_source import READERS, PostgresRowSource
from memory_service.records.postgres.settings import PostgresSettings
from memory_service.records.postgres.state_store import PostgresStateStore
from memory_service.records.postgres.undo_store import PostgresUndoStore
from memory_service.records.postgres.version_store import PostgresVersionStore
from memory_service.records.postgres.write_queue import WriteQueue
from memory_service.records.postgres.write_store import PostgresWriteStore

_GIVE_UP_S = 2.0


class PostgresRecords(
    PostgresWriteStore,
    PostgresItemStore,
    PostgresPendingStore,
    PostgresStateStore,
    PostgresQuarantineStore,
    PostgresUndoStore,
    PostgresVersionStore,
    PostgresChangeLog,
    PostgresNamespaceStore,
    PostgresClaims,
    PostgresRowSource,
    PostgresSettings,
    PostgresReach,
    Records,
):
    """Records in a PostgreSQL database, which any number of servers share."""

    capabilities = Capabilities(durable=True, backup=False, shared=True, files=False)

    async def open(self) -> None:
        await prepare_database(self._database)
        self._watched = Counter()
        self._looked = {}
        self._begin_claims()
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="read")
        self._queue = WriteQueue(
            self._database,
            self._known.__contains__,
            self._publish,
            self._forget_known,
            queued_writes_max=self._queued_writes_max,
        )

    def refuse(self) -> None:
        """Accept no more writes; those under way continue."""
        self._signal.close()
        self._queue.refuse()

    async def close(self) -> None:
        self.refuse()
        await self._queue.close()
        await self._stop_looking()
        with suppress(MemoryServiceError, TimeoutError):
            # Otherwise others wait until the claim expires, as they do if the database does not answer.
            async with asyncio.timeout(_GIVE_UP_S):
                await self._give_up_all()
        self._threads.shutdown()
        await self._end_asking()
        await self._database.close()

    async def flush(self) -> None:
        pass

    async def backup(self, name: str, progress: Callable[[int, int], None]) -> BackupReport:
        raise Unsupported("backup", "use the database's own backups, or export the records")
