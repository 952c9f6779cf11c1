"""Conversion of versions to protobuf."""

from __future__ import annotations

from memory_service.data_model import UNATTRIBUTED, ChangeType, Item, StateEntry
from memory_service.domain.file_items import file_of
from memory_service.records.versions import KeptVersion
from memory_service.server.items import fill_item
from memory_service.server.states import fill_state
from memory_service.server.values import fill_time
from memory_service.v1 import file_pb2, memory_pb2, state_pb2

_EXPIRED = (ChangeType.ITEM_EXPIRED, ChangeType.STATE_EXPIRED)


def fill_item_version(target: memory_pb2.ItemVersion, version: KeptVersion[Item]) -> None:
    """Set a version of an item."""
    _fill(target, version)
    if version.record is not None:
        fill_item(target.item, version.record)


def fill_file_version(target: file_pb2.FileVersion, version: KeptVersion[Item]) -> None:
    """Set a version of a file."""
    target.version, target.kind = version.revision, _kind(version)
    if version.time_us is not None:
        fill_time(target.time, version.time_us)
    known = version.provenance or UNATTRIBUTED
    target.writer, target.credential_id = known.writer, known.credential_id
    if file := file_of(version.record, 0):
        target.path, target.size_bytes = file.path, len(file.text.encode())


def fill_state_version(target: state_pb2.StateVersion, version: KeptVersion[StateEntry]) -> None:
    """Set a version of a state."""
    _fill(target, version)
    target.version = version.number
    if version.record is not None:
        fill_state(target.entry, version.record)


def _fill(
    target: memory_pb2.ItemVersion | state_pb2.StateVersion,
    version: KeptVersion[Item] | KeptVersion[StateEntry],
) -> None:
    target.revision, target.kind = version.revision, _kind(version)
    if version.time_us is not None:
        fill_time(target.time, version.time_us)
    known = version.provenance or UNATTRIBUTED
    target.writer, target.credential_id = known.writer, known.credential_id


def _kind(version: KeptVersion[Item] | KeptVersion[StateEntry]) -> state_pb2.VersionKind:
    if version.removal is not None:
        expired = version.removal in _EXPIRED
        return state_pb2.VERSION_KIND_EXPIRED if expired else state_pb2.VERSION_KIND_DELETED
    if version.record is None:
        return state_pb2.VERSION_KIND_REDACTED
    return state_pb2.VERSION_KIND_CURRENT if version.current else state_pb2.VERSION_KIND_REPLACED
