"""Imports whole namespaces in pieces, invisible until all of them are there.

Rows are stored under uids that no namespace has yet, so no server finds, counts or reports them. Until the
end, a table `migration` holds the namespaces' rows and how much of each has been loaded, so that a killed
migration can resume. Finally all namespaces appear in one transaction.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import msgspec
import psycopg

from memory_service.errors import Unavailable
from memory_service.records.base import CannotOpen
from memory_service.records.postgres.claims import claim_sync
from memory_service.records.postgres.database import Database, Row, Sync, translated
from memory_service.records.postgres.opening import prepare_database
from memory_service.records.postgres.page import EMPTIED
from memory_service.records.postgres.rows import text_in, text_of
from memory_service.records.postgres.schema import OF_NAMESPACES, lock_of, part_of
from memory_service.runtime.clock import now_us
from memory_service.runtime.log_causes import cause_of

_OWNER = "migration"
_SWEEP = "sweep"
# Longer than one piece takes. After a killed migration, servers do not sweep for this long.
_CLAIM_S = 60.0
_NAMESPACES_AT_ONCE = 500
_TABLE = """CREATE TABLE IF NOT EXISTS $.migration (
    source_uid bigint PRIMARY KEY, part int NOT NULL, uid bigint NOT NULL, name text COLLATE "C" NOT NULL,
    row text NOT NULL, done text NOT NULL)"""
# In key order, which is also the order in which the other store yields them.
_ORDERS = {
    "items": "position",
    "uses": "position",
    "item_history": "position, revision",
    "states": "key",
    "state_history": "key, version",
    "changes": "revision",
    "requests": "id",
    "told_of": "subject, request",
    "removals": "revision",
    "quarantine": "id",
    "parents": "parent, child",
}
_SUM = "coalesce((SELECT sum(nbytes) FROM $.{} t WHERE t.part = m.part AND t.uid = m.uid), 0)"
_APPEAR = (
    "INSERT INTO $.namespaces (part, uid, name, revision, seq, stamp, item_count, state_count,"
    " embedded_count, pending_count, bytes, dimension, model, version_floor, vector_epoch, moving, create_us,"
    " settings)"
    " SELECT m.part, m.uid, m.name, r.revision, 1, %(stamp)s, r.item_count, r.state_count, r.embedded_count,"
    f" r.pending_count, ({_SUM.format('items')} + {_SUM.format('states')})::bigint, r.dimension, r.model,"
    " r.version_floor, r.vector_epoch, r.moving::boolean, r.create_us, r.settings"
    " FROM $.migration m, json_to_record(m.row::json) r(revision bigint, item_count bigint,"
    " state_count bigint, embedded_count bigint, pending_count bigint, dimension int, model text,"
    " version_floor bigint, vector_epoch bigint, moving int, create_us bigint, settings text)"
)


class Arriving(msgspec.Struct):
    """A namespace being loaded: where its rows are, and how many rows of each table are there."""

    source_uid: int
    part: int
    uid: int
    name: str
    row: dict[str, int | str]
    done: dict[str, int] = {}


class Target:
    """Stores rows of namespaces. Its methods raise Unavailable and StorageFull."""

    def __init__(self, connection: Sync, reader: Sync, database: Database) -> None:
        """`reader` streams rows one by one while the other connection continues."""
        self._connection = connection
        self._reader = reader
        self._database = database
        self._types: dict[str, dict[str, int]] = {}

    def _execute(self, statement: str, values: Any = ()) -> psycopg.Cursor[Row]:
        with translated():
            return self._connection.execute(self._database.sql(statement), values)

    def begun(self, source: str) -> bool:
        """Return whether a migration from this source was begun and not finished. Raises CannotOpen."""
        row = self._execute("SELECT value FROM $.settings WHERE name = 'migration'").fetchone()
        if row is not None and bytes(row[0]).decode() != source:
            raise CannotOpen(
                "another migration to this schema is unfinished: finish it first,"
                " or discard it with --start-over"
            )
        return row is not None

    def finished(self, source: str) -> bool:
        """Return whether a migration from this source has been completed."""
        name = f"migrated {source}"
        return self._execute("SELECT 1 FROM $.settings WHERE name = %s", (name,)).fetchone() is not None

    def begin(self, source: str, rows: Iterator[dict[str, int | str]]) -> None:
        """Record which namespaces are to be loaded. Raises CannotOpen if one of their names exists."""
        with translated(), self._connection.transaction():
            self._execute(_TABLE)
            self._execute("TRUNCATE $.migration")
            with self._connection.cursor() as cursor:
                for row in rows:
                    name = str(row.pop("name"))
                    cursor.execute(
                        self._database.sql(
                            "INSERT INTO $.migration VALUES (%s, %s, nextval('$.uids'), %s, %s, '{}')"
                        ),
                        (row.pop("uid"), part_of(name), text_in(name), _row_in(row)),
                    )
            self._execute("INSERT INTO $.settings (name, value) VALUES ('migration', %s)", (source.encode(),))
            self._check_names()

    def _check_names(self) -> None:
        found = self._execute(
            "SELECT count(*), min(n.name) FROM $.namespaces n JOIN $.migration m USING (part, name)"
        ).fetchone()
        assert found is not None
        if found[0]:
            raise CannotOpen(
                f"{found[0]} namespaces with these names already exist, such as {found[1]!r}:"
                " migrate to a separate schema"
            )

    def arriving(self) -> Iterator[Arriving]:
        """Yield the namespaces to be loaded, oldest first."""
        last = 0
        statement = "SELECT * FROM $.migration WHERE source_uid > %s ORDER BY source_uid LIMIT %s"
        while rows := self._execute(statement, (last, _NAMESPACES_AT_ONCE)).fetchall():
            for last, part, uid, name, row, done in rows:
                kept = msgspec.json.decode(row)
                yield Arriving(last, part, uid, text_of(name), kept, msgspec.json.decode(done))

    def put(self, of: Arriving, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Write a piece of a table with the new progress. Raises CannotOpen if servers are at work."""
        types = self._types_of(table)
        every = ("part", "uid", *columns)
        of.done[table] = of.done.get(table, 0) + len(rows)
        with translated(), self._connection.transaction():
            self.keep_sweepers_away()
            statement = self._database.sql(f"COPY $.{table} ({', '.join(every)}) FROM STDIN (FORMAT binary)")
            with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
                copy.set_types([types[name] for name in every])
                for row in rows:
                    copy.write_row((of.part, of.uid, *row))
            self._execute(
                "UPDATE $.migration SET done = %s WHERE source_uid = %s",
                (msgspec.json.encode(of.done).decode(), of.source_uid),
            )

    def _types_of(self, table: str) -> dict[str, int]:
        if table not in self._types:
            self._types[table] = dict(
                self._execute(
                    "SELECT attname, atttypid::int FROM pg_attribute WHERE attrelid = %s::regclass"
                    " AND attnum > 0",
                    (f'"{self._database.schema}".{table}',),
                ).fetchall()
            )
        return self._types[table]

    def rows(self, of: Arriving, table: str, columns: Sequence[str]) -> Generator[Row]:
        """Yield the loaded rows of a table in key order."""
        statement = f"SELECT {', '.join(columns)} FROM $.{table} WHERE part = %s AND uid = %s"
        statement += f" ORDER BY {_ORDERS[table]}"
        with translated(), self._reader.cursor() as cursor:
            yield from cursor.stream(self._database.sql(statement), (of.part, of.uid), binary=True)

    def forget(self, of: Arriving) -> None:
        """Remove the loaded rows of a namespace."""
        of.done = {}
        with translated(), self._connection.transaction():
            for table in OF_NAMESPACES:
                self._execute(f"DELETE FROM $.{table} WHERE part = %s AND uid = %s", (of.part, of.uid))
            self._execute("UPDATE $.migration SET done = '{}' WHERE source_uid = %s", (of.source_uid,))

    def give_up(self) -> None:
        """Abandon an unfinished migration and remove all that it loaded."""
        found = self._execute("SELECT to_regclass(%s)", (f'"{self._database.schema}".migration',)).fetchone()
        if found != (None,):
            for of in self.arriving():
                self.forget(of)
        with translated(), self._connection.transaction():
            self._execute("DROP TABLE IF EXISTS $.migration")
            self._execute("DELETE FROM $.settings WHERE name = 'migration'")

    def appear(self, source: str, settings: Mapping[str, bytes]) -> set[str]:
        """Make all namespaces and settings visible, for good. Return the names of the settings that were
        written; existing ones are not overwritten.
        """
        put = set()
        with translated(), self._connection.transaction():
            self._execute("SET LOCAL synchronous_commit = on")
            self._check_names()
            self._execute(_APPEAR, {"stamp": random.getrandbits(62)})
            self._execute(
                "INSERT INTO $.journal (part, uid, seq, stamp, flags, positions, time_us)"
                " SELECT n.part, n.uid, n.seq, n.stamp, %s, '{}', %s"
                " FROM $.namespaces n JOIN $.migration USING (part, uid)",
                (EMPTIED, now_us()),
            )
            for name, value in settings.items():
                done = self._execute(
                    "INSERT INTO $.settings (name, value) VALUES (%s, %b) ON CONFLICT DO NOTHING",
                    (name, value),
                )
                if done.rowcount:
                    put.add(name)
            self._execute("DROP TABLE $.migration")
            self._execute("DELETE FROM $.settings WHERE name = 'migration'")
            self._execute("INSERT INTO $.settings (name, value) VALUES (%s, '')", (f"migrated {source}",))
            self._execute("DELETE FROM $.claims WHERE owner = %s", (_OWNER,))
        return put

    def analyse(self) -> None:
        """Run ANALYZE, so that the planner has statistics."""
        for table in (*OF_NAMESPACES, "namespaces"):
            self._execute(f"ANALYZE $.{table}")

    def keep_sweepers_away(self) -> None:
        """Keep servers from pruning the unfinished rows. Raises CannotOpen if one is at work."""
        if not claim_sync(self._connection, self._database, _SWEEP, _OWNER, _CLAIM_S):
            raise CannotOpen("a server is using this schema: stop it until the migration is finished")


def _row_in(row: dict[str, int | str]) -> str:
    """Return a namespace's row as it is recorded: JSON that PostgreSQL can also read."""
    kept = {name: text_in(value) if isinstance(value, str) else value for name, value in row.items()}
    return msgspec.json.encode(kept).decode()


@contextmanager
def open_target(dsn: str, schema: str) -> Iterator[Target]:
    """Open a schema for one migration at a time and create its tables. Raises CannotOpen."""
    database = Database(dsn, schema)
    try:
        asyncio.run(prepare_database(database))
        connection, reader = database.connect_sync(), database.connect_sync()
    except (psycopg.Error, Unavailable, OSError) as error:
        raise CannotOpen(f"cannot open the database: {cause_of(error)}") from error
    with closing(connection), closing(reader):
        with translated():
            lock = connection.execute(
                "SELECT pg_try_advisory_lock(%s)", (lock_of("migration", schema),)
            ).fetchone()
            if lock != (True,):
                raise CannotOpen("another migration to this schema is running")
            # A crash of the database loses the progress along with the rows: both are written again.
            connection.execute("SET synchronous_commit = off")
        yield Target(connection, reader, database)
