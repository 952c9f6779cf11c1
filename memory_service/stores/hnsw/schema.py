"""The tables of the record database, and its format version."""

from __future__ import annotations

from memory_service.stores.base import CannotOpen
from memory_service.stores.sqlite import Connection, Row, translated

FORMAT = 2

# Rows of one namespace lie side by side: a key is the namespace's uid and the position or revision.
POSITION_BITS = 36
POSITION_MAX = (1 << POSITION_BITS) - 1

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE namespaces (
    uid INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    item_count INTEGER NOT NULL,
    state_count INTEGER NOT NULL,
    embedded_count INTEGER NOT NULL,
    dimension INTEGER NOT NULL,
    model TEXT NOT NULL,
    version_floor INTEGER NOT NULL,
    create_us INTEGER NOT NULL
);
CREATE TABLE items (
    key INTEGER PRIMARY KEY,
    uid INTEGER NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    create_us INTEGER NOT NULL,
    update_us INTEGER NOT NULL,
    expire_us INTEGER,
    labels TEXT,
    metadata TEXT,
    content TEXT NOT NULL,
    terms BLOB NOT NULL,
    vector_revision INTEGER NOT NULL,
    embedding BLOB,
    facet TEXT
);
CREATE UNIQUE INDEX items_by_id ON items (uid, id);
CREATE INDEX items_expiring ON items (expire_us) WHERE expire_us IS NOT NULL;
CREATE TABLE states (
    uid INTEGER NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    create_us INTEGER NOT NULL,
    update_us INTEGER NOT NULL,
    expire_us INTEGER,
    description TEXT NOT NULL,
    revision INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (uid, key)
) WITHOUT ROWID;
CREATE INDEX states_expiring ON states (expire_us) WHERE expire_us IS NOT NULL;
CREATE TABLE changes (key INTEGER PRIMARY KEY, type INTEGER NOT NULL, subject TEXT NOT NULL);
CREATE TABLE snapshots (uid INTEGER PRIMARY KEY, manifest TEXT NOT NULL);
CREATE TABLE requests (
    uid INTEGER NOT NULL,
    id TEXT NOT NULL,
    digest BLOB NOT NULL,
    receipt TEXT NOT NULL,
    time_us INTEGER NOT NULL,
    PRIMARY KEY (uid, id)
) WITHOUT ROWID;
CREATE INDEX requests_by_time ON requests (time_us);
"""


def prepare(connection: Connection) -> None:
    """Create the tables of a new database; refuse one of a newer format. Raises CannotOpen."""
    with translated():
        found = connection.pragma("user_version")
    if found > FORMAT:
        raise CannotOpen(
            f"the data directory has format {found}; this release reads up to format {FORMAT}: "
            "use the release that wrote it, or a newer one"
        )
    if found == 0:
        with connection:
            connection.execute(_TABLES)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
    elif found < FORMAT:
        with connection:
            connection.execute("ALTER TABLE items ADD COLUMN facet TEXT")
            connection.execute(f"PRAGMA user_version = {FORMAT}")


def key_of(uid: int, number: int) -> int:
    """Return the key of a position or revision of a namespace."""
    return uid << POSITION_BITS | number


def keys_of(uid: int) -> Row:
    """Return the least and the greatest key of a namespace."""
    return key_of(uid, 0), key_of(uid, POSITION_MAX)
