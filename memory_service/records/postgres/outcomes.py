"""Determines whether a transaction was committed when its COMMIT had no answer.

Its own rows show it: each step of a namespace has a random stamp in the journal. The database's status of a
transaction id would not do, since a standby that took over may have reused the id.
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
"""How long callers wait. Halved, it may end before a standby takes over, so more callers get UNAVAILABLE;
doubled, they wait for longer than most deadlines.
"""
_PAUSE_S = 0.25
_LOCK_WAIT_MS = 2_000


async def was_committed(database: Database, pages: Sequence[Page]) -> bool:
    """Return whether pages written by one transaction are known to be committed; may wait some seconds.

    The transaction may still be under way: its locks are awaited first.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + _WITHIN_S
    while loop.time() < until:
        try:
            connection = await database.connect()
            warnings = list[Diagnostic]()
            connection.add_notice_handler(warnings.append)
            try:
                # This statement's own COMMIT waits for the standbys, if any, so they have the other
                # transaction as well.
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
