"""AdminService: convert requests, call the domain, convert results."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import grpc

from memory_service import __version__
from memory_service.data_model import NamespaceSettings, WritesBy
from memory_service.domain.administration import Administration
from memory_service.domain.items import Items
from memory_service.domain.namespace_settings import FIELDS, Settings
from memory_service.domain.quarantine import Quarantine
from memory_service.domain.undo import Undo
from memory_service.embedders.base import Embedder
from memory_service.errors import InvalidArgument
from memory_service.limits import Limits
from memory_service.llms.base import Llm
from memory_service.rerankers.base import Reranker
from memory_service.runtime.clock import now_us
from memory_service.server.call_counts import CallCounts
from memory_service.server.decisions import degradations
from memory_service.server.items import fill_facet, fill_item
from memory_service.server.requests import optional, request_key
from memory_service.server.values import fill_duration, fill_time, to_paths, to_us, ttl_us
from memory_service.v1 import admin_pb2 as pb
from memory_service.v1 import admin_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True)
class ServerInfo:
    """What a server reports about itself."""

    name: str
    store: str
    embedder: Embedder | None
    llm: Llm | None
    limits: Limits
    reranker: Reranker | None = None


class AdminServicer(admin_pb2_grpc.AdminServiceServicer):
    """Administration over gRPC."""

    def __init__(
        self,
        administration: Administration,
        undo: Undo,
        items: Items,
        quarantine: Quarantine,
        settings: Settings,
        info: ServerInfo,
        calls: CallCounts,
    ) -> None:
        self._administration = administration
        self._undo = undo
        self._items = items
        self._quarantine = quarantine
        self._settings = settings
        self._info = info
        self._calls = calls
        self._start_us = now_us()

    async def GetInfo(self, request: pb.GetInfoRequest, context: Context) -> pb.GetInfoResponse:
        embedder, llm, reranker = self._info.embedder, self._info.llm, self._info.reranker
        response = pb.GetInfoResponse(
            version=__version__,
            server_name=self._info.name,
            store=self._info.store,
            embedder=embedder.name if embedder else "none",
            embedding_dimension=embedder.dimension if embedder else 0,
            llm=llm.name if llm else "none",
            reranker=reranker.name if reranker else "none",
            limits=dataclasses.asdict(self._info.limits),
        )
        fill_time(response.start_time, self._start_us)
        if (progress := self._administration.backup_progress) is not None:
            response.backup.name = progress.name
            response.backup.done_bytes = progress.done_bytes
            response.backup.total_bytes = progress.total_bytes
        return response

    async def ListNamespaces(
        self, request: pb.ListNamespacesRequest, context: Context
    ) -> pb.ListNamespacesResponse:
        found, token = await self._administration.list_namespaces(
            request.prefix, request.page_size, request.page_token
        )
        response = pb.ListNamespacesResponse(next_page_token=token)
        for info in found:
            summary = response.namespaces.add(
                namespace=info.name, item_count=info.item_count, revision=info.revision
            )
            fill_time(summary.create_time, info.create_us)
            _fill_settings(summary, info.settings)
        return response

    async def UpdateNamespace(
        self, request: pb.UpdateNamespaceRequest, context: Context
    ) -> pb.UpdateNamespaceResponse:
        has_ttl = request.HasField("default_ttl")
        settings = await self._settings.update(
            request.namespace,
            _changed_settings(request),
            time_zone=request.time_zone,
            default_ttl_us=ttl_us("default_ttl", request.default_ttl) if has_ttl else None,
            expected_version=optional(request, "expected_version"),
        )
        response = pb.UpdateNamespaceResponse()
        _fill_settings(response, settings)
        return response

    async def GetNamespaceStats(
        self, request: pb.GetNamespaceStatsRequest, context: Context
    ) -> pb.GetNamespaceStatsResponse:
        info, index = await self._administration.stats(request.namespace)
        response = pb.GetNamespaceStatsResponse(
            namespace=info.name,
            revision=info.revision,
            item_count=info.item_count,
            state_count=info.state_count,
            embedded_count=info.embedded_count,
            embedding_dimension=info.dimension,
            embedding_model=info.model,
            pending_count=info.pending_count,
            index=pb.IndexStats(**dataclasses.asdict(index)),
        )
        fill_time(response.create_time, info.create_us)
        _fill_settings(response, info.settings)
        if request.include_usage:
            response.usage.byte_count = await self._administration.byte_count(request.namespace)
            calls = self._calls.of(request.namespace)
            response.usage.call_count = calls.count
            fill_time(response.usage.call_count_start_time, calls.since_us)
        return response

    async def Reembed(self, request: pb.ReembedRequest, context: Context) -> pb.ReembedResponse:
        info = await self._administration.reembed(
            request.namespace, replace_client_vectors=request.replace_client_vectors
        )
        return pb.ReembedResponse(
            pending_count=info.pending_count, embedding_model=info.model, revision=info.revision
        )

    async def UndoWrites(self, request: pb.UndoWritesRequest, context: Context) -> pb.UndoWritesResponse:
        done = await self._undo.undo_writes(
            request.namespace,
            _writes_by(request),
            dry_run=request.dry_run,
            request=await request_key(request.request_id, request),
        )
        return pb.UndoWritesResponse(
            removed_count=done.removed_count,
            restored_count=done.restored_count,
            unrestorable_count=done.unrestorable_count,
            unrestorable_ids=done.unrestorable,
            revision=done.revision,
        )

    async def ListQuarantined(
        self, request: pb.ListQuarantinedRequest, context: Context
    ) -> pb.ListQuarantinedResponse:
        page = await self._quarantine.page(request.namespace, request.page_size, request.page_token)
        response = pb.ListQuarantinedResponse(next_page_token=page.next_page_token)
        for write in page.writes:
            target = response.writes.add(id=write.held.id, reason=write.held.reason)
            fill_time(target.create_time, write.held.held_us)
            fill_time(target.expire_time, write.held.expire_us)
            for item in write.items:
                shown = target.items.add()
                fill_item(shown, item)
                # A reviewer must see what the policy saw.
                fill_facet(shown, item)
        return response

    async def ReviewQuarantined(
        self, request: pb.ReviewQuarantinedRequest, context: Context
    ) -> pb.ReviewQuarantinedResponse:
        if request.decision == pb.QUARANTINE_DECISION_RELEASE:
            added = await self._items.release(request.namespace, request.id)
            return pb.ReviewQuarantinedResponse(
                item_count=len(added.items),
                revision=added.receipt.revision,
                degraded=degradations(added.degraded),
            )
        if request.decision != pb.QUARANTINE_DECISION_DELETE:
            raise InvalidArgument(
                "decision", "must be QUARANTINE_DECISION_RELEASE or QUARANTINE_DECISION_DELETE"
            )
        return pb.ReviewQuarantinedResponse(
            revision=await self._quarantine.delete(request.namespace, request.id)
        )

    async def DeleteNamespace(
        self, request: pb.DeleteNamespaceRequest, context: Context
    ) -> pb.DeleteNamespaceResponse:
        receipt = await self._administration.delete_namespace(request.namespace)
        return pb.DeleteNamespaceResponse(
            removed_item_count=receipt.removed_count, removed_state_count=receipt.removed_state_count
        )

    async def Flush(self, request: pb.FlushRequest, context: Context) -> pb.FlushResponse:
        response = pb.FlushResponse()
        fill_duration(response.duration, await self._administration.flush())
        return response

    async def Backup(self, request: pb.BackupRequest, context: Context) -> pb.BackupResponse:
        report, seconds = await self._administration.backup(request.name)
        response = pb.BackupResponse(**dataclasses.asdict(report))
        fill_duration(response.duration, seconds)
        return response


def _changed_settings(request: pb.UpdateNamespaceRequest) -> frozenset[str]:
    if not request.HasField("update_mask"):
        return FIELDS & {field.name for field, _ in request.ListFields()}
    paths = to_paths(request.update_mask, FIELDS)
    return FIELDS if paths == ["*"] else frozenset(paths)


def _fill_settings(
    target: pb.NamespaceSummary | pb.GetNamespaceStatsResponse | pb.UpdateNamespaceResponse,
    settings: NamespaceSettings,
) -> None:
    if settings.version:
        target.settings.time_zone, target.settings.version = settings.time_zone, settings.version
        if settings.default_ttl_us is not None:
            target.settings.default_ttl.FromMicroseconds(settings.default_ttl_us)


def _writes_by(request: pb.UndoWritesRequest) -> WritesBy:
    named = bool(request.writer or request.credential_id)
    if not named and not request.any_writer:
        raise InvalidArgument("writer", "is required unless credential_id or any_writer is set")
    if named and request.any_writer:
        raise InvalidArgument("any_writer", "cannot be combined with writer or credential_id")
    if not request.HasField("since"):
        raise InvalidArgument("since", "is required")
    since_us = to_us("since", request.since)
    return WritesBy(since_us, request.writer or None, request.credential_id or None)
