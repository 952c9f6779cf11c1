"""Reads the values of fields used by a predicate from rows, without building items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memory_service.data_model import UNATTRIBUTED, Provenance, SourceKind, source_of
from memory_service.indexes.value_column import Value
from memory_service.indexes.value_columns import source_name, value_at
from memory_service.predicates import Field, FieldName
from memory_service.records.sqlite.connection import Connection
from memory_service.records.sqlite.schema import POSITION_MAX, keys_of

_ROWS_AT_ONCE = 2048


class _Speaker(msgspec.Struct):
    """The part of a content that names the speaker; the rest is skipped."""

    type: str
    role: str | msgspec.UnsetType = msgspec.UNSET
    name: str | msgspec.UnsetType | None = msgspec.UNSET


_SOURCE_PARTS = (
    "json_array(provenance ->> 'source', facet ->> 'kind', content ->> 'type', content ->> 'role')"
)
_DATA = "CASE WHEN content ->> 'type' = 'data' THEN content -> 'data' END"
_SOURCES = {
    FieldName.ID: "id",
    FieldName.UPDATE_TIME: "update_us",
    FieldName.REVISION: "revision",
    FieldName.IMPORTANCE: "importance",
    FieldName.ROLE: "content",
    FieldName.NAME: "content",
    FieldName.LABELS: "labels",
    FieldName.METADATA: "metadata",
    FieldName.DATA: _DATA,
    FieldName.WRITER: "provenance",
    FieldName.CREDENTIAL: "provenance",
    FieldName.TRUST: "provenance",
    FieldName.SOURCE: _SOURCE_PARTS,
}
_DECODERS: dict[str, Callable[[Any], Any]] = {
    "content": msgspec.json.Decoder(_Speaker).decode,
    "labels": msgspec.json.Decoder(dict[str, str]).decode,
    "metadata": msgspec.json.Decoder(dict).decode,
    _DATA: msgspec.json.Decoder(dict).decode,
    "provenance": msgspec.json.Decoder(Provenance).decode,
    _SOURCE_PARTS: msgspec.json.Decoder(tuple[int | None, int | None, str, str | None]).decode,
}


def values(
    connection: Connection, uid: int, fields: Sequence[Field]
) -> Iterator[tuple[NDArray[np.int64], list[list[Value]]]]:
    """Yield positions, and for each field its values; see `Rows.values`."""
    sources = list(dict.fromkeys(_SOURCES[wanted.name] for wanted in fields))
    rows = connection.execute(
        f"SELECT key, {', '.join(sources)} FROM items WHERE key BETWEEN ? AND ? ORDER BY key", keys_of(uid)
    )
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        keys, *stored = zip(*some, strict=True)
        decoded = {}
        for source, column in zip(sources, stored, strict=True):
            decode = _DECODERS.get(source)
            decoded[source] = [value and decode(value) for value in column] if decode else column
        yield (
            np.array(keys, np.int64) & POSITION_MAX,
            [[_value(value, wanted) for value in decoded[_SOURCES[wanted.name]]] for wanted in fields],
        )


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
        case FieldName.LABELS | FieldName.METADATA | FieldName.DATA:
            return value_at(decoded, wanted.path)
    return decoded
