"""Batches, and deleting by conditions, through the API; every store must behave alike."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Value
from google.protobuf.timestamp_pb2 import Timestamp

from grpc_api import Api, Connect, refusal
from memory_service.v1 import knowledge_pb2, knowledge_pb2_grpc, state_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

Operation = pb.WriteOperation


def _add(item_id: str, text: str = "text", **fields: object) -> pb.WriteOperation:
    on_duplicate = fields.pop("on_duplicate", 0)
    item = pb.MemoryItem(id=item_id, text=text, **fields)
    return Operation(add=pb.AddOperation(item=item, on_duplicate=on_duplicate))


def _save(key: str, value: str = "value", **fields: object) -> pb.WriteOperation:
    return Operation(save_state=pb.SaveStateOperation(key=key, value=Value(string_value=value), **fields))


def _batch(namespace: str, operations: Sequence[pb.WriteOperation], **fields: object) -> pb.BatchWriteRequest:
    return pb.BatchWriteRequest(namespace=namespace, operations=operations, **fields)


def _ids(api: Api, namespace: str) -> list[str]:
    return [item.id for item in api.memory.List(pb.ListRequest(namespace=namespace)).items]


def _mixed(revision: int) -> list[pb.WriteOperation]:
    update = pb.UpdateOperation(item=pb.MemoryItem(id="kept", text="after"), expected_revision=revision)
    return [
        _add("new", "something new"),
        Operation(update=update),
        Operation(delete=pb.DeleteOperation(id="gone")),
        Operation(delete=pb.DeleteOperation(id="missing", allow_missing=True)),
        Operation(delete_where=pb.DeleteWhereOperation(session_id="old")),
        _save("plan", expected_version=0, ttl=Duration(seconds=60)),
        Operation(delete_state=pb.DeleteStateOperation(key="done")),
    ]


def _fill(api: Api, namespace: str) -> int:
    """Write the items and state that `_mixed` changes; return the revision of the item that it updates."""
    kept = api.add(namespace, id="kept", text="before", session_id="old")
    api.add(namespace, id="gone", text="text")
    for number in range(3):
        api.add(namespace, id=f"old{number}", text="text", session_id="old")
    value = Value(string_value="x")
    api.state.SaveState(state_pb2.SaveStateRequest(namespace=namespace, key="done", value=value))
    return kept.revision


def test_a_batch_of_all_operations_answers_for_each(api: Api, namespace: str) -> None:
    request = _batch(namespace, _mixed(_fill(api, namespace)), request_id="r")
    response = api.memory.BatchWrite(request)
    results = list(response.results)
    assert [result.id for result in results] == ["new", "kept", "", "", "", "", ""]
    assert [result.deleted_count for result in results] == [0, 0, 1, 0, 3, 0, 1]
    assert [result.revision for result in results] == [7, 8, 0, 0, 0, 13, 0]
    assert results[5].version == 1
    assert results[5].expire_time.ToMicroseconds() == results[5].update_time.ToMicroseconds() + 60 * 10**6
    assert response.revision == 14
    # The item that another operation names stays, although it belongs to the session.
    assert _ids(api, namespace) == ["kept", "new"]
    assert api.get(namespace, "kept").text == "after"
    assert api.memory.BatchWrite(request) == response
    assert api.memory.List(pb.ListRequest(namespace=namespace)).revision == 14


FAILING = {
    "taken": (_add("kept"), "ITEM_ALREADY_EXISTS", grpc.StatusCode.ALREADY_EXISTS),
    "missing": (Operation(delete=pb.DeleteOperation(id="none")), "ITEM_NOT_FOUND", grpc.StatusCode.NOT_FOUND),
    "missing update": (
        Operation(update=pb.UpdateOperation(item=pb.MemoryItem(id="none", text="x"))),
        "ITEM_NOT_FOUND",
        grpc.StatusCode.NOT_FOUND,
    ),
    "newer": (
        Operation(delete=pb.DeleteOperation(id="kept", expected_revision=99)),
        "REVISION_MISMATCH",
        grpc.StatusCode.ABORTED,
    ),
    "newer update": (
        Operation(update=pb.UpdateOperation(item=pb.MemoryItem(id="kept", text="x"), expected_revision=99)),
        "REVISION_MISMATCH",
        grpc.StatusCode.ABORTED,
    ),
    "missing, but expected": (
        Operation(delete=pb.DeleteOperation(id="none", expected_revision=99, allow_missing=True)),
        "REVISION_MISMATCH",
        grpc.StatusCode.ABORTED,
    ),
    "version": (_save("done", expected_version=9), "VERSION_MISMATCH", grpc.StatusCode.ABORTED),
    "missing state": (
        Operation(delete_state=pb.DeleteStateOperation(key="none")),
        "STATE_NOT_FOUND",
        grpc.StatusCode.NOT_FOUND,
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_precondition_that_does_not_hold_stops_all_of_it(api: Api, namespace: str, name: str) -> None:
    _fill(api, namespace)
    before = list(api.memory.Export(pb.ExportRequest(namespace=namespace)))
    operation, reason, code = FAILING[name]
    operations = [_add(f"i{number}") for number in range(98)] + [_save("plan"), operation]
    error = refusal(api.memory.BatchWrite, _batch(namespace, operations, request_id="r"))
    assert (error.code, error.reason) == (code, reason)
    field = f"operations[99].{operation.WhichOneof('operation')}"
    assert error.metadata["field"] == field
    assert error.message.startswith(f"{field}: ")
    assert error.message.count(field) == 1
    assert list(api.memory.Export(pb.ExportRequest(namespace=namespace))) == before


INVALID = {
    "operations[0]": Operation(),
    "operations[0].add.item": Operation(add=pb.AddOperation()),
    "operations[0].add.item.content": Operation(add=pb.AddOperation(item=pb.MemoryItem(id="a"))),
    "operations[0].add.on_duplicate": _add("a", on_duplicate=9),
    "operations[0].update.update_mask": Operation(update=pb.UpdateOperation(item=pb.MemoryItem(id="a"))),
    "operations[0].update.item.id": Operation(update=pb.UpdateOperation(item=pb.MemoryItem(text="a"))),
    "operations[0].delete.id": Operation(delete=pb.DeleteOperation()),
    "operations[0].delete_where.session_id": Operation(delete_where=pb.DeleteWhereOperation()),
    "operations[0].delete_where.filter": Operation(delete_where=pb.DeleteWhereOperation(filter="((")),
    "operations[0].delete_where.kinds": Operation(
        delete_where=pb.DeleteWhereOperation(kinds=[pb.ITEM_KIND_DOCUMENT])
    ),
    "operations[0].save_state.key": _save(""),
    "operations[0].save_state.value": Operation(save_state=pb.SaveStateOperation(key="k")),
    "operations[0].save_state.ttl": _save("k", ttl=Duration(seconds=-1)),
    "operations[0].delete_state.key": Operation(delete_state=pb.DeleteStateOperation()),
}


@pytest.mark.parametrize("field", INVALID)
def test_a_field_that_is_wrong_is_named_with_its_operation(api: Api, namespace: str, field: str) -> None:
    error = refusal(api.memory.BatchWrite, _batch(namespace, [INVALID[field], _add("b")]))
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == field
    assert _ids(api, namespace) == []


def test_an_item_or_a_state_is_named_once(api: Api, namespace: str) -> None:
    twice = [_add("a"), Operation(delete=pb.DeleteOperation(id="a", allow_missing=True))]
    error = refusal(api.memory.BatchWrite, _batch(namespace, twice))
    assert error.metadata["field"] == "operations[1].delete.id"
    error = refusal(api.memory.BatchWrite, _batch(namespace, [_save("a"), _add("a"), _save("a")]))
    assert error.metadata["field"] == "operations[2].save_state.key"


def test_a_batch_has_a_size(api: Api, namespace: str) -> None:
    assert refusal(api.memory.BatchWrite, _batch(namespace, [])).metadata["field"] == "operations"
    error = refusal(api.memory.BatchWrite, _batch(namespace, [_save(f"k{n}") for n in range(1001)]))
    assert error.metadata["limit_name"] == "batch_items_max"


def test_twenty_batches_at_once_that_require_one_version_leave_one(api: Api, namespace: str) -> None:
    codes = []

    def write(number: int) -> None:
        operations = [_save("counter", str(number), expected_version=0), _add(f"i{number}")]
        try:
            api.memory.BatchWrite(_batch(namespace, operations))
        except grpc.RpcError as error:
            codes.append(error.code())

    threads = [threading.Thread(target=write, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [grpc.StatusCode.ABORTED] * 19
    assert len(_ids(api, namespace)) == 1


# --- on_duplicate ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["Add", "BatchAdd", "BatchWrite"])
def test_replacing_keeps_position_and_create_time(api: Api, namespace: str, how: str) -> None:
    first = api.add(namespace, id="a", text="before")
    api.add(namespace, id="b", text="text")
    item, replace = pb.MemoryItem(id="a", text="after"), pb.ON_DUPLICATE_REPLACE
    if how == "Add":
        api.memory.Add(pb.AddRequest(namespace=namespace, item=item, on_duplicate=replace))
    elif how == "BatchAdd":
        api.memory.BatchAdd(pb.BatchAddRequest(namespace=namespace, items=[item], on_duplicate=replace))
    else:
        api.memory.BatchWrite(_batch(namespace, [_add("a", "after", on_duplicate=replace)]))
    assert _ids(api, namespace) == ["a", "b"]
    found = api.get(namespace, "a")
    assert found.text == "after"
    assert found.create_time == first.create_time
    assert found.update_time.ToMicroseconds() > first.update_time.ToMicroseconds()
    own = pb.MemoryItem(id="a", text="again", create_time=Timestamp(seconds=5))
    again = api.memory.Add(pb.AddRequest(namespace=namespace, item=own, on_duplicate=replace))
    assert again.item.create_time == Timestamp(seconds=5)


def test_a_skipped_item_stays_as_it_is(api: Api, namespace: str) -> None:
    api.add(namespace, id="a", text="before")
    item, skip = pb.MemoryItem(id="a", text="after"), pb.ON_DUPLICATE_SKIP
    request = pb.AddRequest(namespace=namespace, item=item, on_duplicate=skip, request_id="r")
    response = api.memory.Add(request)
    assert response.skipped
    assert not response.HasField("item")
    assert api.memory.Add(request) == response
    items = [pb.MemoryItem(text="one"), item, pb.MemoryItem(id="c", text="three")]
    batch = pb.BatchAddRequest(namespace=namespace, items=items, on_duplicate=skip, request_id="s")
    added = api.memory.BatchAdd(batch)
    assert added.skipped_count == 1
    assert [item.text for item in added.items] == ["one", "three"]
    assert api.memory.BatchAdd(batch) == added
    result = api.memory.BatchWrite(_batch(namespace, [_add("a", "after", on_duplicate=skip)])).results[0]
    assert (result.skipped, result.id, result.revision) == (True, "a", 0)
    assert api.get(namespace, "a").text == "before"


REPLACE = pb.ON_DUPLICATE_REPLACE
OTHERS = {
    "Add": lambda item: pb.AddRequest(item=item, on_duplicate=REPLACE),
    "BatchAdd": lambda item: pb.BatchAddRequest(items=[pb.MemoryItem(text="x"), item], on_duplicate=REPLACE),
    "BatchWrite": lambda item: _batch("", [_add(item.id, on_duplicate=REPLACE)]),
    "BatchWrite update": lambda item: _batch("", [Operation(update=pb.UpdateOperation(item=item))]),
    "BatchWrite delete": lambda item: _batch("", [Operation(delete=pb.DeleteOperation(id=item.id))]),
}
FIELD = {"Add": "item.id", "BatchAdd": "items[1].id", "BatchWrite": "operations[0].add.item.id"}


@pytest.mark.parametrize("how", OTHERS)
def test_items_of_other_services_are_changed_by_these_alone(api: Api, namespace: str, how: str) -> None:
    document = knowledge_pb2.Document(id="book", text="A book on herons.")
    knowledge = knowledge_pb2_grpc.KnowledgeServiceStub(api.channel)
    knowledge.AddDocument(knowledge_pb2.AddDocumentRequest(namespace=namespace, document=document))
    request = OTHERS[how](pb.MemoryItem(id="book", text="mine"))
    request.namespace = namespace
    error = refusal(getattr(api.memory, how.split(" ")[0]), request)
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == FIELD.get(how, error.metadata["field"])
    kept = knowledge.GetDocument(knowledge_pb2.GetDocumentRequest(namespace=namespace, id="book")).document
    assert kept.text == document.text
    assert _ids(api, namespace) == []


# --- deleting by conditions -----------------------------------------------------------------------


def _where(namespace: str, **fields: object) -> pb.DeleteWhereRequest:
    return pb.DeleteWhereRequest(namespace=namespace, **fields)


CONDITIONS = {
    "session": ({"session_id": "s"}, ["a"]),
    "labels": ({"labels": {"topic": "tea"}}, ["b"]),
    "kinds": ({"kinds": [pb.ITEM_KIND_UNSPECIFIED]}, ["a", "b", "c", "d"]),
    "filter": ({"filter": "metadata.n > 1"}, ["c"]),
    "start": ({"start_time": Timestamp(seconds=3)}, ["c", "d"]),
    "end": ({"end_time": Timestamp(seconds=3)}, ["a", "b"]),
    "all of them": ({"session_id": "s", "labels": {"topic": "tea"}}, []),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_what_matches_is_deleted(api: Api, namespace: str, name: str) -> None:
    fields, deleted = CONDITIONS[name]
    api.add(namespace, id="a", text="kiwi", session_id="s", create_time=Timestamp(seconds=1))
    api.add(namespace, id="b", text="kiwi", labels={"topic": "tea"}, create_time=Timestamp(seconds=2))
    api.add(namespace, id="c", text="kiwi", metadata={"n": 2}, create_time=Timestamp(seconds=3))
    api.add(namespace, id="d", text="kiwi", create_time=Timestamp(seconds=4))
    counted = api.memory.DeleteWhere(_where(namespace, dry_run=True, **fields))
    assert (counted.deleted_count, counted.revision) == (len(deleted), 4)
    assert _ids(api, namespace) == ["a", "b", "c", "d"]
    request = _where(namespace, request_id="r", **fields)
    response = api.memory.DeleteWhere(request)
    assert (response.deleted_count, response.next_page_token) == (len(deleted), "")
    assert response.revision == 4 + len(deleted)
    left = [item_id for item_id in "abcd" if item_id not in deleted]
    assert _ids(api, namespace) == left
    found = api.retrieve(namespace, query_text="kiwi", limit=-1).results
    assert sorted(result.item.id for result in found) == left
    api.add(namespace, id="late", text="kiwi", session_id="s", labels={"topic": "tea"}, metadata={"n": 2})
    assert api.memory.DeleteWhere(request) == response


def test_conditions_are_required(api: Api, namespace: str) -> None:
    api.add(namespace, text="x")
    assert refusal(api.memory.DeleteWhere, _where(namespace)).metadata["field"] == "session_id"
    error = refusal(api.memory.DeleteWhere, _where(namespace, kinds=[pb.ITEM_KIND_FRAGMENT]))
    assert error.metadata["field"] == "kinds"
    error = refusal(api.memory.DeleteWhere, _where(namespace, session_id="s", page_token="x"))
    assert error.reason == "INVALID_PAGE_TOKEN"
    assert len(_ids(api, namespace)) == 1


# A machine that stalls exceeds its time.
@pytest.mark.flaky(reruns=1)
def test_more_than_one_call_deletes_are_deleted_by_several(api: Api, namespace: str) -> None:
    for first in range(0, 10_500, 500):
        items = [pb.MemoryItem(text="x", session_id="s") for _ in range(first, first + 500)]
        api.memory.BatchAdd(pb.BatchAddRequest(namespace=namespace, items=items))
    first_page = api.memory.DeleteWhere(_where(namespace, session_id="s"))
    assert first_page.deleted_count == 10_000
    api.add(namespace, id="late", text="x", session_id="s")
    rest = _where(namespace, session_id="s", page_token=first_page.next_page_token)
    last_page = api.memory.DeleteWhere(rest)
    assert (last_page.deleted_count, last_page.next_page_token) == (500, "")
    assert _ids(api, namespace) == ["late"]


def test_one_call_deletes_so_much_as_derived_and_no_more(
    memory_server: ServerProcess, connect: Connect, namespace: str
) -> None:
    api = connect(memory_server)
    api.add(namespace, text="source", id="source")
    derived = pb.MemoryItem(text="x", provenance=pb.Provenance(parent_ids=["source"]))
    for count in (*[1000] * 10, 1):
        api.memory.BatchAdd(pb.BatchAddRequest(namespace=namespace, items=[derived] * count))
    alone = pb.DeleteRequest(namespace=namespace, id="source")
    batch = pb.BatchWriteRequest(
        namespace=namespace,
        operations=[
            pb.WriteOperation(add=pb.AddOperation(item=pb.MemoryItem(text="y"))),
            pb.WriteOperation(delete=pb.DeleteOperation(id="source")),
        ],
    )
    for call, request, field in (
        (api.memory.Delete, alone, "keep_derived"),
        (api.memory.BatchWrite, batch, "operations[1].delete.keep_derived"),
    ):
        error = refusal(call, request)
        assert (error.code, error.metadata["field"]) == (grpc.StatusCode.RESOURCE_EXHAUSTED, field)
        assert (error.metadata["limit_name"], error.metadata["actual"]) == ("delete_items_max", "10001")
    assert api.stats(namespace).item_count == 10_002
    alone.keep_derived = True
    api.memory.Delete(alone)
    assert api.stats(namespace).item_count == 10_001
