"""The database's record of the files in which a server keeps the graphs of large views.

The files belong to one server and may be lost. Their manifests are in the database and follow its history: if
a failover or a restored backup takes changes back, their manifests go as well.
"""

from __future__ import annotations

from memory_service.records.postgres.database import Database, Sync
from memory_service.records.postgres.journal import Mark
from memory_service.records.postgres.schema import part_of
from memory_service.runtime.clock import now_us

_KEPT_US = 30 * 86_400 * 1_000_000
"""Retention of manifests of servers that are gone. Doubled, twice as many are kept."""
_AT = "part = %s AND uid = %s"
# The namespace is or was at the view's step, in this history.
_KEEP = f"""
    INSERT INTO $.snapshots (part, uid, cache, manifest, time_us)
    SELECT part, uid, %s, %s, %s FROM $.namespaces WHERE {_AT} AND (seq = %s AND stamp = %s OR EXISTS
        (SELECT FROM $.journal WHERE {_AT} AND seq = %s AND stamp = %s))
    ON CONFLICT (part, uid, cache) DO UPDATE SET manifest = excluded.manifest, time_us = excluded.time_us
    RETURNING 1
"""


async def keep_manifest(database: Database, cache: str, name: str, mark: Mark, manifest: str) -> bool:
    """Keep the manifest of a view at `mark`; return False if the history never had that step."""
    at, step, now = (part_of(name), mark.uid), (mark.seq, mark.stamp), now_us()
    kept = await database.fetch(_KEEP, (cache, manifest, now, *at, *step, *at, *step))
    await database.fetch(
        f"DELETE FROM $.snapshots WHERE {_AT} AND time_us < %s RETURNING 1", (*at, now - _KEPT_US)
    )
    return bool(kept)


async def manifests(database: Database, cache: str) -> list[str]:
    """Return the manifests of a server."""
    rows = await database.fetch("SELECT manifest FROM $.snapshots WHERE cache = %s", (cache,))
    return [manifest for (manifest,) in rows]


def manifest_of(connection: Sync, database: Database, of: tuple[int, int], cache: str) -> str | None:
    """Return a server's manifest for a namespace."""
    statement = database.sql(f"SELECT manifest FROM $.snapshots WHERE {_AT} AND cache = %s")
    row = connection.execute(statement, (*of, cache)).fetchone()
    return None if row is None else row[0]
