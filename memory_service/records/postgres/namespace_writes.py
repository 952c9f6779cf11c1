"""Direct statements that empty a namespace, within a transaction that has locked it."""

from __future__ import annotations

from memory_service.records.postgres.database import Async, Database
from memory_service.records.postgres.page import Page
from memory_service.records.postgres.schema import OF_NAMESPACES
from memory_service.records.rules.requests import STATES
from memory_service.records.rules.states import floor_without

_AFTER_STATES = "state;"
"""Sorts above all subjects of states."""
_WHERE = "WHERE part = %s AND uid = %s"


async def empty_states(connection: Async, database: Database, page: Page) -> None:
    """Remove every key of a namespace, its versions, and the answers that mention any. Counts stay."""
    assert page.book is not None
    book, of = page.book, (page.part, page.book.uid)
    cursor = await connection.execute(
        database.sql(
            f"SELECT coalesce(max(version), 0), coalesce(sum(nbytes), 0)::bigint FROM $.states {_WHERE}"
        ),
        of,
    )
    row = await cursor.fetchone()
    assert row is not None
    book.version_floor = floor_without(book.version_floor, [row[0]])
    book.bytes -= row[1]
    told = f"{_WHERE} AND subject >= %s AND subject < %s"
    async with connection.pipeline():
        for table in ("states", "state_history"):
            await connection.execute(database.sql(f"DELETE FROM $.{table} {_WHERE}"), of)
        await connection.execute(
            database.sql(
                f"UPDATE $.requests SET whole = NULL {_WHERE}"
                f" AND id IN (SELECT request FROM $.told_of {told})"
            ),
            (*of, *of, STATES, _AFTER_STATES),
        )
        await connection.execute(database.sql(f"DELETE FROM $.told_of {told}"), (*of, STATES, _AFTER_STATES))


async def empty(connection: Async, database: Database, page: Page, *, leaves: frozenset[str]) -> None:
    """Remove all rows of a namespace, except its own row and those of some tables."""
    assert page.book is not None
    async with connection.pipeline():
        for table in OF_NAMESPACES:
            if table not in leaves:
                await connection.execute(
                    database.sql(f"DELETE FROM $.{table} {_WHERE}"), (page.part, page.book.uid)
                )
