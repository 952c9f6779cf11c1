"""Applies writes of whole namespaces to the database, and removes expired data."""

from __future__ import annotations

from memory_service.data_model import (
    ChangeType,
    NamespaceSettings,
    Receipt,
    RequestKey,
)
from memory_service.errors import NotFound
from memory_service.records.rules.settings import next_settings
from memory_service.records.sqlite.connection import Connection
from memory_service.records.sqlite.history import forget_history, prune
from memory_service.records.sqlite.item_writes import StoredItem, expire_item
from memory_service.records.sqlite.kept_answers import forget_answers, forget_requests
from memory_service.records.sqlite.ledger import Ledger, Outcome, earlier, finish
from memory_service.records.sqlite.quarantine_writes import forget_expired, forget_held
from memory_service.records.sqlite.schema import keys_of
from memory_service.records.sqlite.state_writes import empty_states, expire_state
from memory_service.records.stored_values import encode_settings, settings_of
from memory_service.runtime.failpoints import reach


def reset(db: Connection, ledger: Ledger, namespace: str, request: RequestKey | None) -> Outcome:
    """Empty a namespace; see `NamespaceStore.reset`."""
    book = ledger.find(db, namespace)
    if (before := earlier(db, book, request)) is not None:
        return before
    began = book is None
    book = ledger.find_or_begin(db, namespace)
    receipt = Receipt(0, removed_count=book.item_count, removed_state_count=empty_states(db, ledger, book))
    keys = keys_of(book.uid)
    db.execute("DELETE FROM items WHERE key BETWEEN ? AND ?", keys)
    db.execute("DELETE FROM parents WHERE parent BETWEEN ? AND ?", keys)
    db.execute("DELETE FROM changes WHERE key BETWEEN ? AND ?", keys)
    db.execute("DELETE FROM snapshots WHERE uid = ?", (book.uid,))
    forget_history(db, book)
    forget_held(db, book)
    forget_answers(db, book.uid)
    book.item_count = book.embedded_count = book.pending_count = book.dimension = 0
    book.model = ""
    reach("reset.after_statements")
    ledger.change(db, book, ChangeType.RESET, "")
    return finish(db, book, request, Outcome(receipt, began=began, emptied=True))


def save_settings(
    db: Connection, ledger: Ledger, namespace: str, settings: NamespaceSettings, expected_version: int
) -> Outcome:
    """Save the settings of a namespace; see `NamespaceStore.save_settings`."""
    book = ledger.find(db, namespace)
    current = settings_of(book.settings if book else None)
    saved = next_settings(namespace, settings, expected_version, current)
    began = book is None
    book = ledger.find_or_begin(db, namespace)
    book.settings = encode_settings(saved)
    ledger.note(book)
    return finish(db, book, None, Outcome(Receipt(0), began=began))


def delete_namespace(db: Connection, ledger: Ledger, namespace: str) -> Outcome:
    """Remove a namespace; see `NamespaceStore.delete_namespace`."""
    book = ledger.find(db, namespace)
    if book is None:
        raise NotFound.namespace(namespace)
    ledger.erase(db, book)
    keys = keys_of(book.uid)
    db.execute("DELETE FROM items WHERE key BETWEEN ? AND ?", keys)
    db.execute("DELETE FROM parents WHERE parent BETWEEN ? AND ?", keys)
    db.execute("DELETE FROM changes WHERE key BETWEEN ? AND ?", keys)
    db.execute("DELETE FROM snapshots WHERE uid = ?", (book.uid,))
    db.execute("DELETE FROM states WHERE uid = ?", (book.uid,))
    forget_history(db, book)
    forget_held(db, book)
    forget_answers(db, book.uid)
    db.execute("DELETE FROM requests WHERE uid = ?", (book.uid,))
    db.execute("DELETE FROM namespaces WHERE uid = ?", (book.uid,))
    ledger.forget(namespace)
    receipt = Receipt(book.revision, removed_count=book.item_count, removed_state_count=book.state_count)
    return Outcome(receipt, info=book.info())


def remove_expired(
    db: Connection,
    ledger: Ledger,
    at_us: int,
    forget_requests_before_us: int,
    history_before_us: int,
    limit: int,
) -> list[Outcome]:
    """Remove expired data; return an outcome for each namespace that lost an item or a state."""
    prune(db, history_before_us, limit)
    forget_expired(db, at_us, limit)
    forget_requests(db, forget_requests_before_us, history_before_us if ledger.keeps_history else None)
    reach("sweep.after_requests")
    outcomes: dict[str, Outcome] = {}
    items = db.execute(
        "SELECT n.name, i.id, i.key, i.revision, i.expire_us, i.vector_revision FROM items i"
        " JOIN namespaces n USING (uid) WHERE i.expire_us <= ? ORDER BY i.expire_us LIMIT ?",
        (at_us, limit),
    ).fetchall()
    for name, item_id, *row in items:
        book = ledger.find_or_begin(db, name)
        outcome = outcomes.setdefault(name, Outcome(Receipt(0)))
        outcome.effect.removed.append(expire_item(db, ledger, book, item_id, StoredItem(*row)))
        outcome.receipt.removed_count += 1
        reach("sweep.after_item")
    states = db.execute(
        "SELECT n.name, s.key, s.version FROM states s JOIN namespaces n USING (uid)"
        " WHERE s.expire_us <= ? ORDER BY s.expire_us LIMIT ?",
        (at_us, limit - len(items)),
    ).fetchall()
    for name, key, version in states:
        book = ledger.find_or_begin(db, name)
        expire_state(db, ledger, book, key, version)
        outcomes.setdefault(name, Outcome(Receipt(0))).receipt.removed_state_count += 1
        reach("sweep.after_state")
    for name, outcome in outcomes.items():
        finish(db, ledger.find_or_begin(db, name), None, outcome)
    return list(outcomes.values())
