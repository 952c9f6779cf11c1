"""Databases as earlier releases wrote them: made from one of today by removing later additions."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path


def _without_rowid(table: str, columns: str, key: str, index: str) -> tuple[str, ...]:
    """Make a table of states one without a rowid."""
    names = ", ".join(column.split()[0] for column in columns.split(", "))
    return (
        f"ALTER TABLE {table} RENAME TO later",
        f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({key})) WITHOUT ROWID",
        f"INSERT INTO {table} ({names}) SELECT {names} FROM later",
        "DROP TABLE later",
        index,
    )


_STATE = (
    "create_us INTEGER NOT NULL, update_us INTEGER NOT NULL, expire_us INTEGER, description TEXT NOT NULL"
)
_KEY = "uid INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL"
# The additions of each format.
_TAKE_AWAY = {
    8: (
        "DROP TABLE parents",
        "DROP INDEX changes_removing",
        "ALTER TABLE state_history DROP COLUMN revision",
        "ALTER TABLE namespaces DROP COLUMN settings",
    ),
    7: (
        *_without_rowid(
            "states",
            f"{_KEY}, {_STATE}, revision INTEGER NOT NULL, value TEXT NOT NULL, provenance TEXT",
            "uid, key",
            "CREATE INDEX states_expiring ON states (expire_us) WHERE expire_us IS NOT NULL",
        ),
        *_without_rowid(
            "state_history",
            f"{_KEY}, replaced_us INTEGER NOT NULL, {_STATE}, value TEXT NOT NULL, provenance TEXT",
            "uid, key, version",
            "CREATE INDEX state_history_by_age ON state_history (replaced_us)",
        ),
    ),
    6: ("DROP TABLE told_of", "DROP TABLE answers"),
    5: ("DROP TABLE quarantine", "DROP INDEX items_used"),
    4: (
        "DROP TABLE item_history",
        "DROP TABLE state_history",
        "DROP TABLE removals",
        "ALTER TABLE items DROP COLUMN provenance",
        "ALTER TABLE states DROP COLUMN provenance",
    ),
    3: (
        "DROP INDEX namespaces_pending",
        "DROP INDEX items_pending",
        "ALTER TABLE namespaces DROP COLUMN pending_count",
        "ALTER TABLE namespaces DROP COLUMN vector_epoch",
        "ALTER TABLE namespaces DROP COLUMN moving",
        "ALTER TABLE items DROP COLUMN importance",
        "ALTER TABLE items DROP COLUMN use_count",
    ),
    2: ("ALTER TABLE items DROP COLUMN facet",),
}


def make_older(data_dir: Path, number: int) -> None:
    """Turn the closed database of a folder into one of this format."""
    with contextlib.closing(sqlite3.connect(data_dir / "records.db")) as database:
        (present,) = database.execute("PRAGMA user_version").fetchone()
        for later in range(present, number, -1):
            for statement in _TAKE_AWAY[later]:
                database.execute(statement)
        database.execute(f"PRAGMA user_version = {number}")
        database.commit()
