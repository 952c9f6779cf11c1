"""The calls on versions: requests from arguments, answers from responses."""

from __future__ import annotations

from memory_client._calls.call import Call, Page
from memory_client._gen.memory_service.v1 import memory_pb2, state_pb2
from memory_client.convert import entry_to, enum_to, item_to, time_to
from memory_client.versions import ItemVersion, StateVersion, VersionKind

_ITEMS = "/memory_service.v1.MemoryService/"
_STATES = "/memory_service.v1.StateService/"


def list_item_versions(namespace: str, id: str, page_size: int) -> Call[Page[ItemVersion]]:
    """Call ListItemVersions for its first page."""
    request = memory_pb2.ListItemVersionsRequest(namespace=namespace, id=id, page_size=page_size)

    def read(response: memory_pb2.ListItemVersionsResponse) -> Page[ItemVersion]:
        return Page([_item_version(found) for found in response.versions], response.next_page_token, response)

    return Call(_ITEMS + "ListItemVersions", request, memory_pb2.ListItemVersionsResponse, read)


def list_state_versions(namespace: str, key: str, page_size: int) -> Call[Page[StateVersion]]:
    """Call ListStateVersions for its first page."""
    request = state_pb2.ListStateVersionsRequest(namespace=namespace, key=key, page_size=page_size)

    def read(response: state_pb2.ListStateVersionsResponse) -> Page[StateVersion]:
        found = [_state_version(version) for version in response.versions]
        return Page(found, response.next_page_token, response)

    return Call(_STATES + "ListStateVersions", request, state_pb2.ListStateVersionsResponse, read)


def redact_version(namespace: str, id: str, revision: int) -> Call[int]:
    """Call RedactVersion; read the revision of the namespace."""
    request = memory_pb2.RedactVersionRequest(namespace=namespace, id=id, revision=revision)

    def read(response: memory_pb2.RedactVersionResponse) -> int:
        return response.revision

    return Call(_ITEMS + "RedactVersion", request, memory_pb2.RedactVersionResponse, read)


def redact_state_version(namespace: str, key: str, revision: int) -> Call[int]:
    """Call RedactStateVersion; read the revision of the namespace."""
    request = state_pb2.RedactStateVersionRequest(namespace=namespace, key=key, revision=revision)

    def read(response: state_pb2.RedactStateVersionResponse) -> int:
        return response.revision

    return Call(_STATES + "RedactStateVersion", request, state_pb2.RedactStateVersionResponse, read)


def _item_version(proto: memory_pb2.ItemVersion) -> ItemVersion:
    return ItemVersion(
        revision=proto.revision,
        kind=version_kind(proto.kind),
        time=time_to(proto, "time"),
        writer=proto.writer,
        credential_id=proto.credential_id,
        item=item_to(proto.item) if proto.HasField("item") else None,
    )


def _state_version(proto: state_pb2.StateVersion) -> StateVersion:
    return StateVersion(
        revision=proto.revision,
        version=proto.version,
        kind=version_kind(proto.kind),
        time=time_to(proto, "time"),
        writer=proto.writer,
        credential_id=proto.credential_id,
        entry=entry_to(proto.entry) if proto.HasField("entry") else None,
    )


def version_kind(number: int) -> VersionKind:
    return enum_to(state_pb2.VersionKind, "VERSION_KIND_", number, VersionKind, VersionKind.UNSPECIFIED)
