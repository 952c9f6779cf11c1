"""Checks on its own connection whether the database answers and accepts writes."""

from __future__ import annotations

import asyncio

import psycopg

from memory_service.records.postgres.answers import break_off
from memory_service.records.postgres.database import Async, close
from memory_service.records.postgres.store_core import StoreCore
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.log_causes import cause_of

_log = EventLog(__name__)
_ANSWER_S = 2.0
"""Halved, a busy database may count as down; doubled, an outage is noticed later."""
# A standby also answers, as does the old primary after a failover.
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
        """Ask, and repeat if the connection was lost since the last time."""
        until = asyncio.get_running_loop().time() + _ANSWER_S
        for known in (self._asking is not None, False):
            try:
                if self._asking is None:
                    self._asking = await self._database.connect_unwatched()
                cursor = await self._asking.execute(_QUESTION)
                return await cursor.fetchone() == (True,)
            except (psycopg.Error, OSError):
                await self._end_asking()
                if not known or asyncio.get_running_loop().time() >= until:
                    raise
        raise AssertionError

    def _break_off(self, task: asyncio.Task[bool]) -> None:
        """End a question that gets no answer.

        Cancelling it would only send the database a cancel request, which it would not answer either.
        """
        if self._asking is None:
            task.cancel()
        else:
            break_off(self._asking)

    async def _end_asking(self) -> None:
        if self._asking is not None:
            asking, self._asking = self._asking, None
            await close(asking)
