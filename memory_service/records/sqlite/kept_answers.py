"""Applied requests in the database, with their receipts and answers; see `rules/requests.py`."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from memory_service.data_model import ChangeType, Receipt, RequestKey
from memory_service.records.rules.requests import (
    STATES,
    answers_since,
    kept_form,
    of_item,
    of_state,
    replayed,
    subjects,
)
from memory_service.records.sqlite.connection import Connection
from memory_service.records.sqlite.erasure import NO_NAMESPACE, mark_erased
from memory_service.records.sqlite.schema import key_of
from memory_service.runtime.clock import now_us

_FIND_REQUEST = "SELECT digest, receipt FROM requests WHERE uid = ? AND id = ?"
# Finds the description of the state that a revision saved, whether that version is current or kept.
_FIND_DESCRIPTION = (
    "WITH saved AS (SELECT subject AS key FROM changes WHERE key = :change AND type = :type)"
    " SELECT description FROM states JOIN saved USING (key) WHERE uid = :uid AND version = :version"
    " UNION ALL"
    " SELECT description FROM state_history JOIN saved USING (key) WHERE uid = :uid AND version = :version"
)
_AFTER_STATES = "state;"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Receipt).decode


def keep_receipt(db: Connection, uid: int, request: RequestKey, receipt: Receipt) -> None:
    """Keep the receipt of a request, with its answer, if any."""
    if request.complete is not None:
        request.complete(receipt)
    now, answer = now_us(), receipt.answer
    db.execute(
        "INSERT INTO requests (uid, id, digest, receipt, time_us) VALUES (?, ?, ?, ?, ?)",
        (uid, request.id, request.digest, _encode(kept_form(receipt)).decode(), now),
    )
    if answer is None:
        return
    db.execute(
        "INSERT INTO answers (uid, request, whole, time_us) VALUES (?, ?, ?, ?)",
        (uid, request.id, answer.whole, now),
    )
    key = db.last_insert_rowid()
    db.executemany(
        "INSERT INTO told_of (uid, subject, answer) VALUES (?, ?, ?)",
        [(uid, subject, key) for subject in subjects(answer)],
    )


def find_receipt(db: Connection, uid: int, request: RequestKey) -> Receipt | None:
    """Return the receipt of an applied request, if any. Raises FailedPrecondition."""
    row = db.execute(_FIND_REQUEST, (uid, request.id)).fetchone()
    if row is None:
        return None
    receipt = replayed(request, row[0], _decode(row[1]))
    if receipt.version:
        saved = {"change": key_of(uid, receipt.revision), "type": int(ChangeType.STATE_SAVED), "uid": uid}
        found = db.execute(_FIND_DESCRIPTION, saved | {"version": receipt.version}).fetchone()
        receipt.description = found[0] if found else ""
    if receipt.answer is not None:
        whole = db.execute(
            "SELECT whole FROM answers WHERE uid = ? AND request = ?", (uid, request.id)
        ).fetchone()
        receipt.answer.whole = bytes(whole[0]) if whole else b""
    return receipt


def forget_told_of_item(db: Connection, uid: int, item_id: str) -> None:
    """Forget the answers that mention an item."""
    _forget_told(db, uid, of_item(item_id))


def forget_told_of_items(db: Connection, uid: int, item_ids: Iterable[str]) -> None:
    """Forget the answers that mention any of these items."""
    told = msgspec.json.encode([*map(of_item, item_ids)]).decode()
    db.execute(
        "DELETE FROM answers WHERE key IN (SELECT answer FROM told_of"
        " WHERE uid = ? AND subject IN (SELECT value FROM json_each(?)))",
        (uid, told),
    )


def forget_told_of_state(db: Connection, uid: int, key: str) -> None:
    """Forget the answers that mention a state."""
    _forget_told(db, uid, of_state(key))


def _forget_told(db: Connection, uid: int, subject: str) -> None:
    db.execute(
        "DELETE FROM answers WHERE key IN (SELECT answer FROM told_of WHERE uid = ? AND subject = ?)",
        (uid, subject),
    )


def forget_told_of_states(db: Connection, uid: int) -> None:
    """Forget the answers that mention any state of a namespace."""
    db.execute(
        "DELETE FROM answers WHERE key IN"
        " (SELECT answer FROM told_of WHERE uid = ? AND subject >= ? AND subject < ?)",
        (uid, STATES, _AFTER_STATES),
    )


def forget_answers(db: Connection, uid: int) -> None:
    """Forget all answers of a namespace."""
    db.execute("DELETE FROM answers WHERE uid = ?", (uid,))


def forget_requests(db: Connection, before_us: int, history_before_us: int | None) -> None:
    """Forget requests and answers older than a time, and answers older than the kept history."""
    db.execute("DELETE FROM requests WHERE time_us < ?", (before_us,))
    before = db.total_changes()
    db.execute("DELETE FROM answers WHERE time_us < ?", (answers_since(before_us, history_before_us),))
    if db.total_changes() > before:
        mark_erased(db, NO_NAMESPACE)
