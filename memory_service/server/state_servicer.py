"""StateService: convert requests, call the domain, convert results."""

from __future__ import annotations

from typing import Any

import grpc

from memory_service.domain.states import States
from memory_service.domain.versions import Versions
from memory_service.errors import InvalidArgument
from memory_service.runtime.yielding import each
from memory_service.server.requests import optional, request_key
from memory_service.server.states import fill_state
from memory_service.server.values import to_json, ttl_us
from memory_service.server.versions import fill_state_version
from memory_service.v1 import state_pb2 as pb
from memory_service.v1 import state_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


class StateServicer(state_pb2_grpc.StateServiceServicer):
    """State over gRPC."""

    def __init__(self, states: States, versions: Versions) -> None:
        self._states = states
        self._versions = versions

    async def SaveState(self, request: pb.SaveStateRequest, context: Context) -> pb.SaveStateResponse:
        if not request.HasField("value"):
            raise InvalidArgument("value", "is required")
        entry, receipt = await self._states.save(
            request.namespace,
            request.key,
            to_json("value", request.value),
            nbytes=request.value.ByteSize(),
            expected_version=optional(request, "expected_version"),
            ttl_us=ttl_us("ttl", request.ttl) if request.HasField("ttl") else None,
            description=optional(request, "description"),
            request=await request_key(request.request_id, request),
        )
        response = pb.SaveStateResponse(revision=receipt.revision)
        fill_state(response.entry, entry, value=False)
        return response

    async def LoadState(self, request: pb.LoadStateRequest, context: Context) -> pb.LoadStateResponse:
        response = pb.LoadStateResponse()
        if request.revision:
            entry = await self._versions.state(request.namespace, request.key, request.revision)
        else:
            entry = await self._states.load(request.namespace, request.key)
        fill_state(response.entry, entry)
        return response

    async def ListStateVersions(
        self, request: pb.ListStateVersionsRequest, context: Context
    ) -> pb.ListStateVersionsResponse:
        page = await self._versions.list_states(
            request.namespace, request.key, request.page_size, request.page_token
        )
        response = pb.ListStateVersionsResponse(next_page_token=page.next_page_token)
        await each(lambda version: fill_state_version(response.versions.add(), version), page.versions)
        return response

    async def RedactStateVersion(
        self, request: pb.RedactStateVersionRequest, context: Context
    ) -> pb.RedactStateVersionResponse:
        revision = await self._versions.redact_state(request.namespace, request.key, request.revision)
        return pb.RedactStateVersionResponse(revision=revision)

    async def ListStateKeys(
        self, request: pb.ListStateKeysRequest, context: Context
    ) -> pb.ListStateKeysResponse:
        page = await self._states.list_keys(
            request.namespace, request.page_size, request.page_token, request.prefix
        )
        response = pb.ListStateKeysResponse(next_page_token=page.next_page_token)
        preview = request.include_preview
        await each(
            lambda entry: fill_state(response.entries.add(), entry, value=False, with_preview=preview),
            page.entries,
        )
        return response

    async def SearchState(self, request: pb.SearchStateRequest, context: Context) -> pb.SearchStateResponse:
        page = await self._states.search(
            request.namespace, request.pattern, request.page_size, request.page_token
        )
        response = pb.SearchStateResponse(next_page_token=page.next_page_token)
        await each(lambda entry: fill_state(response.entries.add(), entry), page.entries)
        return response

    async def DeleteState(self, request: pb.DeleteStateRequest, context: Context) -> pb.DeleteStateResponse:
        revision = await self._states.delete(
            request.namespace,
            request.key,
            expected_version=optional(request, "expected_version"),
            request=await request_key(request.request_id, request),
        )
        return pb.DeleteStateResponse(revision=revision)

    async def RenameState(self, request: pb.RenameStateRequest, context: Context) -> pb.RenameStateResponse:
        entry, receipt = await self._states.rename(
            request.namespace,
            request.key,
            request.new_key,
            expected_version=optional(request, "expected_version"),
            request=await request_key(request.request_id, request),
        )
        response = pb.RenameStateResponse(revision=receipt.revision)
        fill_state(response.entry, entry, value=False)
        return response

    async def ClearState(self, request: pb.ClearStateRequest, context: Context) -> pb.ClearStateResponse:
        receipt = await self._states.clear(
            request.namespace, request=await request_key(request.request_id, request)
        )
        return pb.ClearStateResponse(removed_count=receipt.removed_state_count, revision=receipt.revision)
