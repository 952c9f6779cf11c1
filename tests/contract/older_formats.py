"""Databases as earlier releases wrote them: made of one of today by taking away what came later."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

# What each format added.
_TAKE_AWAY = {
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
