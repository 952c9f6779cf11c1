"""Deleting an item deletes what was made only from it, whatever service made it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from grpc_api import Api, Connect, decode, refusal
from memory_service.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    interaction_pb2,
    interaction_pb2_grpc,
    knowledge_pb2,
    knowledge_pb2_grpc,
    user_memory_pb2_grpc,
)
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import user_memory_pb2 as facts_pb
from server_process import ServerProcess
from user_memories import IDENTITY, User


def _stored(api: Api, namespace: str) -> list[str]:
    """Return the ids of all items, whatever service they belong to."""
    exported = api.memory.Export(pb.ExportRequest(namespace=namespace))
    return sorted(record.item.id for record in exported if record.HasField("item"))


def _source(*ids: str) -> facts_pb.MemorySource:
    return facts_pb.MemorySource(item_ids=ids)


def test_facts_go_with_the_last_of_their_messages(api: Api, namespace: str) -> None:
    user = User(api, namespace)
    for item_id in ("m1", "m2"):
        api.add(namespace, id=item_id, text="I drink tea and live in Rome")
    tea = user.save("User drinks tea", source=_source("m1")).memory
    rome = user.save("User lives in Rome", IDENTITY, source=_source("m1", "m2")).memory
    deleted = api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="m1"))
    assert deleted.derived_count == 1
    assert _stored(api, namespace) == sorted(["m2", rome.id])
    assert tea.id not in [memory.id for memory in user.memories(include_history=True)]
    deleted = api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="m2"))
    assert deleted.derived_count == 1 and _stored(api, namespace) == []


@pytest.mark.parametrize("how", ["Delete", "DeleteWhere", "BatchWrite"])
def test_a_fact_that_stays_does_not_refer_to_one_that_goes(api: Api, namespace: str, how: str) -> None:
    user = User(api, namespace)
    before = user.save("User lives in Paris", IDENTITY).memory
    api.add(namespace, id="m", text="I live in Rome", session_id="s")
    after = user.save("User lives in Rome", IDENTITY, source=_source("m")).memory
    (ended, _) = user.memories(include_history=True)
    assert (ended.id, ended.superseded_by) == (before.id, after.id)
    if how == "BatchWrite":
        where = pb.DeleteWhereOperation(session_id="s")
        operations = [pb.WriteOperation(delete_where=where)]
        batch = pb.BatchWriteRequest(namespace=namespace, operations=operations, request_id="r")
        written = api.memory.BatchWrite(batch)
        assert [(each.deleted_count, each.derived_count) for each in written.results] == [(1, 1)]
        assert api.memory.BatchWrite(batch) == written
    elif how == "DeleteWhere":
        request = pb.DeleteWhereRequest(namespace=namespace, session_id="s", request_id="r")
        deleted = api.memory.DeleteWhere(request)
        assert (deleted.deleted_count, deleted.derived_count) == (1, 1)
        assert api.memory.DeleteWhere(request) == deleted
    else:
        removal = pb.DeleteRequest(namespace=namespace, id="m", request_id="r")
        response = api.memory.Delete(removal)
        assert response.derived_count == 1
        assert api.memory.Delete(removal) == response
    (left,) = user.memories(include_history=True)
    assert (left.id, left.superseded_by, left.status) == (before.id, "", ended.status)


def test_documents_go_with_their_fragments(api: Api, namespace: str) -> None:
    knowledge = knowledge_pb2_grpc.KnowledgeServiceStub(api.channel)
    text = "Herons fish in shallow water, and wait for hours without moving. " * 300
    said = pb.ChatMessage(role=pb.ROLE_ASSISTANT, parts=[pb.Part(text=text)])
    api.add(namespace, id="page", chat_message=said, session_id="s")
    api.add(namespace, id="other", text="x")
    document = knowledge_pb2.Document(id="book", text=text)
    knowledge.AddDocument(knowledge_pb2.AddDocumentRequest(namespace=namespace, document=document))
    command = knowledge_pb2.HandleMessageRequest(namespace=namespace, session_id="s", text="save_memory")
    handled = knowledge.HandleMessage(command)
    assert handled.HasField("document"), handled
    fragments = handled.document.fragment_count
    assert fragments > 1
    before = _stored(api, namespace)
    deleted = api.memory.DeleteWhere(pb.DeleteWhereRequest(namespace=namespace, session_id="s"))
    assert (deleted.deleted_count, deleted.derived_count) == (1, 1 + fragments)
    assert len(_stored(api, namespace)) == len(before) - 2 - fragments
    wanted = knowledge_pb2.GetDocumentRequest(namespace=namespace, id=handled.document.id)
    assert refusal(knowledge.GetDocument, wanted).code is grpc.StatusCode.NOT_FOUND
    knowledge.GetDocument(knowledge_pb2.GetDocumentRequest(namespace=namespace, id="book"))


def test_responses_and_reflections_go_with_their_message(api: Api, namespace: str) -> None:
    stub = interaction_pb2_grpc.InteractionServiceStub(api.channel)
    for item_id in ("m", "other"):
        stub.StoreInteraction(
            interaction_pb2.StoreInteractionRequest(
                namespace=namespace, id=item_id, content=f"Hello {item_id}", sender="ada"
            )
        )
    stub.StoreResponse(
        interaction_pb2.StoreResponseRequest(namespace=namespace, id="r", content="Hi", in_response_to="m")
    )
    for item_id, about in (("both", ["m", "other"]), ("one", ["m", "r"])):
        stub.StoreReflection(
            interaction_pb2.StoreReflectionRequest(
                namespace=namespace, id=item_id, content="A greeting", interaction_ids=about
            )
        )
    kept = pb.DeleteRequest(namespace=namespace, id="r", keep_derived=True)
    assert api.memory.Delete(kept).derived_count == 0
    assert api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="m")).derived_count == 1
    assert _stored(api, namespace) == ["both", "other"]


def test_what_goes_as_derived_is_found_by_no_search(api: Api, namespace: str) -> None:
    api.add(namespace, id="m", text="kiwi")
    api.add(namespace, id="made", text="kiwi again", provenance=pb.Provenance(parent_ids=["m"]))
    assert len(api.retrieve(namespace, query_text="kiwi", limit=-1).results) == 2
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="m"))
    assert not api.retrieve(namespace, query_text="kiwi", limit=-1).results


def test_what_was_made_only_from_a_memory_goes_with_it(api: Api, namespace: str) -> None:
    user = User(api, namespace)
    memories = user_memory_pb2_grpc.UserMemoryServiceStub(api.channel)
    tea = user.save("User drinks tea").memory
    oats = user.save("User likes oats for breakfast").memory
    for item_id, *parents in (("of tea", tea.id), ("of both", tea.id, oats.id), ("of this", "of tea")):
        api.add(namespace, id=item_id, text="x", provenance=pb.Provenance(parent_ids=parents))
    removal = facts_pb.DeleteMemoryRequest(namespace=namespace, id=tea.id, request_id="r")
    deleted = memories.DeleteMemory(removal)
    assert (deleted.removed_count, deleted.derived_count) == (1, 2)
    assert memories.DeleteMemory(removal) == deleted
    assert _stored(api, namespace) == sorted([oats.id, "of both"])
    removal = facts_pb.DeleteMemoryRequest(namespace=namespace, id=oats.id, keep_derived=True)
    deleted = memories.DeleteMemory(removal)
    assert (deleted.removed_count, deleted.derived_count) == (1, 0)
    assert _stored(api, namespace) == ["of both"]


@pytest.mark.parametrize("how", ["Add", "BatchWrite"])
def test_what_is_made_from_an_item_that_is_just_deleted_does_not_stay(
    api: Api, namespace: str, how: str
) -> None:
    def add(number: int, parent: str) -> object:
        made = pb.MemoryItem(
            id=f"{parent}.{number}", text="x", provenance=pb.Provenance(parent_ids=["kept", parent])
        )
        if number % 2:
            made.provenance.parent_ids[:] = [parent]
        if how == "Add":
            return api.memory.Add(pb.AddRequest(namespace=namespace, item=made))
        operation = pb.WriteOperation(add=pb.AddOperation(item=made))
        return api.memory.BatchWrite(pb.BatchWriteRequest(namespace=namespace, operations=[operation]))

    def tried(number: int, parent: str) -> None:
        try:
            add(number, parent)
        except grpc.RpcError as error:
            refused = decode(error)
            assert (refused.code, refused.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
            assert refused.names("parent_ids")

    api.add(namespace, id="kept", text="x")
    with ThreadPoolExecutor(6) as pool:
        for round_ in range(20):
            parent = f"p{round_}"
            api.add(namespace, id=parent, text="x")
            tries = [pool.submit(tried, number, parent) for number in range(3)]
            gone = pool.submit(api.memory.Delete, pb.DeleteRequest(namespace=namespace, id=parent))
            for attempt in [*tries, *(pool.submit(tried, number, parent) for number in range(3, 6)), gone]:
                attempt.result()
    of_both = [item_id for item_id in _stored(api, namespace) if item_id != "kept"]
    assert all(int(item_id.partition(".")[2]) % 2 == 0 for item_id in of_both), of_both


def test_a_held_item_is_released_if_an_item_that_it_was_made_from_is_left(
    tmp_path: Path, connect: Connect
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rules]]\naction = "quarantine"\nreason = "odd"\ncontains = ["odd"]\n')
    with ServerProcess(None, flags=["--store", "memory", "--write-policy-file", str(rules)]) as server:
        api = connect(server)
        admin = admin_pb2_grpc.AdminServiceStub(api.channel)
        for item_id in ("a", "b"):
            api.add("n", id=item_id, text=item_id)
        api.add("n", id="of a", text="odd", provenance=pb.Provenance(parent_ids=["a"]))
        api.add("n", id="of both", text="odd", provenance=pb.Provenance(parent_ids=["a", "b"]))
        held = admin.ListQuarantined(admin_pb2.ListQuarantinedRequest(namespace="n")).writes
        api.memory.Delete(pb.DeleteRequest(namespace="n", id="a"))
        of_a, of_both = (
            admin_pb2.ReviewQuarantinedRequest(
                namespace="n", id=write.id, decision=admin_pb2.QUARANTINE_DECISION_RELEASE
            )
            for write in held
        )
        refused = refusal(admin.ReviewQuarantined, of_a)
        assert (refused.reason, refused.metadata["id"]) == ("ITEM_NOT_FOUND", "a")
        assert admin.ReviewQuarantined(of_both).item_count == 1
        assert api.get("n", "of both").provenance.parent_ids == ["b"]
        (left,) = admin.ListQuarantined(admin_pb2.ListQuarantinedRequest(namespace="n")).writes
        assert left == held[0]
        api.memory.Delete(pb.DeleteRequest(namespace="n", id="b"))
        assert _stored(api, "n") == []


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_an_import_restores_what_was_made_from_what(api: Api, namespace: str, batch: int) -> None:
    """Whatever the order: an export has an updated item after those that were made from it."""
    source, target = namespace, f"{namespace}/copy"
    user = User(api, source)
    for item_id in ("m", "other"):
        api.add(source, id=item_id, text="I drink tea")
    fact = user.save("User drinks tea", source=_source("m")).memory.id
    for item_id, *parents in (("child", "m"), ("leaf", "child"), ("both", "m", "other")):
        api.add(source, id=item_id, text=item_id, provenance=pb.Provenance(parent_ids=parents))
    stub = interaction_pb2_grpc.InteractionServiceStub(api.channel)
    response = interaction_pb2.StoreResponseRequest(
        namespace=source, id="answer", content="Fine", in_response_to="m", allow_missing=True
    )
    stub.StoreResponse(response)
    for item_id in ("child", "other", "m"):
        update = pb.UpdateRequest(namespace=source, item=pb.MemoryItem(id=item_id, labels={"l": "v"}))
        api.memory.Update(update)
    lines = [record.item for record in api.memory.Export(pb.ExportRequest(namespace=source))]
    assert [item.id for item in lines] == [fact, "leaf", "both", "answer", "child", "other", "m"]
    requests = [
        pb.ImportRequest(namespace=target, items=lines[at : at + batch], on_duplicate=pb.ON_DUPLICATE_SKIP)
        for at in range(0, len(lines), batch)
    ]
    # Interrupted, and repeated.
    api.memory.Import(iter(requests[: len(requests) // 2 + 1]))
    revision = api.memory.Import(iter(requests)).revision
    deleted = api.memory.Delete(pb.DeleteRequest(namespace=target, id="m"))
    assert (deleted.revision, deleted.derived_count) == (revision + 5, 4)
    assert _stored(api, target) == ["both", "other"]
    assert api.memory.Delete(pb.DeleteRequest(namespace=target, id="other")).derived_count == 1


def test_what_was_made_only_from_a_document_goes_with_it(api: Api, namespace: str) -> None:
    user = User(api, namespace)
    knowledge = knowledge_pb2_grpc.KnowledgeServiceStub(api.channel)
    for name in ("book", "page"):
        document = knowledge_pb2.Document(id=name, text="The user is called Ada.")
        knowledge.AddDocument(knowledge_pb2.AddDocumentRequest(namespace=namespace, document=document))
        wanted = knowledge_pb2.GetDocumentRequest(namespace=namespace, id=name, include_fragments=True)
        (fragment,) = knowledge.GetDocument(wanted).fragments
        api.add(namespace, id=f"of {name}", text="x", provenance=pb.Provenance(parent_ids=[fragment.id]))
    before = user.save("User is called Eve", IDENTITY).memory
    after = user.save("User is called Ada", IDENTITY, source=_source("book")).memory
    (ended, _) = user.memories(include_history=True)
    assert ended.superseded_by == after.id
    removal = knowledge_pb2.DeleteDocumentRequest(namespace=namespace, id="book", request_id="r")
    deleted = knowledge.DeleteDocument(removal)
    assert (deleted.removed_fragment_count, deleted.derived_count) == (1, 2)
    assert knowledge.DeleteDocument(removal) == deleted
    (left,) = user.memories(include_history=True)
    assert (left.id, left.superseded_by) == (before.id, "")
    removal = knowledge_pb2.DeleteDocumentRequest(namespace=namespace, id="page", keep_derived=True)
    deleted = knowledge.DeleteDocument(removal)
    assert (deleted.removed_fragment_count, deleted.derived_count) == (1, 0)
    assert _stored(api, namespace) == sorted([before.id, "of page"])
