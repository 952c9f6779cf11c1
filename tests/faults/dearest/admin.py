"""The most expensive requests of AdminService."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from faults.dearest.world import MANY_ITEMS, ORDERS, Dear, World, again
from memory_service.v1 import admin_pb2 as pb
from memory_service.v1 import memory_pb2

_SINCE = Timestamp(seconds=1)


def _undoing(world: World, namespace: str, **fields: object) -> list[pb.UndoWritesRequest]:
    return [pb.UndoWritesRequest(namespace=namespace, any_writer=True, since=_SINCE, **fields)]  # type: ignore[arg-type]


def _replaced(world: World) -> str:
    """Return a new namespace whose items were all replaced."""
    namespace = world.short_items()
    for items in world.batches(
        MANY_ITEMS, lambda at: memory_pb2.MemoryItem(id=f"i{at}", text=f"another on {at}")
    ):
        world.api.memory.Import(
            iter(
                [
                    memory_pb2.ImportRequest(
                        namespace=namespace, items=items, on_duplicate=memory_pb2.ON_DUPLICATE_REPLACE
                    )
                ]
            )
        )
    return namespace


def _held(world: World) -> str:
    """Return a new namespace with large writes in quarantine."""
    namespace = world.fresh()
    for _ in range(3):
        items = [
            memory_pb2.MemoryItem(
                text=f"{ORDERS} {world.text(3000)}", provenance={"source": memory_pb2.SOURCE_KIND_WEB}
            )
            for _ in range(1000)
        ]
        world.api.memory.BatchAdd(memory_pb2.BatchAddRequest(namespace=namespace, items=items))
    return namespace


def _reviews(world: World, decision: int) -> list[pb.ReviewQuarantinedRequest]:
    namespace = _held(world)
    held, token = [], ""
    while True:
        page = world.api.admin.ListQuarantined(
            pb.ListQuarantinedRequest(namespace=namespace, page_token=token)
        )
        held += [write.id for write in page.writes]
        token = page.next_page_token
        if not token:
            break
    return [pb.ReviewQuarantinedRequest(namespace=namespace, id=write, decision=decision) for write in held]  # type: ignore[arg-type]


def _many_namespaces(world: World) -> list[pb.ListNamespacesRequest]:
    for _ in range(MANY_ITEMS // 5):
        world.api.add(world.fresh(), text="x")
    return again(pb.ListNamespacesRequest(prefix="dear", page_size=1000))


def _filled(world: World) -> World:
    world.short_items()
    return world


ADMIN = {
    "GetInfo": [Dear("at once", lambda w: again(pb.GetInfoRequest(), 40), 4)],
    "ListNamespaces": [Dear("thousands", _many_namespaces)],
    "UpdateNamespace": [
        Dear(
            "any",
            lambda w: again(pb.UpdateNamespaceRequest(namespace=w.fresh(), time_zone="Europe/Berlin"), 20),
            4,
        ),
    ],
    "GetNamespaceStats": [
        Dear("of many", lambda w: again(pb.GetNamespaceStatsRequest(namespace=w.library), 20), 4),
        Dear(
            "its usage",
            lambda w: again(pb.GetNamespaceStatsRequest(namespace=w.library, include_usage=True), 20),
            4,
        ),
    ],
    "DeleteNamespace": [Dear("of many", lambda w: [pb.DeleteNamespaceRequest(namespace=w.short_items())])],
    "Flush": [Dear("after many writes", lambda w: again(pb.FlushRequest(), 2) if _filled(w) else [])],
    "Backup": [Dear("of all", lambda w: [pb.BackupRequest(name=w.fresh()[:60])])],
    "Reembed": [
        Dear(
            "of many",
            lambda w: [pb.ReembedRequest(namespace=w.short_items(), replace_client_vectors=True)] * 2,
        ),
        Dear(
            "of long texts", lambda w: [pb.ReembedRequest(namespace=w.library, replace_client_vectors=True)]
        ),
    ],
    "UndoWrites": [
        Dear("of many", lambda w: _undoing(w, w.short_items(), request_id="r")),
        Dear("of many, told alone", lambda w: _undoing(w, w.short_items(), dry_run=True)),
        Dear(
            "of replacements",
            lambda w: [pb.UndoWritesRequest(namespace=_replaced(w), any_writer=True, since=_SINCE)],
        ),
    ],
    "ListQuarantined": [
        Dear("large writes", lambda w: again(pb.ListQuarantinedRequest(namespace=_held(w), page_size=1000))),
    ],
    "ReviewQuarantined": [
        Dear("released", lambda w: _reviews(w, pb.QUARANTINE_DECISION_RELEASE)),
        Dear("deleted", lambda w: _reviews(w, pb.QUARANTINE_DECISION_DELETE)),
    ],
}
