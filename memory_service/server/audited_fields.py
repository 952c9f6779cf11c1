"""The fields of requests and responses that the audit log records.

These are ids, keys, and parameters that change what a method does. Never contents.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message

IDS_MAX = 100
"""Ids listed per entry; the entry also has their number."""
ID_CHARS_MAX = 512
"""Length of an id, a name or a namespace in an entry; in a refused request they may have any length."""

_ID_FIELDS = frozenset({"id", "ids", "key", "memory_ids"})
_OWN_ID_FIELDS = {
    "memory_service.v1.BackupRequest": frozenset({"name"}),
    "memory_service.v1.RenameStateRequest": frozenset({"new_key"}),
}
# Neighbours accompany a result and are not a subject of the call.
_PASSED_OVER = {"memory_service.v1.RetrieveResult": frozenset({"before", "after"})}
_CONTENTS = frozenset({"memory_service.v1.ChatMessage"})
_PACKAGE = "memory_service."
_DEPTH_MAX = 2
_ENTRIES_MAX = 10_000
"""Per list: ten times what any valid request may have.

Doubled: a request refused for its number of ids blocks the event loop for 10 ms more.
"""

_LISTED_MAX = 16
"""Values listed of a parameter: as many as a valid request may have."""

PARAMETERS = {
    "memory_service.v1.AddDocumentRequest": ("replace",),
    "memory_service.v1.AddRequest": ("on_duplicate",),
    "memory_service.v1.BatchAddRequest": ("on_duplicate",),
    "memory_service.v1.ConsolidateMemoriesRequest": ("dry_run",),
    "memory_service.v1.DeleteDocumentRequest": ("keep_derived",),
    "memory_service.v1.DeleteFileRequest": ("recursive",),
    "memory_service.v1.DeleteMemoryRequest": ("include_history", "keep_derived"),
    "memory_service.v1.DeleteRequest": ("keep_derived",),
    "memory_service.v1.DeleteSessionRequest": ("keep_derived",),
    "memory_service.v1.DeleteWhereRequest": ("kinds", "dry_run", "keep_derived"),
    "memory_service.v1.EvaluateForStorageRequest": ("save", "overwrite"),
    "memory_service.v1.ExtractMemoriesRequest": ("dry_run", "on_contradiction"),
    "memory_service.v1.ImportRequest": ("on_duplicate",),
    "memory_service.v1.RedactStateVersionRequest": ("revision",),
    "memory_service.v1.RedactFileVersionRequest": ("version",),
    "memory_service.v1.RedactVersionRequest": ("revision",),
    "memory_service.v1.ReembedRequest": ("replace_client_vectors",),
    "memory_service.v1.RetrieveRequest": ("namespaces",),
    "memory_service.v1.ReviewQuarantinedRequest": ("decision",),
    "memory_service.v1.SaveMemoryRequest": ("on_contradiction",),
    "memory_service.v1.StoreResponseRequest": ("allow_missing",),
    "memory_service.v1.UpdateNamespaceRequest": ("time_zone", "default_ttl", "update_mask"),
    "memory_service.v1.UndoWritesRequest": ("writer", "credential_id", "any_writer", "since", "dry_run"),
    "memory_service.v1.UpdateSessionRequest": ("allow_missing",),
}
"""Fields that select what a request does, rather than to what."""


def ids_of(message: Message) -> list[str]:
    """Return the ids and keys that a request or response concerns, in their order."""
    found: list[str] = []
    _collect(message, 0, found)
    return found


def _collect(message: Message, depth: int, found: list[str]) -> None:
    ids, inner = _plan(message.DESCRIPTOR)
    for field in ids:
        value = getattr(message, field.name)
        found.extend(filter(None, [value] if isinstance(value, str) else value[:_ENTRIES_MAX]))
    if depth == _DEPTH_MAX or (depth and ids):
        return  # The inside of an item is content.
    for field in inner:
        if field.is_repeated:
            for each in getattr(message, field.name)[:_ENTRIES_MAX]:
                _collect(each, depth + 1, found)
        elif message.HasField(field.name):
            _collect(getattr(message, field.name), depth + 1, found)


@lru_cache(None)
def _plan(descriptor: Descriptor) -> tuple[list[FieldDescriptor], list[FieldDescriptor]]:
    """Return a message's fields that are ids, and those that hold messages with ids."""
    names = _ID_FIELDS | _OWN_ID_FIELDS.get(descriptor.full_name, frozenset())
    passed_over = _PASSED_OVER.get(descriptor.full_name, frozenset())
    text = FieldDescriptor.TYPE_STRING
    ids = [field for field in descriptor.fields if field.name in names and field.type == text]
    inner = [
        field
        for field in descriptor.fields
        if field.message_type is not None
        and field.name not in passed_over
        and field.message_type.full_name.startswith(_PACKAGE)
        and field.message_type.full_name not in _CONTENTS
        and not field.message_type.GetOptions().map_entry
    ]
    return ids, inner


def parameters_of(request: Message) -> dict[str, str]:
    """Return the parameters that a request sets, by name, as JSON.

    An invalid time, and a path that names no field, are left out: the request will be refused for them.
    """
    names = PARAMETERS.get(request.DESCRIPTOR.full_name, ())
    fields = [field for field, _ in request.ListFields() if field.name in names] if names else []
    said = {field.name: _as_text(field, getattr(request, field.name)) for field in fields}
    return {name: text for name, text in said.items() if text}


def _as_text(field: FieldDescriptor, value: Any) -> str:
    values = value[:_LISTED_MAX] if field.is_repeated else [value]
    return ",".join(_one_as_text(field, each)[:ID_CHARS_MAX] for each in values)


def _one_as_text(field: FieldDescriptor, value: Any) -> str:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else str(value)
    if isinstance(value, FieldMask):
        assert field.containing_type is not None  # It is no extension.
        named = {"*", *field.containing_type.fields_by_name}
        return ",".join(path for path in value.paths[:_LISTED_MAX] if path in named)
    if field.message_type is not None:
        try:
            return str(value.ToJsonString())
        except ValueError:
            return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
