"""Leases on work that one of several servers does at a time, by the clock of the database."""

from __future__ import annotations

import os
import secrets
import socket

from memory_service.records.base import Claims
from memory_service.records.postgres.database import Database, Sync
from memory_service.records.postgres.store_core import StoreCore

_CLAIM = (
    "INSERT INTO $.claims AS c (task, owner, until)"
    " VALUES (%s, %s, clock_timestamp() + %s * interval '1 second')"
    " ON CONFLICT (task) DO UPDATE SET owner = excluded.owner, until = excluded.until"
    " WHERE c.owner = excluded.owner OR c.until <= clock_timestamp()"
    " RETURNING (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
)


def claim_sync(connection: Sync, database: Database, task: str, owner: str, seconds: float) -> bool:
    """Claim a task as `Claims.claim` does, on a given connection and under a given name."""
    values = (task, owner, seconds)
    return connection.execute(database.sql(_CLAIM), values).fetchone() is not None


class PostgresClaims(StoreCore, Claims):
    """One row per claimed task. The owner's name shows readers of the table where the task runs."""

    _owner: str

    def _begin_claims(self) -> None:
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}"

    async def claim(self, task: str, seconds: float) -> int | None:
        rows = await self._fetch(_CLAIM, (task, self._owner, seconds))
        return rows[0][0] if rows else None

    async def give_up(self, task: str) -> None:
        await self._fetch(
            "DELETE FROM $.claims WHERE task = %s AND owner = %s RETURNING 1", (task, self._owner)
        )

    async def _give_up_all(self) -> None:
        await self._fetch("DELETE FROM $.claims WHERE owner = %s RETURNING 1", (self._owner,))
