"""What expired, was deleted or forgotten stays away: by every way to ask, over crashes in the sweep."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from faults.load import SWEEP, facts, knowledge
from faults.scale import SOAK, drawn, rounds
from faults.test_failpoints import POINTS, server_at, subject
from grpc_api import SMALL_GRAPHS, Api, eventually, outcome
from memory_service.v1 import (
    admin_pb2,
    interaction_pb2,
    interaction_pb2_grpc,
    knowledge_pb2,
    state_pb2,
    user_memory_pb2,
)
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

NAMESPACE, FACTS, DOCUMENTS, TALK = "gone/items", "gone/facts", "gone/documents", "gone/talk"
EMPTIED, REMOVED = "gone/emptied", "gone/removed"
NAMESPACES = (NAMESPACE, FACTS, DOCUMENTS, TALK, EMPTIED, REMOVED)
COUNT = 40
SUBJECTS = {
    "kept": "green tea",
    "ghost-deleted": "trains to Lisbon",
    "ghost-expired": "boats on lakes",
}
SOON = Duration(seconds=1)
NO_SWEEP = {"MEMORY_SERVICE_SWEEP": "3600"}


def fill(api: Api) -> None:
    """Write what stays, called "kept", and what goes, called "ghost": some expires, some is deleted."""
    for kind, ttl in (("kept", None), ("ghost-deleted", None), ("ghost-expired", SOON)):
        items = [
            pb.MemoryItem(id=f"{kind}-{at}", text=f"{kind} number {at}", session_id="s", ttl=ttl)
            for at in range(COUNT)
        ]
        api.memory.BatchAdd(pb.BatchAddRequest(namespace=NAMESPACE, items=items))
        for at in range(3):
            fields: dict[str, Any] = {} if ttl is None else {"ttl": ttl}
            api.save(NAMESPACE, f"{kind}-{at}", f"{kind} value", **fields)
        save = user_memory_pb2.SaveMemoryRequest(
            namespace=FACTS,
            content=f"{kind} {SUBJECTS[kind]}",
            category=user_memory_pb2.MEMORY_CATEGORY_CONTEXT,
            reasoning="It will matter",
            keep_wording=True,
            ttl=ttl,
        )
        fact = facts(api).SaveMemory(save).memory
        text = "\n\n".join([f"{kind} paragraph of a document. " * 20] * 4)
        document = knowledge_pb2.Document(id=kind, text=text, ttl=ttl)
        knowledge(api).AddDocument(knowledge_pb2.AddDocumentRequest(namespace=DOCUMENTS, document=document))
        interactions(api).StoreInteraction(
            interaction_pb2.StoreInteractionRequest(
                namespace=TALK, sender="ada", session_id="s", content=f"{kind} said", ttl=ttl
            )
        )
        if kind == "ghost-deleted":
            facts(api).DeleteMemory(user_memory_pb2.DeleteMemoryRequest(namespace=FACTS, id=fact.id))
    for namespace in (EMPTIED, REMOVED):
        api.add_texts(namespace, *(f"ghost {at} of {namespace}" for at in range(COUNT * 2)))
        api.save(namespace, "ghost", "ghost")
    api.admin.Flush(admin_pb2.FlushRequest())  # the snapshots of indexes have the ghosts


def forget(api: Api) -> None:
    """Delete what is to be deleted."""
    for at in range(COUNT):
        api.memory.Delete(pb.DeleteRequest(namespace=NAMESPACE, id=f"ghost-deleted-{at}"))
    for at in range(3):
        api.state.DeleteState(state_pb2.DeleteStateRequest(namespace=NAMESPACE, key=f"ghost-deleted-{at}"))
    knowledge(api).DeleteDocument(
        knowledge_pb2.DeleteDocumentRequest(namespace=DOCUMENTS, id="ghost-deleted")
    )
    ghost = next(item for item in everything(api, TALK) if "ghost-deleted" in str(item))
    api.memory.Delete(pb.DeleteRequest(namespace=TALK, id=ghost.id))
    api.memory.Reset(pb.ResetRequest(namespace=EMPTIED))
    api.admin.DeleteNamespace(admin_pb2.DeleteNamespaceRequest(namespace=REMOVED))


def interactions(api: Api) -> Any:
    return interaction_pb2_grpc.InteractionServiceStub(api.channel)


def everything(api: Api, namespace: str) -> list[Any]:
    return [
        record.item for record in api.memory.Export(pb.ExportRequest(namespace=namespace)) if record.item.id
    ]


def arms(namespace: str) -> dict[str, Callable[[Api], Any]]:
    """Every way to read a namespace."""
    name = {"namespace": namespace}
    calls: dict[str, Callable[[Api], Any]] = {
        "List": lambda api: api.items(namespace),
        "Export": lambda api: list(api.memory.Export(pb.ExportRequest(**name))),
        "Watch": lambda api: list(changes(api, namespace)),
        "SearchState": lambda api: api.state.SearchState(state_pb2.SearchStateRequest(**name, pattern="*")),
        "ListStateKeys": lambda api: api.state.ListStateKeys(
            state_pb2.ListStateKeysRequest(**name, include_preview=True)
        ),
        "SearchMemories": lambda api: facts(api).SearchMemories(
            user_memory_pb2.SearchMemoriesRequest(**name, query="ghost boats", include_history=True)
        ),
        "ListMemories": lambda api: facts(api).ListMemories(
            user_memory_pb2.ListMemoriesRequest(**name, include_history=True)
        ),
        "GetPreloadedMemories": lambda api: facts(api).GetPreloadedMemories(
            user_memory_pb2.GetPreloadedMemoriesRequest(**name)
        ),
        "SearchFragments": lambda api: knowledge(api).SearchFragments(
            knowledge_pb2.SearchFragmentsRequest(**name, query="ghost paragraph", limit=100)
        ),
        "ListDocuments": lambda api: knowledge(api).ListDocuments(knowledge_pb2.ListDocumentsRequest(**name)),
        "RetrieveLastInteractions": lambda api: interactions(api).RetrieveLastInteractions(
            interaction_pb2.RetrieveLastInteractionsRequest(**name)
        ),
        "RetrieveRelevantContext": lambda api: interactions(api).RetrieveRelevantContext(
            interaction_pb2.RetrieveRelevantContextRequest(**name, query="ghost said")
        ),
    }
    queries: dict[str, dict[str, Any]] = {
        "words": {"query_text": "ghost number value paragraph said boats", "mode": pb.RETRIEVE_MODE_LEXICAL},
        "vectors": {"query_text": "ghost expired", "mode": pb.RETRIEVE_MODE_VECTOR},
        "both": {"query_text": "ghost deleted"},
        "the newest": {},
        "neighbours": {"query_text": "kept number 39", "context_window": 20},
        "a filter": {"filter": 'session_id = "s"'},
    }
    for what, options in queries.items():
        # The query must not be mistaken for a result.
        calls[what] = lambda api, options=options: list(api.retrieve(namespace, limit=-1, **options).results)
    return calls


def changes(api: Api, namespace: str) -> Iterator[pb.WatchResponse]:
    """All events of Watch up to now, without the names of removed items, which it may mention."""
    revision = api.stats(namespace).revision
    for event in api.memory.Watch(pb.WatchRequest(namespace=namespace, after_revision=0)):
        event.change.item_id = event.change.state_key = ""
        yield event
        if event.revision >= revision:
            return


def told(api: Api, ask: Callable[[Api], Any]) -> str:
    """The response as one text; empty if there is no namespace."""
    try:
        return str(ask(api))
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.NOT_FOUND:
            raise
        return ""


def assert_no_ghosts(api: Api) -> None:
    """No call returns removed data; the rest is returned."""
    for namespace in NAMESPACES:
        assert [name for name, ask in arms(namespace).items() if "ghost" in told(api, ask)] == [], namespace
    for kind in ("ghost-expired", "ghost-deleted"):
        assert gone(api, kind) == [grpc.StatusCode.NOT_FOUND] * 3
    assert len(api.items(NAMESPACE)) == COUNT
    for mode in (pb.RETRIEVE_MODE_LEXICAL, pb.RETRIEVE_MODE_VECTOR):
        assert len(api.found(NAMESPACE, query_text="kept number", mode=mode, limit=-1)) == COUNT
    assert gone(api, "kept") == [grpc.StatusCode.OK] * 3


def gone(api: Api, kind: str) -> list[grpc.StatusCode]:
    """How it is answered who asks for one of each sort by its name."""
    get = pb.GetRequest(namespace=NAMESPACE, id=f"{kind}-0")
    load = state_pb2.LoadStateRequest(namespace=NAMESPACE, key=f"{kind}-0")
    document = knowledge_pb2.GetDocumentRequest(namespace=DOCUMENTS, id=kind)
    return [
        outcome(lambda: api.memory.Get(get)),
        outcome(lambda: api.state.LoadState(load)),
        outcome(lambda: knowledge(api).GetDocument(document)),
    ]


def assert_swept(api: Api) -> None:
    """Nothing that is gone is counted any more."""
    eventually(
        lambda: (api.stats(NAMESPACE).item_count, api.stats(NAMESPACE).state_count) == (COUNT, 3), "the sweep"
    )
    eventually(lambda: api.stats(TALK).item_count == 1, "the sweep")


ONCE_IN_A_SWEEP = {"sweep.after_requests", "sweep.after_publish"}
"""Points that are reached again only after a whole sweep: then nothing is left for the crashes to come."""


@pytest.mark.timeout(1800)
def test_no_ghosts_over_crashes_in_the_sweep(tmp_path: Path) -> None:
    chance = drawn("sweep")
    for number in range(rounds(1, 12)):
        folder = tmp_path / str(number)
        with ServerProcess(folder, env={**SMALL_GRAPHS, **NO_SWEEP}) as server:
            api = Api.connect(server.address)
            fill(api)
            forget(api)
            eventually(lambda: gone(api, "ghost-expired") == [grpc.StatusCode.NOT_FOUND] * 3, "them to end")  # noqa: B023
            eventually(lambda: "ghost" not in str(everything(api, TALK)), "it to end")  # noqa: B023
            assert_no_ghosts(api)
            server.kill()
            api.channel.close()
        points = [point for point in POINTS if subject(point) == "sweep"]
        # After the commit nothing is left to sweep: that crash is the last one.
        points.sort(key="sweep.after_publish".__eq__)
        for point in points if SOAK else [chance.choice(points)]:
            times = 1 if point in ONCE_IN_A_SWEEP else chance.randint(1, 3)
            with server_at(folder, f"{point}=kill:{times}") as server:
                assert server.process.wait(60) == -signal.SIGKILL
            with ServerProcess(folder, env={**SMALL_GRAPHS, **NO_SWEEP}) as server:
                api = Api.connect(server.address)
                assert_no_ghosts(api)
                api.channel.close()
        with ServerProcess(folder, env={**SMALL_GRAPHS, **SWEEP}) as server:
            api = Api.connect(server.address)
            assert_swept(api)
            assert_no_ghosts(api)
            api.channel.close()
