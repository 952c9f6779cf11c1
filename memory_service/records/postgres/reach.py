"""Whether the database answers and takes writes, which is asked on a connection of its own."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

import psycopg
import structlog

from memory_service.records.postgres.database import Async, close
from memory_service.records.postgres.store_core import StoreCore
from memory_service.runtime.log_causes import cause_of

_log = structlog.get_logger(__name__)
_ANSWER_S = 2.0
"""Half of it may take a busy database for one that is away; with twice as much it takes longer to be told."""
# A standby answers, too, and so does the primary of before that a failover has left behind.
_QUESTION = b"SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'"


class PostgresReach(StoreCore):
    """Asks one small question at a time."""

    _asking: Async | None = None

    async def is_reachable(self) -> bool:
        task = asyncio.create_task(self._ask())
        done, _ = await asyncio.wait({task}, timeout=_ANSWER_S)
        if not done:
            self._break_off(task)
            await asyncio.wait({task})
        try:
            return bool(done) and task.result()
        except (psycopg.Error, OSError) as error:
            _log.debug("database_not_reached", cause=cause_of(error))
            return False

    async def _ask(self) -> bool:
        """Ask, once more where the connection was lost since the last time."""
        until = asyncio.get_running_loop().time() + _ANSWER_S
        for known in (self._asking is not None, False):
            try:
                if self._asking is None:
                    self._asking = await self._database.connect()
                cursor = await self._asking.execute(_QUESTION)
                return await cursor.fetchone() == (True,)
            except (psycopg.Error, OSError):
                await self._end_asking()
                if not known or asyncio.get_running_loop().time() >= until:
                    raise
        raise AssertionError

    def _break_off(self, task: asyncio.Task[bool]) -> None:
        """Have a question end that has no answer.

        One that is only cancelled would ask the database to cancel it, which does not answer either.
        """
        if self._asking is None:
            task.cancel()
            return
        with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(self._asking.fileno())) as other:
            other.shutdown(socket.SHUT_RDWR)

    async def _end_asking(self) -> None:
        if self._asking is not None:
            asking, self._asking = self._asking, None
            await close(asking)
