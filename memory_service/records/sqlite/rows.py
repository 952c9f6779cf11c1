"""Items and states as rows of the database, with both directions side by side."""

from __future__ import annotations

from memory_service.data_model import TIME_US_MAX, Item, ItemWrite, NamespaceInfo, StateEntry
from memory_service.records import stored_values
from memory_service.records.contents import NO_CONTENT
from memory_service.records.sqlite.connection import Row
from memory_service.records.sqlite.schema import POSITION_MAX, key_of
from memory_service.records.stored_values import provenance_of, settings_of, texts_of, vector_bytes

ITEM_COLUMNS = (
    "key, id, revision, session_id, create_us, update_us, expire_us, labels, metadata, content,"
    " vector_revision, facet, importance, provenance, ttl_us"
)
INSERT_ITEM = (
    "INSERT INTO items (key, uid, id, revision, session_id, create_us, update_us, expire_us, labels,"
    " metadata, content, facet, importance, provenance, ttl_us, terms, vector_revision, embedding)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
UPDATE_ITEM = (
    "UPDATE items SET revision=?, session_id=?, create_us=?, update_us=?, expire_us=?, labels=?,"
    " metadata=?, content=?, facet=?, importance=?, provenance=?, ttl_us=?, terms=?, vector_revision=?,"
    " embedding=?"
    " WHERE key=?"
)
UPDATE_ITEM_KEEPING_VECTOR = (
    "UPDATE items SET revision=?, session_id=?, create_us=?, update_us=?, expire_us=?, labels=?,"
    " metadata=?, content=?, facet=?, importance=?, provenance=?, ttl_us=?, terms=? WHERE key=?"
)
RECORD_USES = "UPDATE items SET use_count = use_count + ? WHERE key = ? RETURNING use_count"
# An item of an earlier release has no time to live: from then on it has that of its version.
REFRESH_EXPIRY = (
    "UPDATE items SET ttl_us = ifnull(ttl_us, expire_us - update_us),"
    f" expire_us = max(expire_us, min(?1 + ifnull(ttl_us, expire_us - update_us), {TIME_US_MAX}))"
    " WHERE key IN (SELECT value FROM json_each(?2)) AND expire_us > ?1 RETURNING key, expire_us"
)
# Without the content.
OUTLINE_COLUMNS = ITEM_COLUMNS.replace("content", f"'{NO_CONTENT}'")
STATE_COLUMNS = "key, version, create_us, update_us, expire_us, description, revision, value, provenance"
NAMESPACE_COLUMNS = (
    "name, uid, revision, item_count, state_count, embedded_count, dimension, model, create_us,"
    " pending_count, vector_epoch, settings"
)


def _shared(write: ItemWrite, terms: bytes) -> Row:
    item, texts = write.item, texts_of(write.item)
    return (
        item.revision,
        item.session_id,
        item.create_us,
        item.update_us,
        item.expire_us,
        texts.labels,
        texts.metadata,
        texts.content,
        texts.facet,
        item.importance,
        texts.provenance,
        item.ttl_us,
        terms,
    )


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
    """Return the item in a row of ITEM_COLUMNS, with the embedding as an optional last column.

    Only keys above `no_vector_key` have a vector.
    """
    item = stored_values.item_of(row, no_vector_key)
    item.position &= POSITION_MAX
    return item


def state_of(row: Row) -> StateEntry:
    """Return the state in a row of STATE_COLUMNS, or of truncated ones, which end with the value's size."""
    key, version, create_us, update_us, expire_us, description, revision, value, provenance = row[:9]
    encoded = value.encode()
    return StateEntry(
        key, encoded, version, create_us, update_us, expire_us, row[9] if len(row) > 9 else len(encoded),
        description, revision, provenance_of(provenance),
    )  # fmt: skip


def shortened_state_columns(value_chars: int) -> str:
    """Return STATE_COLUMNS with the value truncated to this many characters, and its size."""
    value = f"substr(value, 1, {value_chars:d})" if value_chars else "''"
    return STATE_COLUMNS.replace("value", value) + ", octet_length(value)"


def namespace_of(row: Row) -> NamespaceInfo:
    """Return the namespace in a row of NAMESPACE_COLUMNS."""
    return NamespaceInfo(*(*row[:-1], settings_of(row[-1])))
