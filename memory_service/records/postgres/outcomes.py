"""Whether a transaction whose COMMIT had no answer was committed.

Its own rows tell: each step of a namespace has a random stamp in the journal. What the database says about
the number of a transaction would not do, since a standby that took over may have given the number to another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import psycopg
from psycopg.errors import Diagnostic

from memory_service.records.postgres.database import Async, Database, close
from memory_service.records.postgres.page import Page
from memory_service.records.postgres.rows import text_in
from memory_service.records.postgres.schema import lock_of

_WITHIN_S = 10
"""Callers wait so long. Half of it may end before a standby took over, and then more of them get UNAVAILABLE;
twice as much holds them up for longer than most deadlines."""
_PAUSE_S = 0.25
_LOCK_WAIT_MS = 2_000


async def was_committed(database: Database, pages: Sequence[Page]) -> bool:
    """Whether pages that one transaction wrote are known to be committed; it waits some seconds to learn it.

    The transaction may still be under way: its locks are waited for first.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + _WITHIN_S
    while loop.time() < until:
        try:
            connection = await database.connect()
            warnings = list[Diagnostic]()
            connection.add_notice_handler(warnings.append)
            try:
                # Its own COMMIT waits for the standbys, if there are any, so that they have the other, too.
                return await _is_there(connection, database, pages[0]) and not warnings
            finally:
                await close(connection)
        except (psycopg.Error, OSError):
            await asyncio.sleep(_PAUSE_S)
    return False


async def _is_there(connection: Async, database: Database, page: Page) -> bool:
    book = page.book
    assert book is not None
    at = page.part, book.uid
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = {_LOCK_WAIT_MS}")
        if page.began:
            await connection.execute(
                "SELECT pg_advisory_xact_lock(%s)", (lock_of(database.schema, page.name),)
            )
        row = await connection.execute(
            database.sql("SELECT uid FROM $.namespaces WHERE part = %s AND name = %s FOR UPDATE"),
            (page.part, text_in(page.name)),
        )
        found = await row.fetchone()
        if page.deleted:
            return found is None or found[0] != book.uid
        step = await connection.execute(
            database.sql("SELECT FROM $.journal WHERE part = %s AND uid = %s AND seq = %s AND stamp = %s"),
            (*at, book.seq, book.stamp),
        )
        return await step.fetchone() is not None
