"""Reading the columns of a view that are made when they are asked for out of the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from memory_service.data_model import UNATTRIBUTED, Provenance, SourceKind, source_of
from memory_service.indexes.value_column import Value
from memory_service.indexes.value_columns import ReadColumns, new_column, source_name, value_at
from memory_service.predicates import Field, FieldName
from memory_service.records.sqlite.connection import Connection, Row, translated
from memory_service.records.sqlite.schema import POSITION_MAX, keys_of

_ROWS_AT_ONCE = 2048


class _Speaker(msgspec.Struct):
    """Of a content what tells who speaks; the rest is passed over."""

    type: str
    role: str | msgspec.UnsetType = msgspec.UNSET
    name: str | msgspec.UnsetType | None = msgspec.UNSET


_SOURCE_PARTS = (
    "json_array(provenance ->> 'source', facet ->> 'kind', content ->> 'type', content ->> 'role')"
)
_SOURCES = {
    FieldName.ID: "id",
    FieldName.UPDATE_TIME: "update_us",
    FieldName.IMPORTANCE: "importance",
    FieldName.ROLE: "content",
    FieldName.NAME: "content",
    FieldName.LABELS: "labels",
    FieldName.METADATA: "metadata",
    FieldName.WRITER: "provenance",
    FieldName.CREDENTIAL: "provenance",
    FieldName.TRUST: "provenance",
    FieldName.SOURCE: _SOURCE_PARTS,
}
_DECODERS: dict[str, Callable[[Any], Any]] = {
    "id": lambda stored: stored,
    "update_us": lambda stored: stored,
    "importance": lambda stored: stored,
    "content": msgspec.json.Decoder(_Speaker).decode,
    "labels": msgspec.json.Decoder(dict[str, str]).decode,
    "metadata": msgspec.json.Decoder(dict).decode,
    "provenance": msgspec.json.Decoder(Provenance).decode,
    _SOURCE_PARTS: msgspec.json.Decoder(tuple[int | None, int | None, str, str | None]).decode,
}


def read_columns(connection: Connection, uid: int, fields: Sequence[Field]) -> ReadColumns:
    """Return the columns of some fields, and of which moment they are.

    Those of a namespace that is gone are of a revision that is never reached.
    """
    with translated():
        connection.execute("BEGIN")
        try:
            row = connection.execute("SELECT revision FROM namespaces WHERE uid = ?", (uid,)).fetchone()
            return columns_of(connection, uid, fields, row[0] if row else POSITION_MAX)
        finally:
            connection.execute("COMMIT")


def columns_of(connection: Connection, uid: int, fields: Sequence[Field], revision: int) -> ReadColumns:
    """Return the columns of some fields. Call inside a transaction, at this revision of the namespace."""
    sources = list(dict.fromkeys(_SOURCES[wanted.name] for wanted in fields))
    keys: list[int] = []
    columns = {wanted: new_column(wanted) for wanted in fields}
    rows = connection.execute(
        f"SELECT key, {', '.join(sources)} FROM items WHERE key BETWEEN ? AND ? ORDER BY key", keys_of(uid)
    )
    for some in _by_column(rows):
        keys.extend(some[0])
        for source, stored in zip(sources, some[1:], strict=True):
            decode = _DECODERS[source]
            decoded = [None if value is None else decode(value) for value in stored]
            for wanted, column in columns.items():
                if _SOURCES[wanted.name] == source:
                    column.extend(_value(value, wanted) for value in decoded)
    return ReadColumns(revision, np.array(keys, np.int64) & POSITION_MAX, columns)


def _by_column(rows: Iterator[Row]) -> Iterator[tuple[Any, ...]]:
    """Return rows some at a time, as columns."""
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        yield tuple(zip(*some, strict=True))


def _value(decoded: Any, wanted: Field) -> Value:
    match wanted.name:
        case FieldName.IMPORTANCE:
            return msgspec.UNSET if decoded is None else decoded
        case FieldName.ROLE:
            return decoded.role if decoded.type == "chat_message" else msgspec.UNSET
        case FieldName.NAME:
            known = decoded.type == "chat_message" and decoded.name is not None
            return decoded.name if known else msgspec.UNSET
        case FieldName.WRITER:
            return (decoded or UNATTRIBUTED).writer or msgspec.UNSET
        case FieldName.CREDENTIAL:
            return (decoded or UNATTRIBUTED).credential_id or msgspec.UNSET
        case FieldName.TRUST:
            return (decoded or UNATTRIBUTED).trust
        case FieldName.SOURCE:
            said, kind, content_type, role = decoded
            return source_name(SourceKind(said) if said else source_of(kind or 0, content_type, role))
        case FieldName.LABELS | FieldName.METADATA:
            return value_at(decoded, wanted.path)
    return decoded
