"""The available stores: records combined with views of them."""

from __future__ import annotations

from pathlib import Path

from memory_service.data_key import DataKey
from memory_service.data_model import IndexInfo
from memory_service.errors import Unavailable
from memory_service.indexes.settings import IndexSettings
from memory_service.reading import Reading
from memory_service.records.base import HISTORY_US, CannotOpen
from memory_service.records.sqlite.disk_space import SpaceSettings
from memory_service.records.sqlite.records import SqliteRecords
from memory_service.runtime.failpoints import reach
from memory_service.store import Store
from memory_service.views.finding import Views
from memory_service.views.snapshots import Snapshots

_INDEXES = "indexes"


class SqliteStore(SqliteRecords, Store):
    """Records in one SQLite database, views of them in memory, vector graphs in files beside it."""

    def __init__(
        self,
        data_dir: Path,
        settings: IndexSettings | None = None,
        key: DataKey | None = None,
        *,
        history_us: int = HISTORY_US,
        space: SpaceSettings | None = None,
        namespace_bytes_max: int = 0,
        queued_writes_max: int = 10_000,
        waiting_searches_max: int = 64,
    ) -> None:
        """`key` None: the data folder is not encrypted. `namespace_bytes_max` 0: no limit."""
        self._settings = settings or IndexSettings()
        self._waiting_searches_max = waiting_searches_max
        super().__init__(
            data_dir,
            key,
            items_bytes_max=self._settings.items_bytes_max,
            history_us=history_us,
            space=space,
            namespace_bytes_max=namespace_bytes_max,
            queued_writes_max=queued_writes_max,
        )

    async def open(self) -> None:
        await super().open()
        folder = self._data_dir / _INDEXES
        try:
            snapshots = Snapshots(folder, self.records_format, self._key, demand=self.demand)
            self.views = Views(self, self._settings, snapshots, self._waiting_searches_max)
            await self.views.open()
        except (Unavailable, OSError) as error:
            await super().close()
            raise CannotOpen(f"cannot open {folder}: {error}") from error
        reach("open.after_sweep")

    async def close(self) -> None:
        # Save graphs that have grown once nothing is written any more.
        self.refuse()
        await self.views.close()
        await super().close()

    async def flush(self) -> None:
        await self.views.settle()
        await super().flush()

    async def read(self, namespace: str) -> Reading:
        return self.views.read(namespace, self._info(namespace))

    async def index_info(self, namespace: str) -> IndexInfo:
        return self.views.index_info(namespace)
