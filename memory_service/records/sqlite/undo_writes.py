"""Applies an undo to the database, some items or states at a time."""

from __future__ import annotations

import numpy as np

from memory_service.data_model import (
    ChangeType,
    Facet,
    Item,
    ItemKind,
    ItemWrite,
    Receipt,
    UndoStep,
    WritesBy,
)
from memory_service.indexes.view import Entry
from memory_service.records.base import RestoredFiles
from memory_service.records.rules.history import Version, copied
from memory_service.records.rules.undo import (
    Action,
    Undone,
    check_files,
    step_of,
    undo_item,
    undo_state,
    write_again,
)
from memory_service.records.rules.versions import REDACTED
from memory_service.records.sqlite.applying import check_unchanged_in
from memory_service.records.sqlite.connection import Connection, Row
from memory_service.records.sqlite.item_writes import StoredItem, put_version, remove_item
from memory_service.records.sqlite.kept_answers import forget_told_of_item, forget_told_of_state
from memory_service.records.sqlite.ledger import Book, Ledger, Outcome, finish
from memory_service.records.sqlite.rows import ITEM_COLUMNS, STATE_COLUMNS, item_of, state_of
from memory_service.records.sqlite.schema import POSITION_MAX, key_of
from memory_service.records.sqlite.state_writes import StoredState, remove_state, write_over
from memory_service.records.stored_values import provenance_of

_IS_ONE = (
    "update_us >= :since AND coalesce(provenance ->> 'write_us', update_us) >= :since"
    " AND (:writer IS NULL OR coalesce(provenance ->> 'writer', '') = :writer)"
    " AND (:credential IS NULL OR coalesce(provenance ->> 'credential_id', '') = :credential)"
)
_TOUCHED_ITEMS = (
    f"SELECT key FROM items WHERE key BETWEEN :first AND :last AND {_IS_ONE}"
    f" UNION SELECT key FROM item_history WHERE key BETWEEN :first AND :last AND {_IS_ONE}"
    " ORDER BY key LIMIT :limit"
)
_TOUCHED_STATES = (
    f"SELECT key FROM states WHERE uid = :uid AND key > :after AND {_IS_ONE}"
    f" UNION SELECT key FROM state_history WHERE uid = :uid AND key > :after AND {_IS_ONE}"
    " ORDER BY key LIMIT :limit"
)
_REMOVALS = (
    "SELECT count(*) FROM removals WHERE key BETWEEN :first AND :last AND time_us >= :since"
    " AND (:writer IS NULL OR writer = :writer) AND (:credential IS NULL OR credential_id = :credential)"
)
_ITEM_VERSION = "revision, update_us, expire_us, provenance, content, facet ->> 'kind'"
_STATE_VERSION = "version, update_us, expire_us, provenance, value"
_KEPT_STATE = f"SELECT {STATE_COLUMNS} FROM state_history"


def _values(by: WritesBy) -> dict[str, object]:
    return {"since": by.since_us, "writer": by.writer, "credential": by.credential_id}


def count_removals(db: Connection, uid: int, by: WritesBy) -> int:
    """Return how many removals of a writer are recorded."""
    values = {"first": key_of(uid, 0), "last": key_of(uid, POSITION_MAX)}
    row: Row = db.execute(_REMOVALS, _values(by) | values).fetchone()
    return int(row[0])


# --- plans ------------------------------------------------------------------------------------


def plan_items(
    db: Connection, uid: int, by: WritesBy, after: int, limit: int, at_us: int
) -> tuple[UndoStep, list[tuple[str, StoredItem, Undone]]]:
    """Return the report of an undo on some items, and for each its id, stored item and result."""
    values = {"first": key_of(uid, after + 1), "last": key_of(uid, POSITION_MAX), "limit": limit}
    keys = [key for (key,) in db.execute(_TOUCHED_ITEMS, _values(by) | values)]
    plans = [_plan_item(db, key, by, at_us) for key in keys]
    undone = {item_id: becomes for item_id, _, becomes in plans}
    return step_of(undone, [key & POSITION_MAX for key in keys], limit), plans


def _plan_item(db: Connection, key: int, by: WritesBy, at_us: int) -> tuple[str, StoredItem, Undone]:
    item_id, vector_key, *present = db.execute(
        f"SELECT id, vector_revision, {_ITEM_VERSION} FROM items WHERE key = ?", (key,)
    ).fetchone()
    before = db.execute(
        f"SELECT {_ITEM_VERSION} FROM item_history WHERE key = ? ORDER BY revision DESC", (key,)
    )
    stored = StoredItem(key, present[0], present[2], vector_key)
    versions = [_version(*row) for row in (present, *before)]
    return item_id, stored, undo_item(versions, stored.position, by, at_us)


def _version(
    number: int,
    update_us: int,
    expire_us: int | None,
    provenance: str | None,
    content: str,
    kind: int | None = None,
) -> Version:
    return Version(
        number, update_us, expire_us, provenance_of(provenance), content, content == REDACTED,
        kind=ItemKind(kind or 0),
    )  # fmt: skip


def plan_states(
    db: Connection, uid: int, by: WritesBy, after: str, limit: int, at_us: int
) -> tuple[UndoStep, dict[str, tuple[StoredState, Undone]]]:
    """Return the report of an undo on some states, and for each key the stored state and result."""
    values = {"uid": uid, "after": after, "limit": limit}
    keys = [key for (key,) in db.execute(_TOUCHED_STATES, _values(by) | values)]
    plans = {key: _plan_state(db, uid, key, by, at_us) for key in keys}
    return step_of({key: undone for key, (_, undone) in plans.items()}, keys, limit), plans


def _plan_state(db: Connection, uid: int, key: str, by: WritesBy, at_us: int) -> tuple[StoredState, Undone]:
    of = "WHERE uid = ? AND key = ?"
    create_us, description, *present = db.execute(
        f"SELECT create_us, description, {_STATE_VERSION} FROM states {of}", (uid, key)
    ).fetchone()
    before = db.execute(f"SELECT {_STATE_VERSION} FROM state_history {of} ORDER BY version DESC", (uid, key))
    versions = [_version(*row) for row in (present, *before)]
    stored = StoredState(present[0], create_us, present[2], description)
    return stored, undo_state(versions, create_us, by, at_us)


# --- writes -----------------------------------------------------------------------------------


def undo_items(
    db: Connection,
    ledger: Ledger,
    book: Book,
    by: WritesBy,
    after: int,
    limit: int,
    at_us: int,
    files: RestoredFiles | None,
) -> tuple[UndoStep, Outcome]:
    """Undo a writer's changes to some items; see `UndoStore.undo_items`."""
    outcome = Outcome(Receipt(0))
    step, plans = plan_items(db, book.uid, by, after, limit, at_us)
    if files is not None:
        check_unchanged_in(db, book, files.unchanged)
    check_files({item_id: undone for item_id, _, undone in plans}, files)
    for item_id, stored, undone in plans:
        if undone.action is Action.REMOVE:
            removed = remove_item(db, ledger, book, item_id, stored, ChangeType.ITEM_DELETED)
            outcome.effect.removed.append(removed)
            continue
        forget_told_of_item(db, book.uid, item_id)
        if undone.action is Action.RESTORE:
            facet = files.facets.get((item_id, undone.restored)) if files else None
            restored = _restore(db, ledger, book, stored, undone.restored, facet)
            outcome.effect.replaced.append((restored, False))
        ledger.erase(db, book)
        db.executemany(
            "DELETE FROM item_history WHERE key = ? AND revision = ?",
            [(stored.key, revision) for revision in undone.forgotten],
        )
    return step, finish(db, book, None, outcome)


def _restore(
    db: Connection, ledger: Ledger, book: Book, stored: StoredItem, revision: int, facet: Facet | None
) -> Entry:
    """Write a kept version over the present one, with a facet if one is given."""
    columns = ", ".join(
        "i.id" if name == "id" else f"h.{name}" for name in map(str.strip, ITEM_COLUMNS.split(","))
    )
    row = db.execute(
        f"SELECT {columns}, h.embedding, h.terms FROM item_history h JOIN items i USING (key)"
        " WHERE h.key = ? AND h.revision = ?",
        (stored.key, revision),
    ).fetchone()
    *columns_of_item, packed = row
    item: Item = item_of(tuple(columns_of_item), book.no_vector_key)
    if item.embedding is not None:
        item.embedding = np.array(item.embedding)
    item.provenance = copied(item.provenance, revision)
    item.facet = facet or item.facet
    write = ItemWrite(item, "")
    # If its vector is of another model, or it had none yet, the item becomes pending.
    waits = row[10] < book.no_vector_key
    put_version(db, ledger, book, write, packed, stored, waits)
    return book.entry(write, packed)


def undo_states(
    db: Connection, ledger: Ledger, book: Book, by: WritesBy, after: str, limit: int, at_us: int
) -> tuple[UndoStep, Outcome]:
    """Undo a writer's changes to some states; see `UndoStore.undo_states`."""
    step, plans = plan_states(db, book.uid, by, after, limit, at_us)
    for key, (present, undone) in plans.items():
        if undone.action is Action.REMOVE:
            remove_state(db, ledger, book, key, present.version, ChangeType.STATE_DELETED)
            continue
        forget_told_of_state(db, book.uid, key)
        which = "WHERE uid = ? AND key = ? AND version = ?"
        if undone.action is Action.RESTORE:
            row = db.execute(f"{_KEPT_STATE} {which}", (book.uid, key, undone.restored)).fetchone()
            write_over(db, ledger, book, write_again(state_of(row)), present)
        ledger.erase(db, book)
        db.executemany(
            f"DELETE FROM state_history {which}",
            [(book.uid, key, version) for version in undone.forgotten],
        )
    return step, finish(db, book, None, Outcome(Receipt(0)))
