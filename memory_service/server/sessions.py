"""Conversion of sessions from and to protobuf."""

from __future__ import annotations

from memory_service.domain.session_items import Session, SessionDraft
from memory_service.domain.sessions import UPDATABLE
from memory_service.errors import InvalidArgument
from memory_service.server.values import fill_struct, fill_time, to_dict, to_labels, to_paths
from memory_service.v1 import session_pb2 as pb

_OUTPUT_ONLY = frozenset(
    (
        "session_id", "item_count", "first_time", "last_time", "version", "update_time", "forked_from",
        "participants",
    )
)  # fmt: skip


def to_session_draft(field: str, session: pb.Session) -> SessionDraft:
    """Return the new values of a session. Fields that the server sets are ignored."""
    draft = SessionDraft(
        session.session_id,
        session.title,
        to_labels(f"{field}.labels", session.labels),
        nbytes=session.ByteSize(),
    )
    if session.HasField("metadata"):
        draft.metadata = to_dict(f"{field}.metadata", session.metadata)
    return draft


def changed_fields(request: pb.UpdateSessionRequest) -> frozenset[str]:
    """Return the fields that an update changes. Raises InvalidArgument."""
    paths = to_paths(request.update_mask, UPDATABLE)
    if paths == ["*"]:
        return UPDATABLE
    if not paths:
        paths = [field.name for field, _ in request.session.ListFields() if field.name not in _OUTPUT_ONLY]
    return frozenset(paths)


def session_of(request: pb.UpdateSessionRequest) -> pb.Session:
    """Return the session of a request, which is required."""
    if not request.HasField("session"):
        raise InvalidArgument("session", "is required")
    return request.session


def fill_session(target: pb.Session, session: Session) -> None:
    """Set a protobuf session."""
    target.session_id, target.item_count = session.session_id, session.item_count
    target.participants.extend(session.participants)
    if session.first_us is not None:
        fill_time(target.first_time, session.first_us)
    if session.last_us is not None:
        fill_time(target.last_time, session.last_us)
    if (kept := session.kept) is None:
        return
    target.title, target.version = session.title, session.version
    target.labels.update(kept.labels)
    if kept.metadata is not None:
        fill_struct(target.metadata, kept.metadata)
    fill_time(target.update_time, kept.update_us)
    if (origin := session.origin) is not None:
        target.forked_from.session_id = origin.forked_session_id
        target.forked_from.until_item_id = origin.forked_item_id
        target.forked_from.revision = origin.forked_revision
