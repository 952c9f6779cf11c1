"""Conversion of provenance from and to protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_service.data_model import Item, Provenance, ProvenanceDraft, SourceKind
from memory_service.errors import InvalidArgument, LimitExceeded
from memory_service.limits import Limits
from memory_service.server.values import fill_time, to_us
from memory_service.v1 import memory_pb2 as pb


def to_sources(field: str, numbers: Sequence[int]) -> frozenset[SourceKind]:
    """Return the sources in a request."""
    return frozenset(_source(field, number) for number in set(numbers))


def to_trust(request: Any) -> tuple[float | None, frozenset[SourceKind] | None]:
    """Return `min_trust` and `sources` of a search; None: any."""
    sources = to_sources("sources", request.sources) if request.sources else None
    return request.min_trust if request.HasField("min_trust") else None, sources


def _source(field: str, number: int) -> SourceKind:
    try:
        return SourceKind(number)
    except ValueError as error:
        raise InvalidArgument(field, str(error)) from None


def _parents(field: str, ids: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct ids. Raises LimitExceeded before it processes half a million."""
    if len(ids) > Limits.source_ids_max:
        raise LimitExceeded(field, "source_ids_max", Limits.source_ids_max, len(ids))
    return tuple(dict.fromkeys(ids))


def to_said(field: str, provenance: pb.Provenance) -> ProvenanceDraft:
    """Return a writer's claims about an item; fields that the server sets are ignored."""
    return ProvenanceDraft(
        _source(f"{field}.source", provenance.source),
        provenance.source_uri,
        _parents(f"{field}.parent_ids", provenance.parent_ids),
        provenance.model,
        provenance.trust if provenance.HasField("trust") else None,
    )


def to_claimed(field: str, item: pb.MemoryItem) -> ProvenanceDraft:
    """Return all of an export's claims about an item."""
    if not item.HasField("provenance"):
        return ProvenanceDraft(imported=True)
    message = item.provenance
    claimed = Provenance(
        message.writer,
        message.credential_id,
        _source(f"{field}.provenance.source", message.source),
        message.source_uri,
        _parents(f"{field}.provenance.parent_ids", message.parent_ids),
        message.model,
        message.trust if message.HasField("trust") else 1.0,
        to_us(f"{field}.provenance.write_time", message.write_time)
        if message.HasField("write_time")
        else None,
    )
    return ProvenanceDraft(imported=True, claimed=claimed)


def fill_provenance(target: pb.Provenance, item: Item) -> None:
    """Set the provenance of an item. It stays unset if the item has none."""
    if item.provenance is not None:
        fill_known(target, item.provenance, item.source, item.update_us)


def fill_known(target: pb.Provenance, known: Provenance, source: SourceKind, update_us: int) -> None:
    """Set the provenance of a version written at that time with content from that source."""
    target.writer, target.credential_id = known.writer, known.credential_id
    target.source = int(source)  # type: ignore[assignment]
    target.source_uri, target.model, target.trust = known.source_uri, known.model, known.trust
    target.parent_ids.extend(known.parent_ids)
    fill_time(target.write_time, update_us if known.write_us is None else known.write_us)
