"""The most expensive requests of SessionService."""

from __future__ import annotations

from faults.dearest.world import BATCH, KIB, LABELS, MANY_ITEMS, METADATA, Dear, World, again
from memory_service.v1 import memory_pb2, session_pb2_grpc
from memory_service.v1 import session_pb2 as pb


def _many_sessions(world: World) -> str:
    """Return a namespace of as many sessions as items."""
    return world.fill(
        world.fresh(), MANY_ITEMS, lambda at: memory_pb2.MemoryItem(session_id=f"s{at}", text=f"note {at}")
    )


def _named_sessions(world: World) -> str:
    """Return a namespace of sessions with large metadata."""
    namespace, stub = world.fresh(), session_pb2_grpc.SessionServiceStub(world.api.channel)
    for at in range(200):
        session = pb.Session(session_id=f"s{at}", labels=LABELS, metadata=METADATA)
        stub.UpdateSession(pb.UpdateSessionRequest(namespace=namespace, session=session, allow_missing=True))
    return namespace


def _large_session(world: World) -> str:
    return world.fill(
        world.fresh(), BATCH, lambda _: memory_pb2.MemoryItem(session_id="s", text=world.text(10 * KIB))
    )


def _lists(namespace: str, **fields: object) -> list[pb.ListSessionsRequest]:
    return again(pb.ListSessionsRequest(namespace=namespace, page_size=1000, **fields), 3)  # type: ignore[arg-type]


def _updates(world: World) -> list[pb.UpdateSessionRequest]:
    session = pb.Session(session_id="s", title="t" * 512, labels=LABELS, metadata=METADATA)
    return again(pb.UpdateSessionRequest(namespace=world.fresh(), session=session, allow_missing=True), 3)


SESSIONS = {
    "ListSessions": [
        Dear("many", lambda w: _lists(w.once(_many_sessions))),
        Dear("of a prefix", lambda w: _lists(w.once(_many_sessions), prefix="s")),
        Dear("with metadata", lambda w: _lists(w.once(_named_sessions))),
        Dear("of a label", lambda w: _lists(w.once(_named_sessions), labels=dict(list(LABELS.items())[:1]))),
    ],
    "GetSession": [
        Dear(
            "of many",
            lambda w: again(pb.GetSessionRequest(namespace=w.once(_many_sessions), session_id="s0")),
        ),
    ],
    "UpdateSession": [Dear("largest", _updates)],
    "DeleteSession": [
        Dear(
            "a thousand long texts",
            lambda w: [pb.DeleteSessionRequest(namespace=_large_session(w), session_id="s")],
        ),
    ],
    "ForkSession": [
        Dear(
            "long texts",
            lambda w: again(pb.ForkSessionRequest(namespace=w.once(_large_session), session_id="s"), 3),
        ),
    ],
}
