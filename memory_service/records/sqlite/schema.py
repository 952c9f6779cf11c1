"""The tables of the record database, and its format version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from memory_service.data_model import ChangeType, ItemKind
from memory_service.indexes.analysis import Analyzer, pack_terms, unpack_terms
from memory_service.records.base import CannotOpen
from memory_service.records.rules.vectors import REVISION_BITS
from memory_service.records.rules.versions import REMOVING
from memory_service.records.sqlite.connection import Connection, Row, translated
from memory_service.runtime.failpoints import reach

# A key is the namespace's uid and a position or revision, so the rows of a namespace lie together.
POSITION_BITS = REVISION_BITS
POSITION_MAX = (1 << POSITION_BITS) - 1

_TABLES_FORMAT = 2
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

_ROWS_AT_ONCE = 10_000


def _rename_terms(connection: Connection) -> None:
    """Give irregular verbs in stored texts the terms that queries now use for them."""
    renamed = Analyzer().renamed_terms()
    key = 0
    while rows := connection.execute(
        "SELECT key, terms FROM items WHERE key > ? ORDER BY key LIMIT ?", (key, _ROWS_AT_ONCE)
    ).fetchall():
        key = rows[-1][0]
        for of, packed in rows:
            terms, counts, _ = unpack_terms([packed])
            if renamed.keys().isdisjoint(terms.tolist()):
                continue
            merged: Counter[int] = Counter()
            for term, count in zip(terms.tolist(), counts.tolist(), strict=True):
                merged[renamed.get(term, term)] += count
            connection.execute("UPDATE items SET terms = ? WHERE key = ?", (pack_terms(merged), of))


_FACETS = ("ALTER TABLE items ADD COLUMN facet TEXT",)
_WEIGHED_ITEMS = (
    "ALTER TABLE items ADD COLUMN importance REAL",
    "ALTER TABLE items ADD COLUMN use_count INTEGER NOT NULL DEFAULT 0",
    _rename_terms,
)

# From here on, `vector_revision` is the key of a vector. Earlier values are valid keys, of epoch 0.
_PENDING_VECTORS = (
    "ALTER TABLE namespaces ADD COLUMN pending_count INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE namespaces ADD COLUMN vector_epoch INTEGER NOT NULL DEFAULT 0",
    # Whether items are pending because their vectors were given up; finding these scans all items.
    "ALTER TABLE namespaces ADD COLUMN moving INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX namespaces_pending ON namespaces (name) WHERE pending_count > 0",
    "CREATE INDEX items_pending ON items (key) WHERE vector_revision < 0",
)

# Replaced versions, kept for undo; `key` is that of the item.
_HISTORY = (
    "ALTER TABLE items ADD COLUMN provenance TEXT",
    "ALTER TABLE states ADD COLUMN provenance TEXT",
    """CREATE TABLE item_history (
        key INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        replaced_us INTEGER NOT NULL,
        session_id TEXT NOT NULL,
        create_us INTEGER NOT NULL,
        update_us INTEGER NOT NULL,
        expire_us INTEGER,
        labels TEXT,
        metadata TEXT,
        content TEXT NOT NULL,
        facet TEXT,
        importance REAL,
        provenance TEXT,
        terms BLOB NOT NULL,
        vector_revision INTEGER NOT NULL,
        embedding BLOB
    )""",
    "CREATE UNIQUE INDEX item_history_by_version ON item_history (key, revision)",
    "CREATE INDEX item_history_by_age ON item_history (replaced_us)",
    """CREATE TABLE state_history (
        uid INTEGER NOT NULL,
        key TEXT NOT NULL,
        version INTEGER NOT NULL,
        replaced_us INTEGER NOT NULL,
        create_us INTEGER NOT NULL,
        update_us INTEGER NOT NULL,
        expire_us INTEGER,
        description TEXT NOT NULL,
        value TEXT NOT NULL,
        provenance TEXT,
        PRIMARY KEY (uid, key, version)
    ) WITHOUT ROWID""",
    "CREATE INDEX state_history_by_age ON state_history (replaced_us)",
    # Who deleted something, and when, but not its content.
    """CREATE TABLE removals (
        key INTEGER PRIMARY KEY,
        time_us INTEGER NOT NULL,
        writer TEXT NOT NULL,
        credential_id TEXT NOT NULL
    )""",
    "CREATE INDEX removals_by_age ON removals (time_us)",
)

# Held writes, separate from everything that is read.
_QUARANTINE = (
    """CREATE TABLE quarantine (
        uid INTEGER NOT NULL,
        id TEXT NOT NULL,
        reason TEXT NOT NULL,
        body BLOB NOT NULL,
        held_us INTEGER NOT NULL,
        expire_us INTEGER NOT NULL,
        writer TEXT NOT NULL,
        credential_id TEXT NOT NULL,
        request_id TEXT,
        digest BLOB
    )""",
    "CREATE UNIQUE INDEX quarantine_by_id ON quarantine (uid, id)",
    "CREATE INDEX quarantine_by_request ON quarantine (uid, request_id) WHERE request_id IS NOT NULL",
    "CREATE INDEX quarantine_expiring ON quarantine (expire_us)",
)

# Finds the items used since a snapshot, as uses are not logged.
_USED_ITEMS = "CREATE INDEX items_used ON items (key, use_count) WHERE use_count > 0"

# Answers with contents that may be erased, and the items and states that each mentions.
_ANSWER_FORGOTTEN = (
    "CREATE TRIGGER answer_forgotten AFTER DELETE ON answers"
    " BEGIN DELETE FROM told_of WHERE answer = old.key; END"
)
_ANSWERS = (
    """CREATE TABLE answers (
        key INTEGER PRIMARY KEY,
        uid INTEGER NOT NULL,
        request TEXT NOT NULL,
        whole BLOB NOT NULL,
        time_us INTEGER NOT NULL
    )""",
    "CREATE UNIQUE INDEX answers_by_request ON answers (uid, request)",
    "CREATE INDEX answers_by_time ON answers (time_us)",
    """CREATE TABLE told_of (
        uid INTEGER NOT NULL,
        subject TEXT NOT NULL,
        answer INTEGER NOT NULL,
        PRIMARY KEY (uid, subject, answer)
    ) WITHOUT ROWID""",
    "CREATE INDEX told_of_by_answer ON told_of (answer)",
    _ANSWER_FORGOTTEN,
)

_STATES = "uid, key, version, create_us, update_us, expire_us, description, revision, value, provenance"
_VERSIONS = "uid, key, version, replaced_us, create_us, update_us, expire_us, description, value, provenance"
# States in tables with a rowid. Without one, the search for a key reads the whole rows that it compares,
# including values of up to 1 MiB.
_STATES_BY_ROW = (
    "ALTER TABLE states RENAME TO states_before",
    """CREATE TABLE states (
        uid INTEGER NOT NULL,
        key TEXT NOT NULL,
        version INTEGER NOT NULL,
        create_us INTEGER NOT NULL,
        update_us INTEGER NOT NULL,
        expire_us INTEGER,
        description TEXT NOT NULL,
        revision INTEGER NOT NULL,
        value TEXT NOT NULL,
        provenance TEXT,
        PRIMARY KEY (uid, key)
    )""",
    f"INSERT INTO states ({_STATES}) SELECT {_STATES} FROM states_before ORDER BY uid, key",
    "DROP TABLE states_before",
    "CREATE INDEX states_expiring ON states (expire_us) WHERE expire_us IS NOT NULL",
    "ALTER TABLE state_history RENAME TO state_history_before",
    """CREATE TABLE state_history (
        uid INTEGER NOT NULL,
        key TEXT NOT NULL,
        version INTEGER NOT NULL,
        replaced_us INTEGER NOT NULL,
        create_us INTEGER NOT NULL,
        update_us INTEGER NOT NULL,
        expire_us INTEGER,
        description TEXT NOT NULL,
        value TEXT NOT NULL,
        provenance TEXT,
        PRIMARY KEY (uid, key, version)
    )""",
    f"INSERT INTO state_history ({_VERSIONS}) SELECT {_VERSIONS} FROM state_history_before"
    " ORDER BY uid, key, version",
    "DROP TABLE state_history_before",
    "CREATE INDEX state_history_by_age ON state_history (replaced_us)",
)

# Versions can be read: states by the revision at which they were written, counted backwards from the current
# version, and removals by what they removed.
_VERSIONS_READ = (
    "ALTER TABLE state_history ADD COLUMN revision INTEGER NOT NULL DEFAULT 0",
    f"""UPDATE state_history SET revision = saved.revision FROM states, (
        SELECT key >> {POSITION_BITS} AS uid, subject, key & {POSITION_MAX} AS revision,
        row_number() OVER (PARTITION BY key >> {POSITION_BITS}, subject ORDER BY key DESC) AS back
        FROM changes WHERE type = {int(ChangeType.STATE_SAVED)}
        AND subject IN (SELECT key FROM state_history)) saved
        WHERE states.uid = state_history.uid AND states.key = state_history.key
        AND saved.uid = states.uid AND saved.subject = states.key
        AND saved.back = states.version - state_history.version + 1""",
    f"CREATE INDEX changes_removing ON changes (subject, key) WHERE type IN ({REMOVING})",
)

_SETTINGS = ("ALTER TABLE namespaces ADD COLUMN settings TEXT",)

# Which items were made from which, by their keys. Items without parents have no rows.
_PARENTS = (
    "CREATE TABLE parents (parent INTEGER NOT NULL, child INTEGER NOT NULL, PRIMARY KEY (parent, child))"
    " WITHOUT ROWID",
    "CREATE INDEX parents_by_child ON parents (child)",
    # The parents in the provenance, and the message that a response answers; see `rules/derivation.py`.
    "INSERT OR IGNORE INTO parents (parent, child) SELECT p.key, i.key FROM items i"
    " CROSS JOIN json_each(i.provenance, '$.parent_ids') named JOIN items p"
    " ON p.uid = i.uid AND p.id = named.value WHERE i.provenance IS NOT NULL AND p.key <> i.key",
    "INSERT OR IGNORE INTO parents (parent, child) SELECT p.key, i.key FROM items i JOIN items p"
    " ON p.uid = i.uid AND p.id = i.facet ->> '$.tags.in_response_to'"
    f" WHERE i.facet ->> 'kind' = {int(ItemKind.RESPONSE)} AND p.key <> i.key",
)

# The steps that migrate a database to each format from the previous one. A new database begins with _TABLES.
_MIGRATIONS: dict[int, tuple[str | Callable[[Connection], None], ...]] = {
    2: _FACETS,
    3: (*_WEIGHED_ITEMS, *_PENDING_VECTORS),
    4: _HISTORY,
    5: (*_QUARANTINE, _USED_ITEMS),
    6: _ANSWERS,
    7: _STATES_BY_ROW,
    8: (*_PARENTS, *_VERSIONS_READ, *_SETTINGS),
}
FORMAT = max(_MIGRATIONS)
TABLES = (
    *("meta", "namespaces", "items", "states", "changes", "snapshots", "requests"),
    *("item_history", "state_history", "removals", "quarantine", "answers", "told_of", "parents"),
)
"""All tables of this and earlier formats."""
TRIGGERS = frozenset({_ANSWER_FORGOTTEN})
"""All triggers, as SQLite stores them."""


def prepare(connection: Connection, before_migration: Callable[[Connection, int], None]) -> None:
    """Create the tables of a new database or migrate an older one, as a whole or not at all. Raises
    CannotOpen, also for a newer format.

    `before_migration` is called with the connection and FORMAT before an older database is changed.
    """
    with translated():
        found = connection.pragma("user_version")
    if found > FORMAT:
        raise CannotOpen(
            f"the data folder has format {found}, but this release reads up to format {FORMAT}: "
            "use the release that wrote it or a newer one"
        )
    if found < FORMAT:
        _migrate(connection, found, before_migration)


def _migrate(connection: Connection, found: int, before_migration: Callable[[Connection, int], None]) -> None:
    if found:
        before_migration(connection, FORMAT)
    reach("migration.before_begin")
    with translated(), connection:
        if found == 0:
            connection.execute(_TABLES)
            found = _TABLES_FORMAT
        for number in range(found + 1, FORMAT + 1):
            for step in _MIGRATIONS[number]:
                if callable(step):
                    step(connection)
                else:
                    connection.execute(step)
                reach("migration.after_step")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        reach("migration.before_commit")
    reach("migration.after_commit")


def key_of(uid: int, number: int) -> int:
    """Return the key for a position or revision of a namespace."""
    return uid << POSITION_BITS | number


def keys_of(uid: int) -> Row:
    """Return the lowest and the highest key of a namespace."""
    return key_of(uid, 0), key_of(uid, POSITION_MAX)
