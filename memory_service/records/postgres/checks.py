"""Checks how new a namespace is, with one question for all waiting calls.

A call joins only a question sent after the call began. A question that goes unanswered for a while does not
block the next one, which uses another connection.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from memory_service.data_model import NamespaceInfo
from memory_service.errors import Unavailable
from memory_service.records.postgres.arrays import array_of
from memory_service.records.postgres.database import Database
from memory_service.records.postgres.rows import (
    NAMESPACE_COLUMNS,
    OF_NAMES,
    columns_of,
    namespace_of,
    text_in,
)
from memory_service.records.postgres.schema import part_of
from memory_service.runtime.yielding import aside

_STATEMENT = f"SELECT n.seq, n.stamp, {columns_of('n', NAMESPACE_COLUMNS)} {OF_NAMES}"
_GATHERED_TURNS = 6
"""Turns of the event loop: of 32 calls, nine share a question. With half as many turns five do, and each call
costs the database twice as much; with twice as many, a single call is delayed.
"""
_OVERDUE_S = 0.5
"""After this the next check uses another connection. Doubled: a check that hangs delays other calls twice as
long; halved: a slow database gets concurrent checks more often."""
_UNANSWERED_MAX = 4
"""Doubled: a database that hangs holds twice as many connections."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check; `number` counts the checks. `info` is None if the namespace does not exist."""

    number: int
    info: NamespaceInfo | None = None
    seq: int = 0
    stamp: int = 0


class Checks:
    """Runs checks on its own connections. For the event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database.beside()
        self._waiting: dict[str, asyncio.Future[Checked]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.number = 0

    async def check(self, namespace: str) -> Checked:
        """Return how new a namespace is at some time after this call. Raises Unavailable."""
        answer = self._waiting.get(namespace)
        if answer is None:
            answer = self._waiting[namespace] = asyncio.get_running_loop().create_future()
        if not self._tasks:
            self._begin()
        return await aside(asyncio.shield(answer))

    def _begin(self) -> None:
        if self._waiting and len(self._tasks) < _UNANSWERED_MAX:
            task = asyncio.create_task(self._ask())
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._begin()

    async def _ask(self) -> None:
        # Calls that begin shortly after one another share a question.
        for _ in range(_GATHERED_TURNS):
            await asyncio.sleep(0)
        asked, self._waiting = self._waiting, {}
        self.number += 1
        number, overdue = self.number, asyncio.get_running_loop().call_later(_OVERDUE_S, self._begin)
        try:
            found = await self._answers(number, list(asked))
            for name, answer in asked.items():
                answer.set_result(found.get(name) or Checked(number))
        except Exception as error:
            for answer in asked.values():
                # An error that several callers raised would collect the tracebacks of all of them.
                answer.set_exception(Unavailable.storage() if isinstance(error, Unavailable) else error)
                # The callers may have gone.
                answer.exception()
        finally:
            overdue.cancel()

    async def _answers(self, number: int, names: list[str]) -> dict[str, Checked]:
        values = (
            array_of("int", [part_of(name) for name in names]),
            array_of("text", [text_in(name) for name in names]),
        )
        rows = await self._database.fetch(_STATEMENT, values)
        found = (Checked(number, namespace_of(row[2:]), row[0], row[1]) for row in rows)
        return {checked.info.name: checked for checked in found if checked.info is not None}

    async def close(self) -> None:
        """Wait for pending questions and close the connections."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._database.close()
