"""The calls of AdminService and of gRPC's health service."""

from __future__ import annotations

from datetime import datetime, timedelta

from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from memory_client._calls.call import Call, Page, request_id_or_new
from memory_client._calls.fields import set_times
from memory_client._gen.memory_service.v1 import admin_pb2
from memory_client.convert import degraded_to, item_to, time_to
from memory_client.models import (
    BackupProgress,
    BackupSummary,
    HealthStatus,
    IndexStats,
    NamespaceSettings,
    NamespaceStats,
    NamespaceSummary,
    NamespaceUsage,
    QuarantineDecision,
    QuarantinedWrite,
    Reembedding,
    Removed,
    ReviewedWrite,
    ServerInfo,
    UndoneWrites,
)
from memory_client.unset import UNSET, Unset
from memory_client.values import duration_from, duration_to

_SERVICE = "/memory_service.v1.AdminService/"


def info() -> Call[ServerInfo]:
    """Call GetInfo."""
    return Call(_SERVICE + "GetInfo", admin_pb2.GetInfoRequest(), admin_pb2.GetInfoResponse, _info)


def _info(response: admin_pb2.GetInfoResponse) -> ServerInfo:
    backup = response.backup
    return ServerInfo(
        version=response.version,
        store=response.store,
        embedder=response.embedder,
        embedding_dimension=response.embedding_dimension,
        llm=response.llm,
        start_time=time_to(response, "start_time"),
        limits=dict(response.limits),
        backup=BackupProgress(backup.name, backup.done_bytes, backup.total_bytes)
        if response.HasField("backup")
        else None,
        reranker=response.reranker,
        server_name=response.server_name,
    )


def list_namespaces(prefix: str, page_size: int) -> Call[Page[NamespaceSummary]]:
    """Call ListNamespaces for its first page."""
    request = admin_pb2.ListNamespacesRequest(prefix=prefix, page_size=page_size)

    def read(response: admin_pb2.ListNamespacesResponse) -> Page[NamespaceSummary]:
        summaries = [
            NamespaceSummary(
                namespace=entry.namespace,
                item_count=entry.item_count,
                revision=entry.revision,
                create_time=time_to(entry, "create_time"),
                settings=_settings(entry.settings) if entry.HasField("settings") else None,
            )
            for entry in response.namespaces
        ]
        return Page(summaries, response.next_page_token, response)

    return Call(_SERVICE + "ListNamespaces", request, admin_pb2.ListNamespacesResponse, read)


def namespace_stats(namespace: str, *, include_usage: bool) -> Call[NamespaceStats]:
    """Call GetNamespaceStats."""
    request = admin_pb2.GetNamespaceStatsRequest(namespace=namespace, include_usage=include_usage)
    return Call(_SERVICE + "GetNamespaceStats", request, admin_pb2.GetNamespaceStatsResponse, _stats)


def _stats(response: admin_pb2.GetNamespaceStatsResponse) -> NamespaceStats:
    index = response.index
    return NamespaceStats(
        namespace=response.namespace,
        revision=response.revision,
        item_count=response.item_count,
        state_count=response.state_count,
        embedded_count=response.embedded_count,
        embedding_dimension=response.embedding_dimension,
        embedding_model=response.embedding_model,
        create_time=time_to(response, "create_time"),
        index=IndexStats(
            loaded=index.loaded,
            kind=index.kind,
            graph_count=index.graph_count,
            exact_count=index.exact_count,
            memory_bytes=index.memory_bytes,
            ef_search=index.ef_search,
        ),
        pending_count=response.pending_count,
        settings=_settings(response.settings) if response.HasField("settings") else None,
        usage=_usage(response.usage) if response.HasField("usage") else None,
    )


def _usage(proto: admin_pb2.NamespaceUsage) -> NamespaceUsage:
    return NamespaceUsage(
        byte_count=proto.byte_count,
        call_count=proto.call_count,
        call_count_start_time=time_to(proto, "call_count_start_time"),
    )


def update_namespace(
    namespace: str,
    time_zone: str | Unset,
    default_ttl: timedelta | float | Unset | None,
    expected_version: int | None,
) -> Call[NamespaceSettings]:
    """Call UpdateNamespace with the settings that are given."""
    request = admin_pb2.UpdateNamespaceRequest(namespace=namespace, expected_version=expected_version)
    request.update_mask.SetInParent()
    if time_zone is not UNSET:
        request.time_zone = time_zone
        request.update_mask.paths.append("time_zone")
    if default_ttl is not UNSET:
        if default_ttl is not None:
            request.default_ttl.CopyFrom(duration_from(default_ttl))
        request.update_mask.paths.append("default_ttl")

    def read(response: admin_pb2.UpdateNamespaceResponse) -> NamespaceSettings:
        return _settings(response.settings)

    return Call(_SERVICE + "UpdateNamespace", request, admin_pb2.UpdateNamespaceResponse, read)


def _settings(message: admin_pb2.NamespaceSettings) -> NamespaceSettings:
    return NamespaceSettings(
        time_zone=message.time_zone,
        default_ttl=duration_to(message.default_ttl) if message.HasField("default_ttl") else None,
        version=message.version,
    )


def reembed(namespace: str, replace_client_vectors: bool) -> Call[Reembedding]:
    """Call Reembed."""
    request = admin_pb2.ReembedRequest(namespace=namespace, replace_client_vectors=replace_client_vectors)

    def read(response: admin_pb2.ReembedResponse) -> Reembedding:
        return Reembedding(
            pending_count=response.pending_count,
            embedding_model=response.embedding_model,
            revision=response.revision,
        )

    return Call(_SERVICE + "Reembed", request, admin_pb2.ReembedResponse, read)


def undo_writes(
    namespace: str,
    since: datetime,
    *,
    writer: str,
    credential_id: str,
    any_writer: bool,
    dry_run: bool,
    request_id: str | None,
) -> Call[UndoneWrites]:
    """Call UndoWrites. A dry run needs no request id."""
    request = admin_pb2.UndoWritesRequest(
        namespace=namespace,
        writer=writer,
        credential_id=credential_id,
        any_writer=any_writer,
        dry_run=dry_run,
        request_id=request_id or "" if dry_run else request_id_or_new(request_id),
    )
    set_times(request, since=since)

    def read(response: admin_pb2.UndoWritesResponse) -> UndoneWrites:
        return UndoneWrites(
            removed_count=response.removed_count,
            restored_count=response.restored_count,
            unrestorable_count=response.unrestorable_count,
            unrestorable_ids=tuple(response.unrestorable_ids),
            revision=response.revision,
        )

    return Call(_SERVICE + "UndoWrites", request, admin_pb2.UndoWritesResponse, read)


def list_quarantined(namespace: str, page_size: int) -> Call[Page[QuarantinedWrite]]:
    """Call ListQuarantined for its first page."""
    request = admin_pb2.ListQuarantinedRequest(namespace=namespace, page_size=page_size)

    def read(response: admin_pb2.ListQuarantinedResponse) -> Page[QuarantinedWrite]:
        writes = [
            QuarantinedWrite(
                id=write.id,
                reason=write.reason,
                create_time=time_to(write, "create_time"),
                expire_time=time_to(write, "expire_time"),
                items=tuple(item_to(item) for item in write.items),
            )
            for write in response.writes
        ]
        return Page(writes, response.next_page_token, response)

    return Call(_SERVICE + "ListQuarantined", request, admin_pb2.ListQuarantinedResponse, read)


def review_quarantined(namespace: str, id: str, decision: QuarantineDecision | str) -> Call[ReviewedWrite]:
    """Call ReviewQuarantined."""
    name = QuarantineDecision(decision).value.upper()
    request = admin_pb2.ReviewQuarantinedRequest(
        namespace=namespace,
        id=id,
        decision=f"QUARANTINE_DECISION_{name}",
    )

    def read(response: admin_pb2.ReviewQuarantinedResponse) -> ReviewedWrite:
        return ReviewedWrite(
            item_count=response.item_count,
            revision=response.revision,
            degraded=degraded_to(response.degraded),
        )

    return Call(_SERVICE + "ReviewQuarantined", request, admin_pb2.ReviewQuarantinedResponse, read)


def delete_namespace(namespace: str) -> Call[Removed]:
    """Call DeleteNamespace."""
    request = admin_pb2.DeleteNamespaceRequest(namespace=namespace)

    def read(response: admin_pb2.DeleteNamespaceResponse) -> Removed:
        return Removed(response.removed_item_count, response.removed_state_count)

    return Call(_SERVICE + "DeleteNamespace", request, admin_pb2.DeleteNamespaceResponse, read)


def flush() -> Call[timedelta]:
    """Call Flush; read how long it took."""

    def read(response: admin_pb2.FlushResponse) -> timedelta:
        return duration_to(response.duration)

    return Call(_SERVICE + "Flush", admin_pb2.FlushRequest(), admin_pb2.FlushResponse, read)


def backup(name: str) -> Call[BackupSummary]:
    """Call Backup."""

    def read(response: admin_pb2.BackupResponse) -> BackupSummary:
        return BackupSummary(
            name=response.name,
            size_bytes=response.size_bytes,
            checksum=response.checksum,
            namespace_count=response.namespace_count,
            item_count=response.item_count,
            duration=duration_to(response.duration),
        )

    return Call(_SERVICE + "Backup", admin_pb2.BackupRequest(name=name), admin_pb2.BackupResponse, read)


def health(service: str) -> Call[HealthStatus]:
    """Call gRPC's health check.

    Its request and response have one field, number 1, a string and an enum. On the wire they equal protobuf's
    wrapper messages, so no further package is needed.
    """

    def read(response: Int32Value) -> HealthStatus:
        statuses = tuple(HealthStatus)
        known = 0 <= response.value < len(statuses)
        return statuses[response.value] if known else HealthStatus.UNKNOWN

    return Call("/grpc.health.v1.Health/Check", StringValue(value=service), Int32Value, read)
