"""A plugin of pytest that puts `MemoryServiceStore` in the place of the stores in LangGraph's tests.

Each store has a namespace that no other has, at the server that MEMORY_ADDRESS names. Steps on a
database before and after a test are left out; a test that speaks SQL fails.
"""

from __future__ import annotations

import importlib
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from unittest.mock import AsyncMock, MagicMock

from langgraph.store.base import PutOp

from memory_client import AsyncMemoryClient
from memory_client.langgraph import MemoryServiceStore


class FreshStore(MemoryServiceStore):
    """A store in an empty namespace, with the constructors of LangGraph's stores."""

    is_async = False

    def __init__(self, *, index: Any = None, ttl: Any = None) -> None:
        if index and "text_fields" in index:  # As the store over SQLite names them.
            index = {**index, "fields": index["text_fields"]}
        self._put: set[tuple[tuple[str, ...], str]] = set()
        address, namespace = os.environ["MEMORY_ADDRESS"], f"suite/{uuid.uuid4()}"
        if self.is_async:
            super().__init__(AsyncMemoryClient(address, namespace=namespace), index=index, ttl=ttl)
        else:
            super().__init__(address, namespace=namespace, index=index, ttl=ttl)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, index: Any = None, ttl: Any = None, **_: Any
    ) -> Iterator[Any]:
        with cls(index=index, ttl=ttl) as store:
            yield store

    def setup(self) -> None:
        """Tables are not needed."""

    start_ttl_sweeper = stop_ttl_sweeper = setup  # The server removes what expired.

    def batch(self, ops: Any) -> list[Any]:
        operations = list(ops)
        self._put |= {(op.namespace, op.key) for op in operations if isinstance(op, PutOp)}
        return super().batch(operations)

    def sweep_ttl(self) -> int:
        """Return the number of items that disappeared since the last call."""
        gone = {each for each in self._put if self.get(*each, refresh_ttl=False) is None}
        self._put -= gone
        return len(gone)

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        yield MagicMock(execute=MagicMock(side_effect=_refuse_sql))


class AsyncFreshStore(FreshStore):
    """Likewise for the asynchronous stores."""

    is_async = True

    @classmethod
    @asynccontextmanager
    async def from_conn_string(  # type: ignore[override]
        cls, conn_string: str, *, index: Any = None, ttl: Any = None, **_: Any
    ) -> AsyncIterator[Any]:
        async with cls(index=index, ttl=ttl) as store:
            yield store
            await store._clients.aio.close()

    async def setup(self) -> None:  # type: ignore[override]
        """Tables are not needed."""

    sweep_ttl = start_ttl_sweeper = stop_ttl_sweeper = setup  # type: ignore[assignment]

    @asynccontextmanager
    async def _cursor(self) -> AsyncIterator[Any]:  # type: ignore[override]
        yield MagicMock(execute=AsyncMock(side_effect=_refuse_sql))


def _refuse_sql(statement: str, *_: Any) -> None:
    if not statement.startswith("DROP TABLE"):
        raise NotImplementedError("the test speaks SQL")


def _replace(module: str, name: str, by: type[FreshStore]) -> None:
    loaded = importlib.import_module(module)
    kept = {"MIGRATIONS": getattr(getattr(loaded, name), "MIGRATIONS", [])}
    setattr(loaded, name, type(name, (by,), kept))


_replace("langgraph.store.memory", "InMemoryStore", FreshStore)
if os.environ["SUITE"] == "sqlite":
    _replace("langgraph.store.sqlite", "SqliteStore", FreshStore)
    _replace("langgraph.store.sqlite", "AsyncSqliteStore", AsyncFreshStore)
if os.environ["SUITE"] == "postgres":
    import psycopg

    _replace("langgraph.store.postgres", "PostgresStore", FreshStore)
    _replace("langgraph.store.postgres", "AsyncPostgresStore", AsyncFreshStore)
    psycopg.Connection.connect = MagicMock()
    psycopg.AsyncConnection.connect = AsyncMock(return_value=AsyncMock())
