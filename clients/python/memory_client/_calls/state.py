"""The calls of StateService: requests from arguments, answers from responses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from memory_client._calls.call import Call, Page, request_id_or_new
from memory_client._gen.memory_service.v1 import state_pb2
from memory_client.convert import entry_to
from memory_client.models import Removed, StateEntry
from memory_client.values import duration_from, value_from

_SERVICE = "/memory_service.v1.StateService/"


def save_state(
    namespace: str,
    key: str,
    value: Any,
    *,
    expected_version: int | None,
    ttl: timedelta | float | None,
    description: str | None,
    request_id: str | None,
) -> Call[StateEntry]:
    """Call SaveState."""
    request = state_pb2.SaveStateRequest(
        namespace=namespace,
        key=key,
        value=value_from(value, "value"),
        expected_version=expected_version,
        description=description,
        request_id=request_id_or_new(request_id),
    )
    if ttl is not None:
        request.ttl.CopyFrom(duration_from(ttl))
    return Call(_SERVICE + "SaveState", request, state_pb2.SaveStateResponse, _entry)


def _entry(
    response: state_pb2.SaveStateResponse | state_pb2.LoadStateResponse | state_pb2.RenameStateResponse,
) -> StateEntry:
    return entry_to(response.entry)


def load_state(namespace: str, key: str, revision: int) -> Call[StateEntry]:
    """Call LoadState."""
    request = state_pb2.LoadStateRequest(namespace=namespace, key=key, revision=revision)
    return Call(_SERVICE + "LoadState", request, state_pb2.LoadStateResponse, _entry)


def list_state_keys(
    namespace: str, prefix: str, include_preview: bool, page_size: int
) -> Call[Page[StateEntry]]:
    """Call ListStateKeys for its first page."""
    request = state_pb2.ListStateKeysRequest(
        namespace=namespace, prefix=prefix, include_preview=include_preview, page_size=page_size
    )
    return Call(_SERVICE + "ListStateKeys", request, state_pb2.ListStateKeysResponse, _page)


def search_state(namespace: str, pattern: str, page_size: int) -> Call[Page[StateEntry]]:
    """Call SearchState for its first page."""
    request = state_pb2.SearchStateRequest(namespace=namespace, pattern=pattern, page_size=page_size)
    return Call(_SERVICE + "SearchState", request, state_pb2.SearchStateResponse, _page)


def _page(response: state_pb2.ListStateKeysResponse | state_pb2.SearchStateResponse) -> Page[StateEntry]:
    return Page([entry_to(entry) for entry in response.entries], response.next_page_token, response)


def delete_state(namespace: str, key: str, expected_version: int | None, request_id: str | None) -> Call[int]:
    """Call DeleteState; read the revision of the namespace."""
    request = state_pb2.DeleteStateRequest(
        namespace=namespace,
        key=key,
        expected_version=expected_version,
        request_id=request_id_or_new(request_id),
    )

    def read(response: state_pb2.DeleteStateResponse) -> int:
        return response.revision

    return Call(_SERVICE + "DeleteState", request, state_pb2.DeleteStateResponse, read)


def rename_state(
    namespace: str, key: str, new_key: str, expected_version: int | None, request_id: str | None
) -> Call[StateEntry]:
    """Call RenameState."""
    request = state_pb2.RenameStateRequest(
        namespace=namespace,
        key=key,
        new_key=new_key,
        expected_version=expected_version,
        request_id=request_id_or_new(request_id),
    )
    return Call(_SERVICE + "RenameState", request, state_pb2.RenameStateResponse, _entry)


def clear_state(namespace: str, request_id: str | None) -> Call[Removed]:
    """Call ClearState."""
    request = state_pb2.ClearStateRequest(namespace=namespace, request_id=request_id_or_new(request_id))

    def read(response: state_pb2.ClearStateResponse) -> Removed:
        return Removed(0, response.removed_count, response.revision)

    return Call(_SERVICE + "ClearState", request, state_pb2.ClearStateResponse, read)
