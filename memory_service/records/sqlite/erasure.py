"""Erasure: removes deleted data from all files.

A deleted row is overwritten at once (`secure_delete`), but traces may remain in pages that were split or
joined, and a graph file contains the vectors from when it was saved. So a write that erases something marks
its namespace in the same transaction. `Flush` saves the graphs of marked namespaces again, or removes their
files, and rewrites the database; then it removes the marks. Marks survive a crash.
"""

from __future__ import annotations

from memory_service.records.sqlite.connection import (
    Connection,
    begin,
    checkpoint,
    commit,
    rewrite,
    translated,
)

NO_NAMESPACE = 0
"""Stands for the namespaces of data erased because of its age."""
_ERASED = "erased:"
_ERASING = "erasing:"


def mark_erased(db: Connection, uid: int) -> None:
    """Record, within a write, that something in a namespace is deleted or overwritten."""
    db.execute("INSERT OR IGNORE INTO meta (name, value) VALUES (?, x'')", (f"{_ERASED}{uid}",))


def begin_erasing(db: Connection) -> set[int]:
    """Return the uids of the marked namespaces. Erasures from now on set a new mark."""
    begin(db)
    with translated():
        db.execute(
            "INSERT OR IGNORE INTO meta (name, value)"
            f" SELECT '{_ERASING}' || substr(name, {len(_ERASED) + 1}), value FROM meta"
            f" WHERE name GLOB '{_ERASED}*'"
        )
        db.execute(f"DELETE FROM meta WHERE name GLOB '{_ERASED}*'")
        rows = db.execute(f"SELECT name FROM meta WHERE name GLOB '{_ERASING}*'").fetchall()
    commit(db)
    return {int(name.removeprefix(_ERASING)) for (name,) in rows}


def forget_snapshots(db: Connection, uids: set[int]) -> None:
    """Remove the manifests of these namespaces' snapshots from the records."""
    db.executemany("DELETE FROM snapshots WHERE uid = ?", ((uid,) for uid in uids))


def finish_erasing(db: Connection) -> None:
    """Rewrite the database and remove the marks that `begin_erasing` returned."""
    rewrite(db)
    with translated():
        db.execute(f"DELETE FROM meta WHERE name GLOB '{_ERASING}*'")
    checkpoint(db)
