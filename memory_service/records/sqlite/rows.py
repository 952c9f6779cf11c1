"""Items and states as rows of the database, both directions side by side."""

from __future__ import annotations

import msgspec
import numpy as np

from memory_service.data_model import (
    Content,
    Facet,
    Item,
    ItemWrite,
    NamespaceInfo,
    Provenance,
    StateEntry,
    Vector,
)
from memory_service.records.sqlite.connection import Row
from memory_service.records.sqlite.schema import POSITION_MAX, key_of

_json = msgspec.json.Encoder().encode
_content = msgspec.json.Decoder(Content).decode
_object = msgspec.json.Decoder(dict).decode
_facet = msgspec.json.Decoder(Facet).decode
_provenance = msgspec.json.Decoder(Provenance).decode

ITEM_COLUMNS = (
    "key, id, revision, session_id, create_us, update_us, expire_us, labels, metadata, content,"
    " vector_revision, facet, importance, provenance"
)
INSERT_ITEM = (
    "INSERT INTO items (key, uid, id, revision, session_id, create_us, update_us, expire_us, labels,"
    " metadata, content, facet, importance, provenance, terms, vector_revision, embedding)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
UPDATE_ITEM = (
    "UPDATE items SET revision=?, session_id=?, create_us=?, update_us=?, expire_us=?, labels=?,"
    " metadata=?, content=?, facet=?, importance=?, provenance=?, terms=?, vector_revision=?, embedding=?"
    " WHERE key=?"
)
UPDATE_ITEM_KEEPING_VECTOR = (
    "UPDATE items SET revision=?, session_id=?, create_us=?, update_us=?, expire_us=?, labels=?,"
    " metadata=?, content=?, facet=?, importance=?, provenance=?, terms=? WHERE key=?"
)
RECORD_USES = "UPDATE items SET use_count = use_count + ? WHERE key = ? RETURNING use_count"
STATE_COLUMNS = "key, version, create_us, update_us, expire_us, description, revision, value, provenance"
NAMESPACE_COLUMNS = (
    "name, uid, revision, item_count, state_count, embedded_count, dimension, model, create_us,"
    " pending_count, vector_epoch"
)


def _shared(write: ItemWrite, terms: bytes) -> Row:
    item = write.item
    return (
        item.revision,
        item.session_id,
        item.create_us,
        item.update_us,
        item.expire_us,
        _json(item.labels).decode() if item.labels else None,
        None if item.metadata is None else _json(item.metadata).decode(),
        _json(item.content).decode(),
        None if item.facet is None else _json(item.facet).decode(),
        item.importance,
        encode_provenance(item.provenance),
        terms,
    )


def encode_provenance(provenance: Provenance | None) -> str | None:
    """Return a provenance as it is stored."""
    return None if provenance is None else _json(provenance).decode()


def provenance_of(stored: str | None) -> Provenance | None:
    """Return a provenance that is stored."""
    return None if stored is None else _provenance(stored)


def vector_bytes(vector: Vector | None) -> bytes | None:
    """Return a vector as little-endian float32."""
    return None if vector is None else np.asarray(vector, "<f4").tobytes()


def item_row(uid: int, write: ItemWrite, terms: bytes, vector_key: int) -> Row:
    """Return the values for INSERT_ITEM."""
    item = write.item
    key = key_of(uid, item.position)
    return (key, uid, item.id, *_shared(write, terms), vector_key, vector_bytes(item.embedding))


def item_update_row(uid: int, write: ItemWrite, terms: bytes, vector_key: int) -> Row:
    """Return the values for UPDATE_ITEM, or for UPDATE_ITEM_KEEPING_VECTOR."""
    key = key_of(uid, write.item.position)
    if write.keep_vector:
        return (*_shared(write, terms), key)
    return (*_shared(write, terms), vector_key, vector_bytes(write.item.embedding), key)


def item_of(row: Row, no_vector_key: int) -> Item:
    """Return the item of a row of ITEM_COLUMNS, with the embedding as an optional last column.

    Only vectors of keys above `no_vector_key` are there.
    """
    (
        key, item_id, revision, session_id, create_us, update_us, expire_us, labels, metadata, content,
        vector, facet, importance, provenance,
    ) = row[:14]  # fmt: skip
    return Item(
        id=item_id,
        session_id=session_id,
        content=_content(content),
        create_us=create_us,
        update_us=update_us,
        expire_us=expire_us,
        labels=_object(labels) if labels else {},
        metadata=None if metadata is None else _object(metadata),
        embedding=np.frombuffer(row[14], "<f4") if len(row) > 14 and vector > no_vector_key else None,
        embedded=vector > no_vector_key,
        facet=None if facet is None else _facet(facet),
        importance=importance,
        provenance=provenance_of(provenance),
        revision=revision,
        position=key & POSITION_MAX,
    )


def state_of(row: Row) -> StateEntry:
    """Return the state of a row of STATE_COLUMNS, or of shortened ones, which end with its size in bytes."""
    key, version, create_us, update_us, expire_us, description, revision, value, provenance = row[:9]
    encoded = value.encode()
    return StateEntry(
        key, encoded, version, create_us, update_us, expire_us, row[9] if len(row) > 9 else len(encoded),
        description, revision, provenance_of(provenance),
    )  # fmt: skip


def shortened_state_columns(value_chars: int) -> str:
    """Return STATE_COLUMNS with so many characters of the value, and its size."""
    value = f"substr(value, 1, {value_chars:d})" if value_chars else "''"
    return STATE_COLUMNS.replace("value", value) + ", octet_length(value)"


def namespace_of(row: Row) -> NamespaceInfo:
    """Return the namespace of a row of NAMESPACE_COLUMNS."""
    return NamespaceInfo(*row)
