"""Stores over PostgreSQL: a single one, and two over the same records that take turns at each call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import postgres_server
from memory_service.indexes.settings import IndexSettings
from memory_service.store import Store


def make_postgres(data_dir: Path, settings: IndexSettings) -> Store:
    """Return a store whose schema is that of a data folder."""
    # Without the server's package it cannot be imported.
    from memory_service.postgres_store import PostgresStore

    return PostgresStore(
        postgres_server.dsn(),
        settings,
        cache_dir=data_dir / "cache",
        schema=postgres_server.schema_of(data_dir),
    )


class _Alternating:
    """Two stores that take turns at each method call."""

    def __init__(self, make: Callable[[], Store]) -> None:
        self._stores = [make(), make()]
        self._turn = 0

    def __getattr__(self, name: str) -> Any:
        if not callable(getattr(self._stores[0], name)):
            return getattr(self._stores[0], name)

        def call(*args: Any, **kwargs: Any) -> Any:
            # A read that need not be fresh goes to the same server: it may answer from what it last saw.
            self._turn = self._turn if kwargs.get("fresh") is False else 1 - self._turn
            return getattr(self._stores[self._turn], name)(*args, **kwargs)

        return call

    async def open(self) -> None:
        for store in self._stores:
            await store.open()

    async def close(self) -> None:
        for store in reversed(self._stores):
            await store.close()


def Alternating(make: Callable[[], Store]) -> Store:  # noqa: N802 - stands for a class of stores
    """Return two stores over the same records as if they were one."""
    stores: Any = _Alternating(make)
    return stores
