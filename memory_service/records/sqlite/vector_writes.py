"""Writes that concern only vectors: gives up those of a namespace, and fills in pending ones.

An item's `vector_revision` is the key of its vector, which has the namespace's epoch in its high bits
(`rules.vectors.vector_key`). So raising the epoch gives up all vectors of a namespace without writing to any
item's row.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import Receipt, VectorFill
from memory_service.errors import NotFound
from memory_service.records.effects import Effect
from memory_service.records.rules.vectors import check_fills, check_move, vector_key, written_key
from memory_service.records.sqlite.connection import Connection, Row
from memory_service.records.sqlite.ledger import Ledger, Outcome
from memory_service.records.sqlite.rows import ITEM_COLUMNS
from memory_service.records.sqlite.schema import POSITION_MAX, key_of
from memory_service.records.stored_values import vector_bytes
from memory_service.runtime.failpoints import reach


def begin_reembedding(
    db: Connection, ledger: Ledger, namespace: str, model: str, dimension: int, replace_client_vectors: bool
) -> Outcome:
    """Give up the vectors of a namespace; see `PendingStore.begin_reembedding`."""
    book = ledger.find(db, namespace)
    if book is None:
        raise NotFound.namespace(namespace)
    moves = check_move(book.info(), model, dimension, replace_client_vectors)
    if moves:
        book.vector_epoch += 1
        book.model, book.dimension = model, dimension
        book.embedded_count, book.pending_count = 0, book.item_count
        book.moving = 1
        ledger.note(book)
        db.execute("DELETE FROM snapshots WHERE uid = ?", (book.uid,))
        reach("reembedding.begun")
    return Outcome(Receipt(book.revision), info=book.info(), effect=Effect(moved=moves))


def fill_vectors(
    db: Connection, ledger: Ledger, namespace: str, uid: int, model: str, fills: Sequence[VectorFill]
) -> Outcome:
    """Give pending items their vectors; see `PendingStore.fill_vectors`."""
    book = ledger.find(db, namespace)
    if book is None or book.uid != uid:
        return Outcome(Receipt(0))
    dimension = check_fills(book.info(), model, fills)
    outcome = Outcome(Receipt(book.revision))
    for fill in fills:
        embedded = fill.vector is not None
        key = written_key(book.vector_epoch, fill.revision, waits=False, embedded=embedded)
        db.execute(
            "UPDATE items SET vector_revision = ?, embedding = ?"
            " WHERE key = ? AND revision = ? AND vector_revision < ?",
            (key, vector_bytes(fill.vector), key_of(uid, fill.position), fill.revision, book.no_vector_key),
        )
        if db.changes():
            book.pending_count -= 1
            book.count_vector(key, 1)
            outcome.effect.filled.append((fill.position, fill.vector, key))
    if outcome.effect.filled:
        book.dimension = dimension
        ledger.note(book)
    outcome.info = book.info()
    return outcome


def select_pending(db: Connection, uid: int, after_position: int, limit: int) -> tuple[list[Row], int]:
    """Return rows of ITEM_COLUMNS of pending items, and the key below which items have no vector."""
    found = db.execute("SELECT vector_epoch, moving FROM namespaces WHERE uid = ?", (uid,)).fetchone()
    if found is None:
        return [], 0
    epoch, moving = found
    least = vector_key(epoch, 0)
    # Items written as pending have an index; finding the others scans every row.
    condition = f"vector_revision < {least}" if moving else "vector_revision < 0"
    rows = db.execute(
        f"SELECT {ITEM_COLUMNS} FROM items WHERE key > ? AND key <= ? AND {condition} ORDER BY key LIMIT ?",
        (key_of(uid, after_position), key_of(uid, POSITION_MAX), limit),
    ).fetchall()
    return rows, least
