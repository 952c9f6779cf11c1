"""Reads all rows of a data folder that no server uses, or of a backup, for another store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memory_service.data_key import DataKey
from memory_service.data_model import Receipt
from memory_service.errors import StorageFull, Unavailable
from memory_service.records.base import CannotOpen
from memory_service.records.folder_lock import locked_folder
from memory_service.records.sqlite.backup_checks import MANIFEST, RECORDS
from memory_service.records.sqlite.connection import (
    Connection,
    Row,
    connect,
    hold_view,
    open_unchanged,
    rollback,
    translated,
)
from memory_service.records.sqlite.encryption import check_key
from memory_service.records.sqlite.schema import FORMAT, POSITION_MAX, keys_of

_OF_KEYS = "BETWEEN :low AND :high"
_NUMBER = f"{{}}.key & {POSITION_MAX}"
# A receipt is stored as an array of its fields.
_SAVED, _REVISION = (
    f"json_extract(r.receipt, '$[{Receipt.__struct_fields__.index(field)}]')"
    for field in ("version", "revision")
)
_ITEM_BYTES = "id session_id labels metadata content facet provenance"
_STATE_BYTES = "key value description provenance"


def _bytes(columns: str) -> str:
    return " + ".join(f"coalesce(octet_length({name}), 0)" for name in columns.split())


@dataclass(frozen=True)
class SourceTable:
    """How to read a table: the target's column names, each with its SQL expression, and the FROM clause."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rest: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self.columns)

    @property
    def statement(self) -> str:
        """The statement that selects the rows of a namespace, always in the same order."""
        return f"SELECT {', '.join(expression for _, expression in self.columns)} FROM {self.rest}"


def _plain(names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, name) for name in names.split())


_VERSION = "session_id create_us update_us expire_us labels metadata content facet"
_WRITTEN = _plain("importance provenance ttl_us terms")
TABLES = (
    SourceTable(
        "items",
        (
            *(("position", _NUMBER.format("items")), *_plain(f"id revision {_VERSION}")),
            # The migration takes the kind from the facet.
            *(("kind", "facet"), *_WRITTEN, ("vector_key", "vector_revision"), ("embedding", "embedding")),
            ("nbytes", _bytes(_ITEM_BYTES)),
        ),
        f"items WHERE key {_OF_KEYS} ORDER BY key",
    ),
    SourceTable(
        "uses",
        (("position", _NUMBER.format("items")), ("count", "use_count")),
        f"items WHERE key {_OF_KEYS} AND use_count > 0 ORDER BY key",
    ),
    SourceTable(
        "item_history",
        (
            *(("position", _NUMBER.format("item_history")), *_plain(f"revision replaced_us {_VERSION}")),
            *(("kind", "facet"), *_WRITTEN, ("vector_key", "vector_revision"), ("embedding", "embedding")),
            ("nbytes", _bytes(_ITEM_BYTES.removeprefix("id "))),
        ),
        f"item_history WHERE key {_OF_KEYS} ORDER BY key, revision",
    ),
    SourceTable(
        "states",
        (
            *_plain("key version create_us update_us expire_us description revision value provenance"),
            ("nbytes", _bytes(_STATE_BYTES)),
        ),
        "states WHERE uid = :uid ORDER BY key",
    ),
    SourceTable(
        "state_history",
        (
            *_plain("key version replaced_us create_us update_us expire_us description value provenance"),
            ("revision", "revision"),
        ),
        "state_history WHERE uid = :uid ORDER BY key, version",
    ),
    SourceTable(
        "changes",
        (("revision", _NUMBER.format("changes")), *_plain("type subject")),
        f"changes WHERE key {_OF_KEYS} ORDER BY key",
    ),
    SourceTable(
        "requests",
        (
            *(("id", "r.id"), ("digest", "r.digest"), ("receipt", "r.receipt"), ("whole", "a.whole")),
            # The state that the request saved, if any.
            *(("state_key", "c.subject"), ("state_version", f"nullif({_SAVED}, 0)")),
            ("time_us", "r.time_us"),
        ),
        "requests r LEFT JOIN answers a ON a.uid = r.uid AND a.request = r.id"
        f" LEFT JOIN changes c ON {_SAVED} > 0 AND c.type = :saved"
        f" AND c.key = :low + {_REVISION} WHERE r.uid = :uid ORDER BY r.id",
    ),
    SourceTable(
        "told_of",
        (("subject", "t.subject"), ("request", "a.request")),
        "told_of t JOIN answers a ON a.key = t.answer WHERE t.uid = :uid ORDER BY t.subject, a.request",
    ),
    SourceTable(
        "removals",
        (("revision", _NUMBER.format("removals")), *_plain("time_us writer credential_id")),
        f"removals WHERE key {_OF_KEYS} ORDER BY key",
    ),
    SourceTable(
        "quarantine",
        _plain("id reason body held_us expire_us writer credential_id request_id digest"),
        "quarantine WHERE uid = :uid ORDER BY id",
    ),
    SourceTable(
        "parents",
        (("parent", f"parent & {POSITION_MAX}"), ("child", f"child & {POSITION_MAX}")),
        f"parents WHERE parent {_OF_KEYS} ORDER BY parent, child",
    ),
)
"""All data of a namespace, except its own row and snapshots."""
NAMESPACE = _plain(
    "uid name revision item_count state_count embedded_count pending_count dimension model version_floor"
    " vector_epoch moving create_us settings"
)


class Source:
    """The rows, all as of one moment. Its methods raise Unavailable."""

    def __init__(self, connection: Connection, state_saved: int) -> None:
        self._connection = connection
        self._state_saved = state_saved

    def namespaces(self) -> Iterator[dict[str, int | str]]:
        """Yield the rows of namespaces, oldest first."""
        names = [name for name, _ in NAMESPACE]
        with translated():
            for row in self._connection.execute(f"SELECT {', '.join(names)} FROM namespaces ORDER BY uid"):
                yield dict(zip(names, row, strict=True))

    def rows(self, table: SourceTable, uid: int, after: int = 0) -> Iterator[Row]:
        """Yield a namespace's rows of a table, except the first `after`."""
        low, high = keys_of(uid)
        values = {"uid": uid, "low": low, "high": high, "saved": self._state_saved, "after": after}
        with translated():
            # Named values that a statement does not use are ignored.
            yield from self._connection.execute(f"{table.statement} LIMIT -1 OFFSET :after", values)


@contextmanager
def open_source(folder: Path, key: DataKey | None, state_saved: int) -> Iterator[Source]:
    """Open a data folder or a backup for reading only. Raises CannotOpen.

    No server can use the folder meanwhile. A backup may be on a read-only file system.
    """
    records = folder / RECORDS
    if not records.exists():
        raise CannotOpen(f"{folder} is not a data folder: it has no {RECORDS}")
    check_key(folder, records, key)
    secret = key.derive("records") if key else None
    try:
        # A backup on which a server was started is a data folder, with a log that must be read as well.
        if (folder / MANIFEST).exists() and not records.with_name(f"{RECORDS}-wal").exists():
            connection = open_unchanged(records, secret)
            try:
                yield _held(connection, folder, state_saved)
            finally:
                connection.close()
            return
        with locked_folder(folder):
            connection = connect(records, key=secret)
            try:
                yield _held(connection, folder, state_saved)
            finally:
                rollback(connection)
                connection.close()
    except (Unavailable, StorageFull, OSError) as error:
        raise CannotOpen(f"cannot read {records}: {error.__cause__ or error}") from error


def _held(connection: Connection, folder: Path, state_saved: int) -> Source:
    with translated():
        found = connection.pragma("user_version")
        if found != FORMAT:
            older = "start and stop a server of this release on it once, to migrate it"
            raise CannotOpen(
                f"{folder} has format {found}, but this release reads format {FORMAT}: "
                + (older if found < FORMAT else "use the release that wrote it or a newer one")
            )
        hold_view(connection)
    return Source(connection, state_saved)
