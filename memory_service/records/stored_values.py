"""Values of items, states and namespaces as databases keep them: text, JSON, and vectors as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from memory_service.data_model import (
    NO_SETTINGS,
    Facet,
    Item,
    ItemKind,
    ItemWrite,
    LabelKey,
    NamespaceInfo,
    NamespaceSettings,
    Provenance,
    Vector,
    index_labels,
)
from memory_service.records.contents import content_of, encode_content
from memory_service.records.rules.vectors import vector_key

_json = msgspec.json.Encoder().encode
_object = msgspec.json.Decoder(dict).decode
_labels = msgspec.json.Decoder(dict[str, str]).decode
_facet = msgspec.json.Decoder(Facet).decode
_provenance = msgspec.json.Decoder(Provenance).decode
_settings = msgspec.json.Decoder(NamespaceSettings).decode


class ItemTexts(NamedTuple):
    """The fields of an item that are kept as JSON."""

    labels: str | None
    metadata: str | None
    content: str
    facet: str | None
    provenance: str | None


def texts_of(item: Item) -> ItemTexts:
    """Encode the fields of an item that are kept as JSON."""
    return ItemTexts(
        _json(item.labels).decode() if item.labels else None,
        None if item.metadata is None else _json(item.metadata).decode(),
        encode_content(item).decode(),
        None if item.facet is None else _json(item.facet).decode(),
        encode_provenance(item.provenance),
    )


def item_of(row: Sequence[Any], no_vector_key: int) -> Item:
    """Decode an item from its position, id, revision, session id, times of creation, update and expiry,
    labels, metadata, content, vector key, facet, importance, provenance and time to live, and optionally its
    embedding.

    Only vectors whose keys are above `no_vector_key` exist.
    """
    (
        position, item_id, revision, session_id, create_us, update_us, expire_us, labels, metadata, content,
        vector, facet, importance, provenance, ttl_us,
    ) = row[:15]  # fmt: skip
    read, index = content_of(content)
    return Item(
        id=item_id,
        session_id=session_id,
        content=read,
        create_us=create_us,
        update_us=update_us,
        expire_us=expire_us,
        labels=_object(labels) if labels else {},
        metadata=None if metadata is None else _object(metadata),
        embedding=vector_of(row[15]) if len(row) > 15 and vector > no_vector_key else None,
        embedded=vector > no_vector_key,
        facet=None if facet is None else _facet(facet),
        importance=importance,
        provenance=provenance_of(provenance),
        ttl_us=ttl_us,
        index=index,
        revision=revision,
        position=position,
    )


def described(
    labels: Sequence[str | None], facets: Sequence[str | None]
) -> tuple[dict[int, dict[LabelKey, str]], NDArray[np.int8]]:
    """Decode the labels of rows as they are indexed, by place in the sequence, and the kinds of all rows."""
    kinds = np.full(len(labels), ItemKind.PLAIN, np.int8)
    indexed: dict[int, dict[LabelKey, str]] = {}
    if any(labels) or any(facets):
        for at, (encoded, encoded_facet) in enumerate(zip(labels, facets, strict=True)):
            facet = _facet(encoded_facet) if encoded_facet else None
            if facet:
                kinds[at] = facet.kind
            if facet or encoded:
                indexed[at] = index_labels(_labels(encoded) if encoded else {}, facet)
    return indexed, kinds


def encode_provenance(provenance: Provenance | None) -> str | None:
    """Encode a provenance as JSON."""
    return None if provenance is None else _json(provenance).decode()


def provenance_of(stored: str | None) -> Provenance | None:
    """Decode a provenance."""
    return None if stored is None else _provenance(stored)


def encode_settings(settings: NamespaceSettings) -> str:
    """Encode the settings of a namespace as JSON."""
    return _json(settings).decode()


@lru_cache(maxsize=4096)
def settings_of(stored: str | None) -> NamespaceSettings:
    """Decode the settings of a namespace; None: there are none."""
    return NO_SETTINGS if stored is None else _settings(stored)


def set_default_expiry(write: ItemWrite, stored: str | None) -> None:
    """Set the expiry of an item to be added, as the settings of its namespace say."""
    if write.default_ttl and stored is not None:
        ttl_us = settings_of(stored).default_ttl_us
        write.item.expire_us = None if ttl_us is None else write.item.update_us + ttl_us


def vector_bytes(vector: Vector | None) -> bytes | None:
    """Encode a vector as little-endian float32."""
    return None if vector is None else np.asarray(vector, "<f4").tobytes()


def vector_of(stored: bytes | None) -> Vector | None:
    """Decode a vector; it shares the memory of the bytes."""
    return None if stored is None else np.frombuffer(stored, "<f4")


class NamespaceCounts:
    """Values computed from the row of a namespace; a subclass has the fields."""

    name: str
    uid: int
    revision: int
    item_count: int
    state_count: int
    embedded_count: int
    pending_count: int
    dimension: int
    model: str
    create_us: int
    vector_epoch: int
    settings: str | None
    """As stored."""

    @property
    def no_vector_key(self) -> int:
        """The key of an item without a vector. Pending vectors have lower keys, existing ones higher."""
        return vector_key(self.vector_epoch, 0)

    def count_vector(self, key: int, step: int) -> None:
        """Add (1) or subtract (-1) an item's vector key."""
        if key < self.no_vector_key:
            self.pending_count += step
        elif key > self.no_vector_key:
            self.embedded_count += step

    def info(self) -> NamespaceInfo:
        """Return the namespace as others may see it once this is committed."""
        return NamespaceInfo(
            self.name, self.uid, self.revision, self.item_count, self.state_count, self.embedded_count,
            self.dimension, self.model, self.create_us, self.pending_count, self.vector_epoch,
            settings_of(self.settings),
        )  # fmt: skip
