"""SessionService: convert requests, call the domain, convert results."""

from __future__ import annotations

from typing import Any

import grpc

from memory_service.domain.deleting import Deleting
from memory_service.domain.session_forking import Fork, SessionForking
from memory_service.domain.sessions import Sessions
from memory_service.runtime.yielding import each
from memory_service.server.decisions import degradations
from memory_service.server.requests import optional, request_key
from memory_service.server.sessions import changed_fields, fill_session, session_of, to_session_draft
from memory_service.server.values import to_labels
from memory_service.v1 import session_pb2 as pb
from memory_service.v1 import session_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


class SessionServicer(session_pb2_grpc.SessionServiceServicer):
    """Sessions over gRPC."""

    def __init__(self, sessions: Sessions, forking: SessionForking, deleting: Deleting) -> None:
        self._sessions = sessions
        self._forking = forking
        self._deleting = deleting

    async def ListSessions(
        self, request: pb.ListSessionsRequest, context: Context
    ) -> pb.ListSessionsResponse:
        page = await self._sessions.list_sessions(
            request.namespace,
            prefix=request.prefix,
            labels=to_labels("labels", request.labels),
            page_size=request.page_size,
            page_token=request.page_token,
        )
        response = pb.ListSessionsResponse(revision=page.revision, next_page_token=page.next_page_token)
        await each(lambda session: fill_session(response.sessions.add(), session), page.sessions)
        return response

    async def GetSession(self, request: pb.GetSessionRequest, context: Context) -> pb.GetSessionResponse:
        session, revision = await self._sessions.get(request.namespace, request.session_id)
        response = pb.GetSessionResponse(revision=revision)
        fill_session(response.session, session)
        return response

    async def UpdateSession(
        self, request: pb.UpdateSessionRequest, context: Context
    ) -> pb.UpdateSessionResponse:
        written = await self._sessions.update(
            request.namespace,
            to_session_draft("session", session_of(request)),
            changed_fields(request),
            expected_version=optional(request, "expected_version"),
            allow_missing=request.allow_missing,
            request=await request_key(request.request_id, request),
        )
        response = pb.UpdateSessionResponse(
            revision=written.revision, degraded=degradations(written.degraded)
        )
        fill_session(response.session, written.session)
        return response

    async def DeleteSession(
        self, request: pb.DeleteSessionRequest, context: Context
    ) -> pb.DeleteSessionResponse:
        deleted = await self._deleting.delete_session(
            request.namespace,
            request.session_id,
            keep_derived=request.keep_derived,
            page_token=request.page_token,
            request=await request_key(request.request_id, request),
        )
        return pb.DeleteSessionResponse(
            deleted_count=deleted.count,
            derived_count=deleted.derived_count,
            revision=deleted.revision,
            next_page_token=deleted.next_page_token,
        )

    async def ForkSession(self, request: pb.ForkSessionRequest, context: Context) -> pb.ForkSessionResponse:
        fork = Fork(
            request.session_id,
            request.new_session_id,
            request.until_item_id,
            optional(request, "until_revision"),
        )
        key = await request_key(request.request_id, request)
        written = await self._forking.fork(request.namespace, fork, key)
        response = pb.ForkSessionResponse(revision=written.revision, degraded=degradations(written.degraded))
        fill_session(response.session, written.session)
        return response
