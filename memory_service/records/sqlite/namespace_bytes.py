"""The bytes that callers have stored in each namespace, kept up to date only if there is a limit.

The sums are in a temporary table of the writer's connection, in memory. Triggers update them, so that they
include every write, and a rollback also reverts the sums. Each namespace is counted once after a start; from
then on, the cost of a write does not depend on the size of its namespace. `records/content_bytes.py` defines
what counts.
"""

from __future__ import annotations

from memory_service.data_model import RequestKey
from memory_service.records.content_bytes import check_room
from memory_service.records.sqlite.connection import Connection
from memory_service.records.sqlite.ledger import Ledger, earlier
from memory_service.records.sqlite.schema import keys_of

_ITEM = ("id", "session_id", "labels", "metadata", "content", "facet", "provenance")
_STATE = ("key", "value", "description", "provenance")


def _bytes(columns: tuple[str, ...], row: str = "") -> str:
    """Return the expression for the bytes of a row."""
    prefix = f"{row}." if row else ""
    return "(" + " + ".join(f"coalesce(octet_length({prefix}{name}), 0)" for name in columns) + ")"


def _trigger(name: str, event: str, row: str, change: str) -> str:
    return (
        f"CREATE TEMP TRIGGER IF NOT EXISTS {name} {event} BEGIN"
        f" UPDATE namespace_bytes SET bytes = bytes + {change} WHERE uid = {row}.uid; END"
    )


_TABLES = (
    "CREATE TEMP TABLE IF NOT EXISTS namespace_bytes (uid INTEGER PRIMARY KEY, bytes INTEGER NOT NULL)",
    _trigger("item_added", "AFTER INSERT ON main.items", "NEW", _bytes(_ITEM, "NEW")),
    _trigger(
        "item_changed",
        f"AFTER UPDATE OF {', '.join(_ITEM)} ON main.items",
        "NEW",
        f"{_bytes(_ITEM, 'NEW')} - {_bytes(_ITEM, 'OLD')}",
    ),
    _trigger("item_removed", "AFTER DELETE ON main.items", "OLD", f"-{_bytes(_ITEM, 'OLD')}"),
    # For the row that INSERT OR REPLACE replaces, SQLite runs no DELETE trigger.
    _trigger(
        "state_saved",
        "BEFORE INSERT ON main.states",
        "NEW",
        f"{_bytes(_STATE, 'NEW')} - coalesce((SELECT {_bytes(_STATE)} FROM main.states"
        " WHERE states.uid = NEW.uid AND states.key = NEW.key), 0)",
    ),
    _trigger(
        "state_renamed",
        "AFTER UPDATE OF key ON main.states",
        "NEW",
        f"{_bytes(_STATE, 'NEW')} - {_bytes(_STATE, 'OLD')}",
    ),
    _trigger("state_removed", "AFTER DELETE ON main.states", "OLD", f"-{_bytes(_STATE, 'OLD')}"),
    "CREATE TEMP TRIGGER IF NOT EXISTS namespace_removed AFTER DELETE ON main.namespaces BEGIN"
    " DELETE FROM namespace_bytes WHERE uid = OLD.uid; END",
)
_FIND = "SELECT bytes FROM temp.namespace_bytes WHERE uid = ?"
_SUM = (
    f"(SELECT coalesce(sum({_bytes(_ITEM)}), 0) FROM main.items WHERE items.key BETWEEN ?2 AND ?3)"
    f" + (SELECT coalesce(sum({_bytes(_STATE)}), 0) FROM main.states WHERE states.uid = ?1)"
)
_COUNT = f"INSERT OR REPLACE INTO temp.namespace_bytes (uid, bytes) SELECT ?1, {_SUM}"


def prepare_sums(db: Connection) -> None:
    """Create the table and its triggers. No namespace is counted yet."""
    for statement in _TABLES:
        db.execute(statement)


def bytes_of(db: Connection, uid: int) -> int:
    """Return how many bytes a namespace has; the first call reads all its rows."""
    row = db.execute(_FIND, (uid,)).fetchone()
    if row is None:
        db.execute(_COUNT, (uid, *keys_of(uid)))
        row = db.execute(_FIND, (uid,)).fetchone()
    count: int = row[0]
    return count


def counted_bytes(db: Connection, uid: int) -> int:
    """Return how many bytes a namespace has, from all its rows."""
    count: int = db.execute(f"SELECT {_SUM}", (uid, *keys_of(uid))).fetchone()[0]
    return count


def check_namespace(
    db: Connection, ledger: Ledger, namespace: str, limit: int, request: RequestKey | None
) -> None:
    """Reject a write that adds to a full namespace, unless its request was already applied."""
    book = ledger.find(db, namespace)
    if book is None:
        return
    held = bytes_of(db, book.uid)
    if held >= limit and earlier(db, book, request) is None:
        check_room(held, limit)
