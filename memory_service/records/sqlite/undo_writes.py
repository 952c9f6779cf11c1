"""What an undo does to the database, some items or states at a time."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from memory_service.data_model import (
    UNATTRIBUTED,
    ChangeType,
    Item,
    ItemKind,
    ItemWrite,
    Provenance,
    Receipt,
    StateWrite,
    UndoStep,
    WritesBy,
)
from memory_service.indexes.view import Entry
from memory_service.records.sqlite.connection import Connection, Row
from memory_service.records.sqlite.erasure import mark_erased
from memory_service.records.sqlite.item_writes import put_version, remove_item
from memory_service.records.sqlite.kept_answers import forget_told_of_item, forget_told_of_state
from memory_service.records.sqlite.ledger import Book, Ledger, Outcome, finish
from memory_service.records.sqlite.rows import ITEM_COLUMNS, item_of, provenance_of
from memory_service.records.sqlite.schema import POSITION_BITS, POSITION_MAX, key_of, vector_key
from memory_service.records.sqlite.state_writes import put_state, remove_state

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
_VERSION_COLUMNS = "revision, update_us, expire_us, provenance, content, facet ->> 'kind'"


class _Action(enum.Enum):
    REMOVE = 1
    RESTORE = 2
    LEAVE = 3


@dataclass(slots=True)
class _Plan:
    """What becomes of one item or state; `version` is the one to bring back, `forgotten` others to forget."""

    action: _Action
    version: int = 0
    unrestorable: bool = False
    forgotten: Sequence[int] = ()


def _values(by: WritesBy) -> dict[str, object]:
    return {"since": by.since_us, "writer": by.writer, "credential": by.credential_id}


def touched_items(db: Connection, uid: int, by: WritesBy, after: int, limit: int) -> list[int]:
    """Return the keys of up to `limit` items that have, or had, a version of somebody's."""
    values = {"first": key_of(uid, after + 1), "last": key_of(uid, POSITION_MAX), "limit": limit}
    return [key for (key,) in db.execute(_TOUCHED_ITEMS, _values(by) | values)]


def touched_states(db: Connection, uid: int, by: WritesBy, after: str, limit: int) -> list[str]:
    """Return up to `limit` keys of states that have, or had, a version of somebody's."""
    values = {"uid": uid, "after": after, "limit": limit}
    return [key for (key,) in db.execute(_TOUCHED_STATES, _values(by) | values)]


def count_removals(db: Connection, uid: int, by: WritesBy) -> int:
    """Return how often somebody deleted something, or let it expire."""
    values = {"first": key_of(uid, 0), "last": key_of(uid, POSITION_MAX)}
    row: Row = db.execute(_REMOVALS, _values(by) | values).fetchone()
    return int(row[0])


# --- what becomes of each ---------------------------------------------------------------------


def plan_item(db: Connection, key: int, by: WritesBy, at_us: int) -> tuple[str, _Plan]:
    """Return the id of an item, and what becomes of it."""
    item_id, *current = db.execute(
        f"SELECT id, {_VERSION_COLUMNS} FROM items WHERE key = ?", (key,)
    ).fetchone()
    before = db.execute(
        f"SELECT {_VERSION_COLUMNS} FROM item_history WHERE key = ? ORDER BY revision DESC", (key,)
    ).fetchall()
    versions = [_Version(*row) for row in (current, *before)]
    return item_id, _plan(versions, by, at_us, first=key & POSITION_MAX)


@dataclass(slots=True)
class _Version:
    """What tells whose a version is; `number` is a revision, or a state's version."""

    number: int
    update_us: int
    expire_us: int | None
    provenance_json: str | None
    content: str
    kind: int | None = None

    @property
    def provenance(self) -> Provenance:
        return provenance_of(self.provenance_json) or UNATTRIBUTED

    @property
    def origin(self) -> int:
        """The number of the version, or of that which it is a copy of."""
        return self.provenance.copy_of or self.number


def _plan(versions: Sequence[_Version], by: WritesBy, at_us: int, first: int) -> _Plan:
    """Return what becomes of what has these versions, the present one first; it began with `first`."""
    present, *before = versions
    theirs = [v for v in before if by.has(v.provenance, v.update_us)]
    if not by.has(present.provenance, present.update_us):
        # Somebody has written over it since. What they took over of it cannot be told from their own.
        kept = any(version.content == present.content for version in theirs)
        return _Plan(_Action.LEAVE, unrestorable=kept, forgotten=[v.number for v in theirs])
    wanted = next((v for v in before if not by.has(v.provenance, v.update_us)), None)
    if wanted is None:
        if versions[-1].origin == first:
            return _Plan(_Action.REMOVE)
        return _Plan(_Action.LEAVE, unrestorable=True, forgotten=[v.number for v in theirs])
    if wanted.kind == ItemKind.DOCUMENT:
        # The fragments of that version were deleted when it was replaced.
        return _Plan(_Action.REMOVE, unrestorable=True)
    if wanted.expire_us is not None and wanted.expire_us <= at_us:
        return _Plan(_Action.REMOVE)
    return _Plan(_Action.RESTORE, wanted.number, forgotten=[v.number for v in theirs])


def plan_state(db: Connection, uid: int, key: str, by: WritesBy, at_us: int) -> tuple[int, _Plan]:
    """Return the present version of a state, and what becomes of it."""
    columns = "version, update_us, expire_us, provenance, value"
    of = "WHERE uid = ? AND key = ?"
    current = db.execute(f"SELECT {columns}, create_us FROM states {of}", (uid, key)).fetchone()
    before = db.execute(
        f"SELECT {columns} FROM state_history {of} ORDER BY version DESC", (uid, key)
    ).fetchall()
    versions = [_Version(*row) for row in (current[:5], *before)]
    # A state's first version is of the time that the state was created.
    last = versions[-1]
    first = last.origin if last.update_us == current[5] else 0
    return current[0], _plan(versions, by, at_us, first)


def count(step: UndoStep, name: str, plan: _Plan) -> None:
    """Count what becomes of one."""
    step.removed_count += plan.action is _Action.REMOVE
    step.restored_count += plan.action is _Action.RESTORE
    if plan.unrestorable:
        step.unrestorable.append(name)


# --- doing it ---------------------------------------------------------------------------------


def undo_items(
    db: Connection, ledger: Ledger, book: Book, by: WritesBy, after: int, limit: int, at_us: int
) -> tuple[UndoStep, Outcome]:
    """Undo what somebody did to some items; see `UndoStore.undo_items`."""
    step, outcome = UndoStep(), Outcome(Receipt(0))
    keys = touched_items(db, book.uid, by, after, limit)
    for key in keys:
        item_id, plan = plan_item(db, key, by, at_us)
        count(step, item_id, plan)
        if plan.action is _Action.REMOVE:
            stored = _stored(db, key)
            removed = remove_item(db, ledger, book, item_id, stored, ChangeType.ITEM_DELETED)
            outcome.effect.removed.append(removed)
            continue
        forget_told_of_item(db, book.uid, item_id)
        if plan.action is _Action.RESTORE:
            outcome.effect.replaced.append((_restore(db, ledger, book, key, plan.version), False))
        _forget(db, key, plan.forgotten)
    step.following = keys[-1] & POSITION_MAX if len(keys) == limit else None
    return step, finish(db, book, None, outcome)


def _stored(db: Connection, key: int) -> Row:
    row: Row = db.execute(
        "SELECT key, revision, expire_us, vector_revision FROM items WHERE key = ?", (key,)
    ).fetchone()
    return row


def _restore(db: Connection, ledger: Ledger, book: Book, key: int, revision: int) -> Entry:
    """Write a version that was kept over the present one, and forget the ones in between."""
    columns = ", ".join(
        "i.id" if name == "id" else f"h.{name}" for name in map(str.strip, ITEM_COLUMNS.split(","))
    )
    row = db.execute(
        f"SELECT {columns}, h.embedding, h.terms FROM item_history h JOIN items i USING (key)"
        " WHERE h.key = ? AND h.revision = ?",
        (key, revision),
    ).fetchone()
    *columns_of_item, packed = row
    item: Item = item_of(tuple(columns_of_item), book.no_vector_key)
    if item.embedding is not None:
        item.embedding = np.array(item.embedding)
    before = item.provenance or UNATTRIBUTED
    item.provenance = msgspec.structs.replace(before, copy_of=before.copy_of or revision)
    write = ItemWrite(item, "")
    # Of another model, or not embedded by then: it waits for a vector.
    waits = row[10] < vector_key(book.vector_epoch, 0)
    put_version(db, ledger, book, write, packed, _stored(db, key), waits)
    _forget(db, key, [revision])
    return book.entry(write, packed)


def _forget(db: Connection, key: int, revisions: Sequence[int]) -> None:
    mark_erased(db, key >> POSITION_BITS)
    db.executemany(
        "DELETE FROM item_history WHERE key = ? AND revision = ?", [(key, revision) for revision in revisions]
    )


def undo_states(
    db: Connection, ledger: Ledger, book: Book, by: WritesBy, after: str, limit: int, at_us: int
) -> tuple[UndoStep, Outcome]:
    """Undo what somebody did to some states; see `UndoStore.undo_states`."""
    step = UndoStep()
    keys = touched_states(db, book.uid, by, after, limit)
    for key in keys:
        present, plan = plan_state(db, book.uid, key, by, at_us)
        count(step, key, plan)
        if plan.action is _Action.REMOVE:
            remove_state(db, ledger, book, key, present, ChangeType.STATE_DELETED)
            continue
        forget_told_of_state(db, book.uid, key)
        forgotten = list(plan.forgotten)
        if plan.action is _Action.RESTORE:
            _restore_state(db, ledger, book, key, plan.version)
            forgotten += [plan.version, present]
        ledger.erase(db, book)
        db.executemany(
            "DELETE FROM state_history WHERE uid = ? AND key = ? AND version = ?",
            [(book.uid, key, version) for version in forgotten],
        )
    step.following = keys[-1] if len(keys) == limit else None
    return step, finish(db, book, None, Outcome(Receipt(0)))


def _restore_state(db: Connection, ledger: Ledger, book: Book, key: str, version: int) -> None:
    """Save a value that was kept over the present one."""
    update_us, expire_us, description, value, stored = db.execute(
        "SELECT update_us, expire_us, description, value, provenance FROM state_history"
        " WHERE uid = ? AND key = ? AND version = ?",
        (book.uid, key, version),
    ).fetchone()
    before = provenance_of(stored) or UNATTRIBUTED
    provenance = msgspec.structs.replace(before, copy_of=before.copy_of or version)
    write = StateWrite(key, value.encode(), update_us, description, expire_us, provenance=provenance)
    # Whatever is there is live for a write of a time before its end.
    db.execute("UPDATE states SET expire_us = NULL WHERE uid = ? AND key = ?", (book.uid, key))
    put_state(db, ledger, book, write)
