"""Items, states, namespaces and held writes as rows, with both directions side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memory_service.data_model import HeldWrite, Item, ItemWrite, NamespaceInfo, RequestKey, StateEntry
from memory_service.records import stored_values
from memory_service.records.postgres.database import Row
from memory_service.records.stored_values import (
    encode_provenance,
    provenance_of,
    settings_of,
    texts_of,
    vector_bytes,
)

ITEM_COLUMNS = (
    *("position", "id", "revision", "session_id", "create_us", "update_us", "expire_us", "labels"),
    *("metadata", "content", "vector_key", "facet", "importance", "provenance", "ttl_us"),
)
STATE_COLUMNS = (
    *("key", "version", "create_us", "update_us", "expire_us", "description", "revision", "value"),
    "provenance",
)
NAMESPACE_COLUMNS = (
    *("name", "uid", "revision", "item_count", "state_count", "embedded_count", "dimension", "model"),
    *("create_us", "pending_count", "vector_epoch", "settings"),
)
HELD_COLUMNS = (
    *("id", "reason", "body", "held_us", "expire_us", "writer", "credential_id", "request_id", "digest"),
)

# By pairs: separate conditions for parts and names would scan every namespace of a part.
OF_NAMES = (
    "FROM unnest(%s::int[], %s::text[]) w(part, name)"
    " JOIN $.namespaces n ON n.part = w.part AND n.name = w.name"
)


def columns_of(table: str, columns: Sequence[str]) -> str:
    """Return columns as selected from a table or its alias."""
    return ", ".join(f"{table}.{name}" for name in columns)


def text_in(text: str) -> str:
    """Return a text in stored form: PostgreSQL does not accept U+0000. Order and prefixes are preserved."""
    if "\x00" in text or "\x01" in text:
        return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")
    return text


def text_of(kept: str) -> str:
    """Return the text for a stored form."""
    if "\x01" in kept:
        return kept.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")
    return kept


class ItemRow(NamedTuple):
    """A stored version of an item, in the order of the columns below."""

    position: int
    id: str
    revision: int
    session_id: str
    create_us: int
    update_us: int
    expire_us: int | None
    labels: str | None
    metadata: str | None
    content: str
    facet: str | None
    kind: int
    importance: float | None
    provenance: str | None
    ttl_us: int | None
    terms: bytes
    vector_key: int
    embedding: bytes | None
    nbytes: int


class StateRow(NamedTuple):
    """A stored version of a state."""

    key: str
    version: int
    create_us: int
    update_us: int
    expire_us: int | None
    description: str
    revision: int
    value: str
    provenance: str | None
    nbytes: int


def size(text: str | None) -> int:
    """Return the bytes of a text in UTF-8."""
    return 0 if text is None else len(text) if text.isascii() else len(text.encode())


def item_row(write: ItemWrite, terms: bytes, vector_key: int) -> ItemRow:
    """Return the row of an item whose revision and position are set."""
    item = write.item
    texts = texts_of(item)
    labels, metadata, content, facet, provenance = texts
    counted = (item.id, item.session_id, *texts)
    return ItemRow(
        item.position, text_in(item.id), item.revision, text_in(item.session_id), item.create_us,
        item.update_us, item.expire_us, labels, metadata, content, facet, int(item.kind), item.importance,
        provenance, item.ttl_us, terms, vector_key, vector_bytes(item.embedding), sum(map(size, counted)),
    )  # fmt: skip


def item_of(row: Row, no_vector_key: int) -> Item:
    """Return the item in a row of ITEM_COLUMNS, with the embedding as an optional last column.

    Only keys above `no_vector_key` have a vector.
    """
    item = stored_values.item_of(row, no_vector_key)
    item.id, item.session_id = text_of(item.id), text_of(item.session_id)
    return item


def state_row(entry: StateEntry) -> StateRow:
    """Return the row of a state."""
    value, provenance = entry.value_json.decode(), encode_provenance(entry.provenance)
    nbytes = len(entry.value_json) + sum(map(size, (entry.key, entry.description, provenance)))
    return StateRow(
        text_in(entry.key), entry.version, entry.create_us, entry.update_us, entry.expire_us,
        text_in(entry.description), entry.revision, value, provenance, nbytes,
    )  # fmt: skip


def state_of(row: Row) -> StateEntry:
    """Return the state in a row of STATE_COLUMNS, or of truncated ones, which end with the value's size."""
    key, version, create_us, update_us, expire_us, description, revision, value, provenance = row[:9]
    encoded = value.encode()
    return StateEntry(
        text_of(key), encoded, version, create_us, update_us, expire_us,
        row[9] if len(row) > 9 else len(encoded), text_of(description), revision, provenance_of(provenance),
    )  # fmt: skip


def namespace_of(row: Row) -> NamespaceInfo:
    """Return the namespace in a row of NAMESPACE_COLUMNS."""
    name, uid, revision, items, states, embedded, dimension, model, create_us, pending, epoch, settings = row
    return NamespaceInfo(
        text_of(name), uid, revision, items, states, embedded, dimension, text_of(model), create_us, pending,
        epoch, settings_of(settings),
    )  # fmt: skip


def held_row(held: HeldWrite) -> Row:
    """Return the values of HELD_COLUMNS."""
    request = held.request
    return (
        text_in(held.id), text_in(held.reason), held.body, held.held_us, held.expire_us,
        text_in(held.writer), text_in(held.credential_id), text_in(request.id) if request else None,
        request.digest if request else None,
    )  # fmt: skip


def held_of(row: Row) -> HeldWrite:
    """Return the held write in a row of HELD_COLUMNS."""
    held_id, reason, body, held_us, expire_us, writer, credential_id, request_id, digest = row
    request = None if request_id is None else RequestKey(text_of(request_id), bytes(digest))
    return HeldWrite(
        text_of(held_id), text_of(reason), bytes(body), held_us, expire_us, text_of(writer),
        text_of(credential_id), request,
    )  # fmt: skip
