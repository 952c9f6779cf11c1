"""The calls of SessionService: requests from arguments, answers from responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_client._calls.call import Call, Page, request_id_or_new
from memory_client._gen.memory_service.v1 import session_pb2 as pb
from memory_client.convert import degraded_to, time_to
from memory_client.found import Deleted
from memory_client.sessions import Session, SessionOrigin
from memory_client.unset import UNSET, Unset
from memory_client.values import struct_from, struct_to

_SERVICE = "/memory_service.v1.SessionService/"
_Written = pb.UpdateSessionResponse | pb.ForkSessionResponse


def _session_to(proto: pb.Session, revision: int = 0, degraded: Any = ()) -> Session:
    return Session(
        session_id=proto.session_id,
        title=proto.title,
        labels=dict(proto.labels),
        metadata=struct_to(proto.metadata),
        item_count=proto.item_count,
        first_time=time_to(proto, "first_time"),
        last_time=time_to(proto, "last_time"),
        version=proto.version,
        update_time=time_to(proto, "update_time"),
        forked_from=_origin_to(proto.forked_from) if proto.HasField("forked_from") else None,
        participants=tuple(proto.participants),
        revision=revision,
        degraded=degraded_to(degraded),
    )


def _origin_to(proto: pb.SessionOrigin) -> SessionOrigin:
    return SessionOrigin(
        session_id=proto.session_id, until_item_id=proto.until_item_id, revision=proto.revision
    )


def _written_to(response: _Written) -> Session:
    return _session_to(response.session, response.revision, response.degraded)


def list_sessions(
    namespace: str, *, prefix: str, labels: Mapping[str, str] | None, page_size: int
) -> Call[Page[Session]]:
    """Call ListSessions for its first page."""
    request = pb.ListSessionsRequest(
        namespace=namespace, prefix=prefix, labels=dict(labels or {}), page_size=page_size
    )

    def read(response: pb.ListSessionsResponse) -> Page[Session]:
        sessions = [_session_to(session) for session in response.sessions]
        return Page(sessions, response.next_page_token, response)

    return Call(_SERVICE + "ListSessions", request, pb.ListSessionsResponse, read)


def get_session(namespace: str, session_id: str) -> Call[Session]:
    """Call GetSession."""
    request = pb.GetSessionRequest(namespace=namespace, session_id=session_id)

    def read(response: pb.GetSessionResponse) -> Session:
        return _session_to(response.session, response.revision)

    return Call(_SERVICE + "GetSession", request, pb.GetSessionResponse, read)


def update_session(
    namespace: str,
    session_id: str,
    *,
    title: str | Unset,
    labels: Mapping[str, str] | Unset,
    metadata: Mapping[str, Any] | Unset,
    expected_version: int | None,
    allow_missing: bool,
    request_id: str | None,
) -> Call[Session]:
    """Call UpdateSession."""
    request = pb.UpdateSessionRequest(
        namespace=namespace,
        session=pb.Session(session_id=session_id),
        expected_version=expected_version,
        allow_missing=allow_missing,
        request_id=request_id_or_new(request_id),
    )
    session, paths = request.session, request.update_mask.paths
    if title is not UNSET:
        session.title = title
        paths.append("title")
    if labels is not UNSET:
        session.labels.update(labels)
        paths.append("labels")
    if metadata is not UNSET:
        if metadata:
            session.metadata.CopyFrom(struct_from(metadata, "metadata"))
        paths.append("metadata")
    return Call(_SERVICE + "UpdateSession", request, pb.UpdateSessionResponse, _written_to)


def delete_session(
    namespace: str, session_id: str, *, keep_derived: bool, request_id: str | None
) -> Call[Page[Deleted]]:
    """Call DeleteSession for its first page; read the number of deleted items."""
    request = pb.DeleteSessionRequest(
        namespace=namespace,
        session_id=session_id,
        keep_derived=keep_derived,
        request_id=request_id_or_new(request_id),
    )

    def read(response: pb.DeleteSessionResponse) -> Page[Deleted]:
        deleted = Deleted(response.deleted_count, response.derived_count)
        return Page([deleted], response.next_page_token, response)

    return Call(_SERVICE + "DeleteSession", request, pb.DeleteSessionResponse, read)


def fork_session(
    namespace: str,
    session_id: str,
    *,
    new_session_id: str,
    until_item_id: str,
    until_revision: int | None,
    request_id: str | None,
) -> Call[Session]:
    """Call ForkSession."""
    request = pb.ForkSessionRequest(
        namespace=namespace,
        session_id=session_id,
        new_session_id=new_session_id,
        until_item_id=until_item_id,
        until_revision=until_revision,
        request_id=request_id_or_new(request_id),
    )
    return Call(_SERVICE + "ForkSession", request, pb.ForkSessionResponse, _written_to)
