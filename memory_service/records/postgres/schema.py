"""The tables and their format version.

Every key begins with `part`, a hash of the namespace's name, so that a database can be sharded by it.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Awaitable, Callable

from memory_service.records.base import CannotOpen
from memory_service.records.postgres.database import Async, Database
from memory_service.records.postgres.parents import link_parents
from memory_service.records.rules.versions import REMOVING

FORMAT = 2
PARTS = 1024


def part_of(name: str) -> int:
    """Return the part of a namespace."""
    return zlib.crc32(name.encode()) % PARTS


def lock_of(*names: str) -> int:
    """Return the key of an advisory lock, a signed 64-bit integer."""
    digest = hashlib.blake2b("\0".join(names).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


_ITEM = """
    session_id text NOT NULL, create_us bigint NOT NULL, update_us bigint NOT NULL, expire_us bigint,
    labels text, metadata text, content text NOT NULL, facet text, kind smallint NOT NULL,
    importance double precision, provenance text, terms bytea NOT NULL, vector_key bigint NOT NULL,
    embedding bytea, nbytes bigint NOT NULL
"""
_TABLES = (
    "CREATE TABLE $.settings (name text PRIMARY KEY, value bytea NOT NULL)",
    "CREATE TABLE $.claims (task text PRIMARY KEY, owner text NOT NULL, until timestamptz NOT NULL)",
    "CREATE SEQUENCE $.uids",
    """CREATE TABLE $.namespaces (
        part int NOT NULL, uid bigint NOT NULL, name text COLLATE "C" NOT NULL, revision bigint NOT NULL,
        seq bigint NOT NULL, stamp bigint NOT NULL, item_count bigint NOT NULL, state_count bigint NOT NULL,
        embedded_count bigint NOT NULL, pending_count bigint NOT NULL, bytes bigint NOT NULL,
        dimension int NOT NULL, model text NOT NULL, version_floor bigint NOT NULL,
        vector_epoch bigint NOT NULL, moving boolean NOT NULL, create_us bigint NOT NULL,
        PRIMARY KEY (part, uid), UNIQUE (part, name)) WITH (fillfactor = 40)""",
    "CREATE INDEX namespaces_by_name ON $.namespaces (name)",
    "CREATE INDEX namespaces_pending ON $.namespaces (name) WHERE pending_count > 0",
    f"""CREATE TABLE $.items (
        part int NOT NULL, uid bigint NOT NULL, position bigint NOT NULL, id text COLLATE "C" NOT NULL,
        revision bigint NOT NULL, {_ITEM},
        PRIMARY KEY (part, uid, position))""",
    # Queries use this expression: without statistics the planner would consider the other key as good, and
    # read every item of a namespace with it.
    "CREATE UNIQUE INDEX items_by_id ON $.items (id, (uid + 0))",
    "CREATE INDEX items_expiring ON $.items (expire_us) WHERE expire_us IS NOT NULL",
    "CREATE INDEX items_pending ON $.items (part, uid, position) WHERE vector_key < 0",
    f"""CREATE TABLE $.item_history (
        part int NOT NULL, uid bigint NOT NULL, position bigint NOT NULL, revision bigint NOT NULL,
        replaced_us bigint NOT NULL, {_ITEM}, PRIMARY KEY (part, uid, position, revision))""",
    "CREATE INDEX item_history_by_age ON $.item_history (replaced_us)",
    """CREATE TABLE $.uses (
        part int NOT NULL, uid bigint NOT NULL, position bigint NOT NULL, count bigint NOT NULL,
        PRIMARY KEY (part, uid, position)) WITH (fillfactor = 50)""",
    """CREATE TABLE $.states (
        part int NOT NULL, uid bigint NOT NULL, key text COLLATE "C" NOT NULL, version bigint NOT NULL,
        create_us bigint NOT NULL, update_us bigint NOT NULL, expire_us bigint, description text NOT NULL,
        revision bigint NOT NULL, value text NOT NULL, provenance text, nbytes bigint NOT NULL,
        PRIMARY KEY (part, uid, key))""",
    "CREATE INDEX states_expiring ON $.states (expire_us) WHERE expire_us IS NOT NULL",
    """CREATE TABLE $.state_history (
        part int NOT NULL, uid bigint NOT NULL, key text COLLATE "C" NOT NULL, version bigint NOT NULL,
        replaced_us bigint NOT NULL, create_us bigint NOT NULL, update_us bigint NOT NULL, expire_us bigint,
        description text NOT NULL, revision bigint NOT NULL, value text NOT NULL, provenance text,
        PRIMARY KEY (part, uid, key, version))""",
    "CREATE INDEX state_history_by_age ON $.state_history (replaced_us)",
    """CREATE TABLE $.changes (
        part int NOT NULL, uid bigint NOT NULL, revision bigint NOT NULL, type smallint NOT NULL,
        subject text NOT NULL, PRIMARY KEY (part, uid, revision))""",
    """CREATE TABLE $.journal (
        part int NOT NULL, uid bigint NOT NULL, seq bigint NOT NULL, stamp bigint NOT NULL,
        flags int NOT NULL, positions bigint[] NOT NULL, time_us bigint NOT NULL,
        PRIMARY KEY (part, uid, seq))""",
    "CREATE INDEX journal_by_age ON $.journal (time_us)",
    """CREATE TABLE $.requests (
        part int NOT NULL, uid bigint NOT NULL, id text COLLATE "C" NOT NULL, digest bytea NOT NULL,
        receipt text NOT NULL, whole bytea, state_key text, state_version bigint, time_us bigint NOT NULL,
        PRIMARY KEY (part, uid, id))""",
    "CREATE INDEX requests_by_time ON $.requests (time_us)",
    """CREATE TABLE $.told_of (
        part int NOT NULL, uid bigint NOT NULL, subject text COLLATE "C" NOT NULL,
        request text COLLATE "C" NOT NULL, PRIMARY KEY (part, uid, subject, request))""",
    "CREATE INDEX told_of_by_request ON $.told_of (part, uid, request)",
    """CREATE TABLE $.removals (
        part int NOT NULL, uid bigint NOT NULL, revision bigint NOT NULL, time_us bigint NOT NULL,
        writer text NOT NULL, credential_id text NOT NULL, PRIMARY KEY (part, uid, revision))""",
    "CREATE INDEX removals_by_age ON $.removals (time_us)",
    """CREATE TABLE $.quarantine (
        part int NOT NULL, uid bigint NOT NULL, id text COLLATE "C" NOT NULL, reason text NOT NULL,
        body bytea NOT NULL, held_us bigint NOT NULL, expire_us bigint NOT NULL, writer text NOT NULL,
        credential_id text NOT NULL, request_id text, digest bytea, PRIMARY KEY (part, uid, id))""",
    "CREATE INDEX quarantine_by_request ON $.quarantine (part, uid, request_id) WHERE request_id IS NOT NULL",
    "CREATE INDEX quarantine_expiring ON $.quarantine (expire_us)",
    """CREATE TABLE $.snapshots (
        part int NOT NULL, uid bigint NOT NULL, cache text COLLATE "C" NOT NULL, manifest text NOT NULL,
        time_us bigint NOT NULL, PRIMARY KEY (part, uid, cache))""",
    "ALTER TABLE $.items ALTER COLUMN embedding SET STORAGE EXTERNAL",
    "ALTER TABLE $.item_history ALTER COLUMN embedding SET STORAGE EXTERNAL",
)
# Which items were made from which, by position. Items without parents have no rows.
_PARENTS = (
    """CREATE TABLE $.parents (
        part int NOT NULL, uid bigint NOT NULL, parent bigint NOT NULL, child bigint NOT NULL,
        PRIMARY KEY (part, uid, parent, child))""",
    # As `items_by_id`: unlike the key, so that no plan takes one for the other.
    "CREATE INDEX parents_by_child ON $.parents (child, (uid + 0))",
)
# How long each refresh lets an item live. The index finds items whose expiry was refreshed.
_REFRESHED = (
    "ALTER TABLE $.items ADD COLUMN ttl_us bigint",
    "ALTER TABLE $.item_history ADD COLUMN ttl_us bigint",
    "CREATE INDEX items_refreshed ON $.items (part, uid, position) WHERE expire_us > update_us + ttl_us",
)
OF_NAMESPACES = (
    *("items", "item_history", "uses", "states", "state_history", "changes", "journal", "requests"),
    *("told_of", "removals", "quarantine", "snapshots", "parents"),
)
"""Tables with rows of namespaces, except the table of namespaces."""

# Finds the removals of an item or a state.
_VERSIONS_READ = (
    f"CREATE INDEX changes_removing ON $.changes (part, uid, subject, revision) WHERE type IN ({REMOVING})",
)
_SETTINGS = ("ALTER TABLE $.namespaces ADD COLUMN settings text",)

# The steps that migrate tables to a format from the one before.
_MIGRATIONS: dict[int, tuple[str | Callable[[Async, Database], Awaitable[None]], ...]] = {
    1: _TABLES,
    2: (*_PARENTS, link_parents, *_VERSIONS_READ, *_SETTINGS, *_REFRESHED),
}


async def prepare(connection: Async, database: Database) -> None:
    """Create or migrate the tables, as a whole or not at all. Raises CannotOpen.

    If several servers start at once, the others wait for the first.
    """
    await _check(connection)
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_of("format", database.schema),))
        if not await _exists(connection, f"to_regnamespace('\"{database.schema}\"')"):
            # Without IF NOT EXISTS, which requires the right to create a schema even if it exists.
            await connection.execute(f'CREATE SCHEMA "{database.schema}"'.encode())
        found = await _format(connection, database)
        if found > FORMAT:
            raise CannotOpen(
                f"the tables have format {found}, but this release reads up to format {FORMAT}:"
                " use the release that wrote them or a newer one"
            )
        if found == FORMAT:
            return
        for number in range(found + 1, FORMAT + 1):
            for step in _MIGRATIONS[number]:
                if isinstance(step, str):
                    await connection.execute(database.sql(step))
                else:
                    await step(connection, database)
        await connection.execute(
            database.sql(
                "INSERT INTO $.settings (name, value) VALUES ('format', %s)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
            ),
            (str(FORMAT).encode(),),
        )


async def _check(connection: Async) -> None:
    """Reject a database that may lose acknowledged writes or cannot store every text."""
    if connection.info.server_version < 150000:
        raise CannotOpen("the database is older than PostgreSQL 15")
    cursor = await connection.execute("SHOW server_encoding")
    if (encoding := await cursor.fetchone()) != ("UTF8",):
        raise CannotOpen(f"the encoding of the database is {encoding and encoding[0]}; it must be UTF8")
    cursor = await connection.execute("SHOW synchronous_commit")
    if (commit := await cursor.fetchone()) in (("off",), ("local",)):
        raise CannotOpen(f"synchronous_commit is {commit and commit[0]}; it must be on or stronger")
    cursor = await connection.execute("SHOW client_min_messages")
    if (least := await cursor.fetchone()) in (("error",), ("fatal",), ("panic",)):
        # A warning reports that a wait for standbys ended.
        raise CannotOpen(f"client_min_messages is {least and least[0]}; it must be warning or lower")


async def _exists(connection: Async, named: str) -> bool:
    cursor = await connection.execute(f"SELECT {named} IS NOT NULL".encode())
    return await cursor.fetchone() == (True,)


async def _format(connection: Async, database: Database) -> int:
    if not await _exists(connection, f"to_regclass('\"{database.schema}\".settings')"):
        return 0
    cursor = await connection.execute(database.sql("SELECT value FROM $.settings WHERE name = 'format'"))
    row = await cursor.fetchone()
    return int(row[0]) if row else 0
