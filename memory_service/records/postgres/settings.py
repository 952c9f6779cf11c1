"""Values shared by all servers of a database: a name and some bytes each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from memory_service.records.postgres.answers import break_off
from memory_service.records.postgres.database import Database, Sync, translated
from memory_service.records.postgres.schema import lock_of
from memory_service.records.postgres.store_core import StoreCore

_ANSWER_S = 5.0
"""Halved, a busy database may not answer in time; doubled, changes are noticed later."""
_READ = "SELECT value FROM $.settings WHERE name = %s"


class PostgresSettings(StoreCore):
    """Settings written once, by the first server."""

    async def keep_setting(self, name: str, value: bytes) -> bytes:
        kept = await self._fetch(_READ, (name,))
        if not kept:
            await self._fetch(
                "INSERT INTO $.settings (name, value) VALUES (%s, %b) ON CONFLICT DO NOTHING RETURNING name",
                (name, value),
            )
            # As a separate statement: only a new one sees what another server has just stored.
            kept = await self._fetch(_READ, (name,))
        return bytes(kept[0][0])


class ChangingSettings:
    """Settings that may be replaced. For one thread at a time. All methods raise Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Sync | None = None

    def read(self, *names: str) -> dict[str, bytes]:
        """Return those that exist, all as of the same time."""
        with self._connected() as connection:
            return self._found(connection, "value", names)

    def beginnings(self, nbytes: int, *names: str) -> dict[str, bytes]:
        """Return the first bytes of those that exist."""
        with self._connected() as connection:
            return self._found(connection, f"substring(value FROM 1 FOR {nbytes})", names)

    def change(
        self, names: tuple[str, ...], change: Callable[[dict[str, bytes]], Mapping[str, bytes]]
    ) -> None:
        """Write what `change` returns for the present values, atomically; concurrent callers wait.

        Exceptions from `change` reach the caller, and nothing is written.
        """
        lock = lock_of("settings", self._database.schema, *names)
        keep = self._database.sql(
            "INSERT INTO $.settings (name, value) VALUES (%s, %b)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        )
        with self._connected() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock,))
            for name, value in change(self._found(connection, "value", names)).items():
                connection.execute(keep, (name, value))

    def _found(self, connection: Sync, column: str, names: tuple[str, ...]) -> dict[str, bytes]:
        statement = self._database.sql(f"SELECT name, {column} FROM $.settings WHERE name = ANY(%s)")
        rows = connection.execute(statement, (list(names),), binary=True)
        return {name: bytes(value) for name, value in rows}

    @contextmanager
    def _connected(self) -> Iterator[Sync]:
        """Provide the connection, or a new one if it was lost; a connection on which anything fails, or that
        does not answer, is closed.
        """
        with translated():
            if self._connection is None:
                self._connection = self._database.connect_sync()
            overdue = threading.Timer(_ANSWER_S, break_off, [self._connection])
            overdue.start()
            try:
                yield self._connection
            except BaseException:
                self.close()
                raise
            finally:
                overdue.cancel()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
